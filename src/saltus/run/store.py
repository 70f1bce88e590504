"""`store="run.zarr"`: blocks of draws streamed to a zarr v3 store that opens lazily, while the run goes on or after a kill.

Codes are stored, one zarr chunk per block; the labels a person reads are put on at reading. Root attributes are the
run's; the group attribute `draws` says how many rows count: what lies beyond was being written when the run ended.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import StorageError
from ..spaces import Space
from .files import FORMAT, cannot_write, check_writable, replaced
from .settings import readable
from .sinks import Block

_MARK = "saltus_store"


def zarr_module() -> Any:
    try:
        import zarr
    except ImportError as cause:
        raise StorageError(
            "`store` needs zarr.", expected="zarr 3 or newer", found="it is not installed", hint="pip install 'saltus[io]'"
        ) from cause
    return zarr


class Store:
    """A zarr group per kind of draw: `posterior` and `sample_stats`, and the same with `warmup_` in front."""

    def __init__(self, path: Path, space: Space, num_chains: int, rows: int):
        self.path, self.space, self.num_chains, self.rows = path, space, num_chains, rows
        self.root: Any = None

    def create(self, attributes: dict[str, Any]) -> None:
        zarr = zarr_module()
        attributes = {**attributes, _MARK: FORMAT, "labels": json.dumps(self.space.labels.tolist())}
        if self.path.exists():
            read_mark(self.path)
        try:
            with replaced(self.path):
                self.root = zarr.create_group(
                    str(self.path), attributes=attributes, zarr_format=3
                )  # one write: marked from the first
        except OSError as cause:
            raise cannot_write(self.path, cause) from cause

    def reopen(self, **attributes: Any) -> None:
        self.root = zarr_module().open_group(str(read_mark(self.path)), mode="r+")
        self.set(**attributes)

    def truncate(self, group: str, num_rows: int) -> None:
        """Back to what the state of the run knows of."""
        for name in (f"{group}posterior", f"{group}sample_stats"):
            if name in self.root:
                self.root[name].attrs["draws"] = num_rows
                for _, array in self.root[name].arrays():
                    array.resize((array.shape[0], num_rows, *array.shape[2:]))

    def sink(self, group: str, stats: tuple[str, ...]) -> StoreSink:
        return StoreSink(self, group, stats)

    def set(self, **attributes: Any) -> None:
        self.root.attrs.update(attributes)

    def add_group(self, name: str, variables: dict[str, tuple[tuple[str, ...], np.ndarray]], attributes: dict[str, Any]) -> None:
        """A group that is not a stream of draws: the kernel, statistics."""
        group = self.root.require_group(name)
        group.attrs.update(attributes)
        for key, (dims, values) in variables.items():
            group.create_array(key, data=np.asarray(values), dimension_names=dims, overwrite=True)


class StoreSink:
    def __init__(self, store: Store, group: str, stats: tuple[str, ...]):
        self.store, self.group, self.stats = store, group, stats

    def write(self, start: int, block: Block) -> None:
        num_rows = start + len(next(iter(block.values())))
        try:
            for name, rows in block.items():
                array = self._array(name, rows)
                array.resize((array.shape[0], num_rows, *array.shape[2:]))
                array[:, start:num_rows] = np.moveaxis(rows, 0, 1)
            for name in {self._home(name) for name in block}:
                self.store.root[name].attrs["draws"] = num_rows
        except OSError as cause:
            hint = f"the first {start} draws are safe: saltus.open({str(self.store.path)!r}) reads them"
            raise cannot_write(self.store.path, cause, hint) from cause

    def _home(self, name: str) -> str:
        return f"{self.group}{'sample_stats' if name in self.stats else 'posterior'}"

    def _array(self, name: str, rows: np.ndarray) -> Any:
        home = self.store.root.require_group(self._home(name))
        if name in home:
            return home[name]
        inner = ("site",) if name == "s" else tuple(f"{name}_dim_{i}" for i in range(rows.ndim - 2))
        return home.create_array(
            name,
            shape=(rows.shape[1], 0, *rows.shape[2:]),
            chunks=(rows.shape[1], self.store.rows, *rows.shape[2:]),
            dtype=rows.dtype,
            dimension_names=("chain", "draw", *inner),
        )


def read_mark(path: Path) -> Path:
    """The path, if a store of ours is there."""
    try:
        mark = json.loads((path / "zarr.json").read_text())["attributes"][_MARK]
    except (OSError, ValueError, KeyError, TypeError) as cause:
        raise StorageError(
            f"{path} is not a store of saltus.",
            expected="a zarr group written by saltus.sample(..., store=...)",
            found=f"{type(cause).__name__}: {cause}",
            hint="it was left as it is",
        ) from cause
    if mark > FORMAT:
        raise StorageError(
            f"{path} was written by a newer saltus.",
            expected=f"format {FORMAT} or older",
            found=f"format {mark}",
            hint="upgrade saltus",
        )
    return path


def check_store(path: Path, overwrite: bool, bytes_expected: float) -> None:
    """StorageError before the run: no folder, not writable, something is there already, or there is no room."""
    zarr_module()
    check_writable(path, "store")
    free = shutil.disk_usage(path.parent).free
    if bytes_expected > free:
        raise StorageError(
            "The draws will not fit on the disk.",
            expected=f"{readable(bytes_expected)} free for {path}",
            found=f"{readable(free)} free",
            hint="another disk, fewer draws, a larger thin=, or keep= something smaller",
        )
    if path.exists():
        if not overwrite:
            raise StorageError(
                f"{path} exists already.",
                expected="a new path",
                found="a file or folder",
                hint="overwrite=True replaces a store of saltus",
            )
        read_mark(path)
