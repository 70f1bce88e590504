"""A checkpoint of training is a folder: `run.npz`, what was asked, and `state.npz`, where it stands; npz with JSON headers.

Functions are not stored, so the call that began it goes on with it: with the same model, data and settings, bit for bit. What is
to differ on purpose is named by `change=`: run.npz then says what is asked from now on. The state keeps marks of what it was
made with, and what no longer fits (the optimiser's numbers, the step sizes found) begins anew when it is read.
"""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_sequence, shown
from ..engine.checkpoint import Checkpoint, check_log_probs, fingerprint, pack, unpack
from ..engine.codec import to_data
from ..engine.files import understood
from ..errors import StorageError, TrainingError
from ..kernels import Kernel
from ..target import Target
from .history import pack_history, unpack_history
from .optimiser import Optimiser
from .settings import TrainingSettings
from .update import State
from .watch import Watch

CHANGES = ("optimiser", "num_steps", "sampler", "retune", "penalty", "data", "batch_size", "reinitialise", "visits")


def read_changes(change: Any) -> tuple[str, ...]:
    """Names of what may differ from the checkpoint."""
    expected = f"names among {', '.join(CHANGES)}"
    names = (
        [] if change is None else [change] if isinstance(change, str) else as_sequence(change, "change", TrainingError, expected)
    )
    if any(not isinstance(name, str) or name not in CHANGES for name in names):
        hint = "a new learning rate is a new optimiser" if "learning_rate" in map(str, names) else ""
        raise TrainingError("`change` is not known.", expected=expected, found=shown(change), hint=hint)
    return tuple(names)


