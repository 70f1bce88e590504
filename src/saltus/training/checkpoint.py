"""A checkpoint of training is a folder: `run.npz`, what was asked, and `state.npz`, where it stands; npz with JSON headers.

Functions are not stored, so the call that began it goes on with it: with the same model, data and settings, bit for bit.
"""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import StorageError
from ..kernels import Kernel
from ..run.checkpoint import check_log_probs, fingerprint, pack, unpack
from ..run.codec import to_data
from ..run.files import check_writable, read_npz, replaced, write_npz
from ..spaces import Space
from ..target import Target
from .settings import Settings

_RUN, _STATE = "training", "training state"


def space_mark(space: Space) -> str:
    """What tells one space from another."""
    return f"{space} #{zlib.crc32(space.values.tobytes() + space.labels.tobytes()):08x}"


def asked(settings: Settings, target: Target, data: np.ndarray, kernel: Kernel, optimiser: Any, trained: Any, other: Any) -> tuple:
    """(header, arrays) of `run.npz`: all that must be the same for training to go on. other: names of further choices."""
    told, probes = fingerprint(target)
    structure, numbers = to_data(kernel, "kernel")
    header = dict(
        kind=_RUN,
        settings=settings.as_data(),
        target=told,
        data=f"{len(data)} rows #{zlib.crc32(data.tobytes()):08x}",
        kernel=structure,
        sampler=repr(kernel),
        choices={name: repr(value) for name, value in other.items()},
    )
    return header, {**numbers, "probes": probes, "optimiser": _optimiser_mark(optimiser, trained)}


def _optimiser_mark(optimiser: Any, trained: Any) -> np.ndarray:
    """What the optimiser makes of a gradient of ones: its learning rate and its kind show in it."""

    def first(trained: Any) -> Any:
        ones = jax.tree.map(jnp.ones_like, trained)
        return [jnp.sum(leaf) for leaf in jax.tree.leaves(optimiser.update(ones, optimiser.init(trained), trained)[0])]

    return np.asarray(jnp.stack(jax.jit(first)(trained)))


class TrainingCheckpoint:
    def __init__(self, folder: Path):
        self.folder = folder

    def open(self, header: dict[str, Any], arrays: dict[str, np.ndarray], overwrite: bool) -> bool:
        """Whether there is something to go on with; StorageError where it was begun by another call."""
        check_writable(self.folder, "checkpoint")
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            if not (self.folder / "run.npz").exists():
                raise self._foreign()
            if not overwrite:
                self._check_same(read_npz(self.folder / "run.npz", _RUN), header, arrays)
                return (self.folder / "state.npz").exists()
        aside = self.folder.with_name(self.folder.name + ".aside")
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        write_npz(aside / "run.npz", header, arrays)
        with replaced(self.folder):
            aside.rename(self.folder)
        return False

    def _check_same(self, old: tuple, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        for part in ("target", "settings", "choices"):
            for name, value in header[part].items():
                if old[0][part].get(name) != value:
                    raise self._another(name, old[0][part].get(name), value)
        for name in ("data", "sampler", "kernel"):
            if old[0][name] != header[name]:
                raise self._another(name, old[0][name], header[name])
        check_log_probs(self.folder, "log_prob at a probe state", old[1]["probes"], arrays["probes"])
        for name in sorted({*arrays} - {"probes"}):
            if (
                name not in old[1]
                or old[1][name].shape != arrays[name].shape
                or not np.allclose(old[1][name], arrays[name], rtol=1e-5)
            ):
                raise self._another(name.split(".")[0], "that of the call it was begun by", "another")

    def _another(self, name: str, expected: Any, found: Any) -> StorageError:
        return StorageError(
            f"{self.folder} holds training with another {name}.",
            expected=str(expected),
            found=str(found),
            hint="overwrite=True starts afresh, another path keeps both; the checkpoint was left as it is",
        )

    def _foreign(self) -> StorageError:
        return StorageError(
            f"{self.folder} is not a checkpoint of training.",
            expected="a folder written by saltus.training, with run.npz in it",
            found="a file" if self.folder.is_file() else "a folder without run.npz",
            hint="it was left as it is: choose another path",
        )

    def write(self, state: Any, history: dict[str, np.ndarray], seconds: float) -> None:
        arrays = {**pack(state, "state"), **{f"history.{name}": series for name, series in history.items()}}
        write_npz(self.folder / "state.npz", {"kind": _STATE, "seconds": seconds}, arrays)

    def read(self, like: Any) -> tuple[Any, dict[str, np.ndarray], float]:
        header, arrays = read_npz(self.folder / "state.npz", _STATE)
        history = {name.removeprefix("history."): array for name, array in arrays.items() if name.startswith("history.")}
        state = jax.tree.map(jnp.asarray, unpack(like, arrays, "state", self.folder / "state.npz"))
        return state, history, float(header["seconds"])
