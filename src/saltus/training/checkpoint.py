"""A checkpoint of training is a folder: `run.npz`, what was asked, and `state.npz`, where it stands; npz with JSON headers.

Functions are not stored, so the call that began it goes on with it: with the same model, data and settings, bit for bit.
"""

from __future__ import annotations

import secrets
import zlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..engine.checkpoint import Checkpoint, check_log_probs, fingerprint, pack, unpack
from ..engine.codec import to_data
from ..errors import StorageError
from ..kernels import Kernel
from ..target import Target
from .settings import Settings


def asked(settings: Settings, target: Target, data: np.ndarray, kernel: Kernel, optimiser: Any, trained: Any, other: Any) -> tuple:
    """(header, arrays) of `run.npz`: all that must be the same for training to go on. other: names of further choices."""
    told, probes = fingerprint(target)
    structure, numbers = to_data(kernel, "kernel")
    header = dict(
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


class TrainingCheckpoint(Checkpoint):
    run_kind, state_kind = "training", "training state"
    what, written_by = "a checkpoint of training", "saltus.training"

    def open(self, header: dict[str, Any], arrays: dict[str, np.ndarray], overwrite: bool) -> bool:
        """Whether there is something to go on with; StorageError where it was begun by another call, or another writes."""
        (self.check_replaceable if overwrite else self.check_place)()
        if self.exists() and not overwrite:
            old = self.read_run()  # what is no checkpoint is not locked
            self.take()
            self._check_same(old, header, arrays)
            self.sign()
            return (self.folder / "state.npz").exists()
        self.create({**header, "run_id": secrets.token_hex(16)}, arrays, replace=overwrite)
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

    def write(self, state: Any, history: dict[str, np.ndarray], seconds: float) -> None:
        arrays = {**pack(state, "state"), **{f"history.{name}": series for name, series in history.items()}}
        self.write_state({"seconds": seconds}, arrays)

    def read(self, like: Any) -> tuple[Any, dict[str, np.ndarray], float]:
        found = self.read_state()
        assert found
        header, arrays = found
        history = {name.removeprefix("history."): array for name, array in arrays.items() if name.startswith("history.")}
        state = jax.tree.map(jnp.asarray, unpack(like, arrays, "state", self.folder / "state.npz"))
        return state, history, float(header["seconds"])