@dataclass
class Asked:
    """All that must be the same for training to go on, or be named by `change`. other: names of further choices."""

    settings: TrainingSettings
    target: Target
    data: str
    kernel: Kernel
    optimiser: Optimiser
    trained: Any
    other: dict[str, Any]

    def files(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(header, arrays) of `run.npz`."""
        told, probes = fingerprint(self.target)
        structure, numbers = to_data(self.kernel, "kernel")
        header = dict(
            settings=self.settings.as_data(),
            target=told,
            data=self.data,
            kernel=structure,
            sampler=repr(self.kernel),
            choices={name: repr(value) for name, value in self.other.items()},
            optimiser=str(jax.tree.structure(self.optimiser.init(self.trained))),
        )
        return header, {**numbers, "probes": probes, "optimiser": self._optimiser_mark()}

    def _optimiser_mark(self) -> np.ndarray:
        """What the optimiser makes of a gradient of ones: its learning rate and its kind show in it."""
        ones = jax.tree.map(jnp.ones_like, self.trained)
        made = self.optimiser.update(ones, self.optimiser.init(self.trained), self.trained)[0]
        return np.asarray([float(jnp.sum(leaf)) for leaf in jax.tree.leaves(made)], np.float32)


def marks(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, str]:
    """{name of CHANGES: what tells one from another}, of what run.npz says."""
    kernel = {name: array for name, array in arrays.items() if name not in ("probes", "optimiser")}
    parts: dict[str, Any] = {name: header["settings"][name] for name in ("num_steps", "batch_size", "reinitialise", "visits")}
    parts |= {name: header["choices"][name] for name in ("retune", "penalty")}
    parts["data"] = header["data"]
    parts["sampler"] = [header["sampler"], header["kernel"], {name: _crc(array) for name, array in sorted(kernel.items())}]
    parts["optimiser"] = [header["optimiser"], [f"{x:.5g}" for x in arrays["optimiser"]]]
    return {name: json.dumps(part, sort_keys=True, default=str) for name, part in parts.items()}


def _crc(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


class TrainingCheckpoint(Checkpoint):
    run_kind, state_kind = "training", "training state"
    what, written_by = "a checkpoint of training", "saltus.training"

    def __init__(self, folder: Path, asked: Asked, changes: Iterable[str] = ()):
        super().__init__(folder)
        self.header, self.arrays = asked.files()
        self.marks, self.allowed = marks(self.header, self.arrays), set(changes)

    def open(self, overwrite: bool) -> bool:
        """Whether there is something to go on with; StorageError where it was begun by another call, or another writes."""
        (self.check_replaceable if overwrite else self.check_place)()
        if not self.exists() or overwrite:
            self.create({**self.header, "run_id": secrets.token_hex(16)}, self.arrays, replace=overwrite)
            return False
        old = self.read_run()  # what is no checkpoint is not locked
        self.take()
        with understood(self.folder / "run.npz"):
            changed = self._check_same(*old)
        self.sign()
        if changed:  # before any state that was made with it
            self.update({**self.header, "run_id": self.run_id}, self.arrays)
        return (self.folder / "state.npz").exists()

    def _check_same(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bool:
        """Whether something is changed on purpose; StorageError where something else is another."""
        for part in ("target", "settings", "choices"):
            for name, value in self.header[part].items():
                if name not in CHANGES and header[part].get(name) != value:
                    raise self._another(name, header[part].get(name), value)
        check_log_probs(self.folder, "log_prob at a probe state", arrays["probes"], self.arrays["probes"])
        before = marks(header, arrays)
        different = [name for name in CHANGES if before[name] != self.marks[name]]
        implied = {"retune"} if "sampler" in self.allowed else set()
        for name in different:
            if name not in self.allowed | implied:
                shown = [_said(name, each) for each in (header, self.header)]
                raise self._another(name, *shown)
        return bool(different)

    def _another(self, name: str, expected: Any, found: Any) -> StorageError:
        on_purpose = f'change="{name}" goes on with the new one, ' if name in CHANGES else ""
        return StorageError(
            f"{self.folder} holds training with another {name}.",
            expected=str(expected),
            found=str(found),
            hint=f"{on_purpose}overwrite=True starts afresh, another path keeps both; the checkpoint was left as it is",
        )

    def write(self, state: State, history: dict[str, np.ndarray], seconds: float, changes: list[dict[str, Any]]) -> None:
        parts = {name: getattr(state, name) for name in ("trained", "average", "optimiser", "buffer", "tuner", "watch")}
        arrays = {name: array for part, tree in parts.items() for name, array in pack(tree, part).items()}
        self.write_state({"seconds": seconds, "marks": self.marks, "changes": changes}, {**arrays, **pack_history(history)})

    def read(self, like: State) -> tuple[State, dict[str, np.ndarray], float, list[dict[str, Any]]]:
        """(state, history, seconds, changes so far); what was made with something that has changed begins as in `like`."""
        found, path = self.read_state(), self.folder / "state.npz"
        assert found
        header, arrays = found
        with understood(path):
            history, seconds, changes = unpack_history(arrays), float(header["seconds"]), list(header["changes"])
            changed = sorted(name for name in CHANGES if header["marks"][name] != self.marks[name])
            same_tree = json.loads(header["marks"]["optimiser"])[0] == self.header["optimiser"]
            made = len(history["jump"])
        new = [name for name, begins in (("optimiser", not same_tree), ("tuner", {"sampler", "retune"} & {*changed})) if begins]
        parts = {name: getattr(like, name) for name in ("trained", "average", "optimiser", "buffer", "tuner", "watch")}
        read = {name: tree if name in new else unpack(tree, arrays, name, path) for name, tree in parts.items()}
        if changed:
            read["watch"] = _anew(read["watch"])
            changes.append({"update": made, "changed": changed})
        return jax.tree.map(jnp.asarray, State(**read)), history, seconds, changes


def _said(name: str, header: dict[str, Any]) -> Any:
    if name in ("data", "sampler", "optimiser"):
        return header[name] if name != "optimiser" else "that of the call"
    return header["settings"].get(name, header["choices"].get(name))


def _anew(watch: Watch) -> Watch:
    """The counts of a watch forgotten: what it saw was of another training. f is compared with what it was at first, as before."""
    none = jnp.zeros((), jnp.int32)
    return Watch(none, none, none, watch.first, watch.largest)
