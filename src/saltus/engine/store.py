"""`store="run.zarr"`: blocks of draws streamed to a zarr v3 store that opens lazily, while the run goes on or after a kill.

Codes are stored, one zarr chunk per block; the labels a person reads are put on at reading. Root attributes are the
run's; the group attribute `draws` says how many rows count: what lies beyond was being written when the run ended.
Chunks are safe on the disk before `draws` counts them. What counts is never taken away nor changed under a reader: a
chunk is only ever replaced by one with the same rows and more.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import StorageError
from ..spaces import Space
from . import disk
from .arguments import readable
from .files import FORMAT, Taking, cannot_write, check_writable, put_folder
from .lock import Lock, is_held, myself
from .recording import Block

_MARK = "saltus_store"
CHECKED = 5  # the first format with checksums
_LOCKED = Path("kernel", "zarr.json")  # the file that is locked: written once, with the store itself
_EVERY, _SHARE = 2.0, 40  # seconds between two commits, at least so many times what a commit takes
Group = tuple[dict[str, tuple[tuple[str, ...], np.ndarray]], dict[str, Any]]  # (variables, attributes)


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
        self.files: Any = None
        self.lock: Lock | None = None
        self.uncounted: dict[str, int] = {}  # rows of each group that are written, and not counted yet
        self.committed, self.pause = 0.0, 0.0

    def create(self, attributes: dict[str, Any], groups: dict[str, Group], replace: Taking | None) -> None:
        """The store with its groups; it appears as a whole and locked. replace: raises unless what is there may be replaced."""
        place = disk.real(self.path)
        aside = disk.beside(place)
        attributes = {**attributes, _MARK: FORMAT, "writer": myself()}
        lock = Lock(aside / _LOCKED, self.path)
        with self._written_to():
            try:
                disk.folder(aside)
                self._open(aside, attributes)
                for name, group in groups.items():
                    self.add_group(name, *group)
                self.files.flush()
                lock.take(dict)
                put_folder(aside, place, replace)
            except BaseException:
                lock.free()
                disk.remove(aside)
                raise
            self.lock = Lock(place / _LOCKED, self.path).holding(lock)
            self._open(place)

    def _open(self, place: Path, attributes: dict[str, Any] | None = None) -> None:
        """The files there as zarr writes them; with attributes a new group, marked from its first write."""
        zarr = zarr_module()
        from .zarr_files import Written

        self.files = Written(place)
        if attributes is None:
            self.root = zarr.open_group(self.files, mode="r+")
        else:
            self.root = zarr.create_group(self.files, attributes=attributes, zarr_format=3)

    def take(self) -> None:
        """Become the only writer; StorageError where there is one already."""
        place = disk.real(read_mark(self.path))
        with self._written_to():
            self.lock = self.lock or Lock(place / _LOCKED, self.path)
            self.lock.take(lambda: _attributes(place).get("writer"))

    def free(self) -> None:
        if self.lock:
            self.lock.free()

    def reopen(self, **attributes: Any) -> None:
        self.take()
        with self._written_to():
            open_checked(self.path)  # metadata that is damaged is not built upon
            self._open(disk.real(self.path))
        self.set(**attributes, writer=myself())

    def go_back(self, group: str, num_rows: int, num_known: int) -> None:
        """To what the state of the run knows of; StorageError where the store has less than that.

        num_rows: rows that only the store has. num_known: those and the ones that the state has too.
        Rows beyond are no longer counted; nothing is deleted.
        """
        homes = [name for name in (f"{group}posterior", f"{group}sample_stats") if name in self.root]
        arrays = [array for home in homes for _, array in self.root[home].arrays()]
        counted = [self.root[home].attrs.get("draws", 0) for home in homes]
        found = min([*(array.shape[1] for array in arrays), *counted], default=0)
        if found < num_rows:
            raise StorageError(
                f"{self.path} has fewer draws than its checkpoint counts on.",
                expected=f"at least {num_rows} draws of each chain",
                found=f"{found}",
                hint=f"the first {found} are safe. Restore the store from a copy, or start afresh with overwrite=True",
            )
        self._check_chunks(arrays, num_rows)
        with self._written_to():
            for home in homes:
                self.root[home].attrs.update(draws=min(found, num_known), provisional=0)
            self.files.flush()

    def _check_chunks(self, arrays: list[Any], num_rows: int) -> None:
        """StorageError where a chunk of the first rows is not there."""
        from .zarr_files import CODECS

        for array in arrays:
            if tuple(c.to_dict()["name"] for c in array.compressors) != tuple(c.to_dict()["name"] for c in CODECS):
                hint = "saltus 0.1 can finish this run"
                raise StorageError(f"{self.path} was written by an older saltus.", expected="chunks with checksums", hint=hint)
            for start in range(0, num_rows, self.rows):
                if not (self.files.root / chunk_key(array, start // self.rows)).exists():
                    raise StorageError(
                        f"{self.path} lacks draws.",
                        expected=f"{chunk_key(array, start // self.rows)}",
                        found="no such file",
                        hint=f"the first {start} draws are safe. Restore the store from a copy, or start afresh",
                    )

    def sink(self, group: str, stats: tuple[str, ...]) -> StoreSink:
        return StoreSink(self, group, stats)

    def set(self, **attributes: Any) -> None:
        """Attributes of the run, safe once this returns."""
        with self._written_to():
            self.root.attrs.update(attributes)
            self.files.flush()

    def add_group(self, name: str, variables: dict[str, tuple[tuple[str, ...], np.ndarray]], attributes: dict[str, Any]) -> None:
        """A group that is not a stream of draws: the kernel, statistics."""
        from .zarr_files import CODECS

        with self._written_to():
            group = self.root.require_group(name)
            if attributes:
                group.attrs.update(attributes)
            for key, (dims, values) in variables.items():
                options: dict[str, Any] = {"compressors": CODECS, "config": {"write_empty_chunks": True}, "overwrite": True}
                group.create_array(key, data=np.asarray(values), dimension_names=dims, **options)

    def commit(self) -> None:
        """Count what was written: first the rows, then the numbers that count them."""
        if not self.uncounted:
            return
        began = time.monotonic()
        with self._written_to():
            self.files.flush()
            for home, num_rows in self.uncounted.items():
                for _, array in self.root[home].arrays():
                    if array.shape[1] < num_rows:
                        array.resize((array.shape[0], num_rows, *array.shape[2:]))
            self.files.flush()
            for home, num_rows in self.uncounted.items():
                self.root[home].attrs["draws"] = num_rows
            self.files.flush()
        self.uncounted = {}
        self.committed = time.monotonic()
        self.pause = max(_EVERY, _SHARE * (self.committed - began))

    def commit_if_due(self) -> None:
        if time.monotonic() - self.committed > self.pause:
            self.commit()

    def num_safe(self, home: str) -> int:
        """Draws of a group that are counted on the disk."""
        try:
            return int(json.loads((self.files.root / home / "zarr.json").read_text())["attributes"]["draws"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    @contextlib.contextmanager
    def _written_to(self, home: str = "") -> Iterator[None]:
        """What the disk refuses is a StorageError that says what is safe."""
        try:
            yield
        except (OSError, KeyError) as cause:
            gone = isinstance(cause, (KeyError, FileNotFoundError))
            moved = FileNotFoundError(2, "it was moved or deleted while the run wrote to it")
            failure = cause if isinstance(cause, OSError) and not gone else moved
            safe = self.num_safe(home) if home else 0
            hint = f"the first {safe} draws are safe: saltus.open({str(self.path)!r}) reads them" if safe else ""
            raise cannot_write(self.path, failure, hint) from cause


class StoreSink:
    def __init__(self, store: Store, group: str, stats: tuple[str, ...]):
        self.store, self.group = store, group
        self.stats = tuple(name for name in stats if not (group == "weighted_" and name == "log_weight"))  # beside its draws

    def write(self, start: int, block: Block) -> None:
        """Rows start, start + 1, ...; a block is a chunk of each array, of which the last may be filled in part."""
        store, num_rows = self.store, start + len(next(iter(block.values())))
        from .zarr_files import encoded

        with store._written_to(self._home("lp")):
            for name, rows in block.items():
                array = self._array(name, rows)
                if len(rows):
                    store.files.put(chunk_key(array, start // store.rows), encoded(rows, store.rows))
                store.uncounted[self._home(name)] = num_rows
            store.commit_if_due()

    def mark_provisional(self) -> None:
        """These rows will be replaced when the run goes on."""
        with self.store._written_to():
            for home in {self._home("s"), self._home("lp")} & set(self.store.root.group_keys()):
                self.store.root[home].attrs["provisional"] = 1

    def _home(self, name: str) -> str:
        return f"{self.group}{'sample_stats' if name in self.stats else 'posterior'}"

    def _array(self, name: str, rows: np.ndarray) -> Any:
        from .zarr_files import CODECS

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
            compressors=CODECS,
        )


def chunk_key(array: Any, number: int) -> str:
    """Where the rows of block `number` are: all chains and sites are in one chunk."""
    return "/".join([array.path, "c", "0", str(number), *("0" for _ in array.shape[2:])])


def open_checked(path: Path) -> Any:
    """The zarr group to read from: what has checksums is held against them."""
    zarr = zarr_module()
    checked = _attributes(read_mark(path)).get(_MARK, 0) >= CHECKED
    return zarr.open_group(checked_files(path) if checked else str(path), mode="r")


def new_files(path: Path) -> tuple[Any, Any]:
    """(the files of a zarr folder to be written whole and with checksums, the codecs that add those of chunks)."""
    from .zarr_files import CODECS, Written

    return Written(path), CODECS


def checked_files(path: Path) -> Any:
    """The files of a zarr folder, held against the checksums that `new_files` gave them."""
    from .zarr_files import Checked

    return Checked(disk.real(path), read_only=True)


class Reader:
    """Draws of one array of a store, read when asked: the first `count` of the run that was opened, or StorageError.

    Whatever happens to the store meanwhile, no other numbers are returned: what was read counts only if, afterwards, the
    same run is there and still counts on it.
    """

    def __init__(self, path: Path, array: Any, home: str, count: int, run_id: Any):
        self.path, self.array, self.home, self.count, self.run_id = path, array, home, count, run_id

    def read(self, key: tuple) -> np.ndarray:
        try:
            values = self.array.oindex[key]
        except Exception as cause:
            self._check_there()
            raise self._damaged(cause) from cause
        self._check_there()
        return values

    def _check_there(self) -> None:
        try:
            run_id, count = _attributes(self.path).get("run_id"), _attributes(self.path / self.home).get("draws", 0)
        except (OSError, ValueError, LookupError, TypeError) as cause:
            raise StorageError(
                f"{self.path} is no longer there.", expected="the run that was opened", found=f"{type(cause).__name__}: {cause}"
            ) from cause
        if run_id != self.run_id or count < self.count:
            raise StorageError(
                f"{self.path} has changed since it was opened.",
                expected=f"{self.count} draws of run {self.run_id}",
                found=f"{count} draws of run {run_id}",
                hint="open it again",
            )

    def _damaged(self, cause: Exception) -> StorageError:
        whole, bad = self.chunks()
        safe = min(bad, default=0) * self.array.chunks[1]
        return StorageError(
            f"Draws of {self.array.path} in {self.path} are damaged or missing.",
            expected=f"{len(whole) + len(bad)} chunks with right checksums",
            found=f"{len(bad)} without; {type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}",
            hint=f"its first {safe} draws are safe. Restore the store from a copy; saltus.verify(path) looks at all of it",
        )

    def chunks(self) -> tuple[list[int], list[int]]:
        """Numbers of the chunks that can be read, and of those that cannot."""
        rows = self.array.chunks[1]
        found: tuple[list[int], list[int]] = ([], [])
        for number in range(-(-self.count // rows)):
            try:
                self.array[:, number * rows : min((number + 1) * rows, self.count)]
                found[0].append(number)
            except Exception:
                found[1].append(number)
        return found


def _attributes(path: Path) -> dict[str, Any]:
    return json.loads((path / "zarr.json").read_text())["attributes"]


@contextlib.contextmanager
def taken(path: Path) -> Iterator[None]:
    """The store there, to be replaced: StorageError unless it is ours, nothing else is in it, and nobody writes to it."""
    read_mark(path)
    foreign = [file for file in path.rglob("*") if not file.is_dir() and not _part_of_a_store(file.relative_to(path).parts)]
    if foreign:
        raise StorageError(
            f"{path} holds something that is not part of a store, and is not replaced.",
            expected="what saltus wrote",
            found=str(foreign[0].relative_to(path)),
            hint="it was left as it is: move that elsewhere, or choose another path",
        )
    lock = Lock(path / _LOCKED, path)
    try:
        if lock.file.exists():
            lock.take(lambda: _attributes(path).get("writer"))
        yield
    except OSError as cause:
        raise cannot_write(path, cause) from cause
    finally:
        lock.free()


def _part_of_a_store(parts: tuple[str, ...]) -> bool:
    """Metadata, a chunk, or what a kill left of one."""
    name = parts[-1]
    return name == "zarr.json" or name.startswith(disk.ASIDE) or ("c" in parts and (name.isdecimal() or name == "c"))


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
    if type(mark) is not int or mark > FORMAT:
        raise StorageError(
            f"{path} was written by a newer saltus.",
            expected=f"format {FORMAT} or older",
            found=f"format {mark}",
            hint="upgrade saltus",
        )
    return path


def is_store_of(path: Path, header: dict[str, Any]) -> bool:
    """Whether a store of the run that this header of a checkpoint describes is there.

    By the id of the run. Runs of saltus 0.1 have none: there by what determines the draws.
    """
    try:
        told = json.loads((path / "zarr.json").read_text())["attributes"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if header.get("run_id"):
        return bool(told.get("run_id") == header["run_id"])
    settings = header["settings"]
    same = {"sampler": header["kernel_repr"], "seed": str(settings["seed"])}
    same |= {name: settings[name] for name in ("num_chains", "num_warmup")}
    return not told.get("run_id") and all(told.get(name) == value for name, value in same.items())


def check_own_store(path: Path | None, header: dict[str, Any]) -> None:
    """StorageError where a run that goes on would write to a store that is not its own."""
    if path is None:
        return
    if not path.exists():
        raise StorageError(
            "The store of this run is not there.",
            expected=f"its draws at {path}",
            found="nothing",
            hint="a checkpoint that is copied or moved takes its store with it, in the same place relative to it",
        )
    if not is_store_of(read_mark(path), header):
        raise StorageError(
            f"{path} holds another run.",
            expected="the store that was begun together with the checkpoint",
            found="the store of a run with another id" if header.get("run_id") else "a run with other settings",
            hint="both were left as they are: put the store of this run there, or start afresh under another path",
        )


def writer_of(path: Path) -> tuple[bool | None, Any]:
    """(whether a process writes to the store now, the one that last did)."""
    return is_held(path / _LOCKED), _attributes(path).get("writer")


def check_store(path: Path, overwrite: bool, bytes_expected: float) -> None:
    """StorageError before the run: no folder, not writable, something is there already, or there is no room."""
    zarr_module()
    check_writable(path, "store")
    free = shutil.disk_usage(disk.real(path).parent).free
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
        with taken(path):
            pass
