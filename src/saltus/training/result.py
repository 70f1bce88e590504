"""What training returns: the model, its average, the chains, what happened; saved without pickle."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..engine.arguments import read_path
from ..engine.checkpoint import pack, space_mark, unpack
from ..engine.codec import from_data, to_data
from ..engine.files import check_writable, read_header, read_npz, understood, write_npz
from ..errors import StorageError
from ..kernels import Kernel
from ..target import Target
from .settings import read_model

_KIND = "trained model"


@dataclass
class Trained:
    """A trained model.

    target: with the trained parameters; `saltus.sample(result.target)` draws from it. average: the same with the running
    average of the parameters, None where none was kept. buffer: (chains, ...) where the chains ended, as a person reads
    states. history: one number an update of data_energy, model_energy, acceptance, jump and every retuned setting.
    kernel: as it was at the end. diverged: what went wrong, or "". complete: whether all updates were made.
    """

    target: Target
    average: Target | None
    buffer: np.ndarray
    history: dict[str, np.ndarray]
    kernel: Kernel
    diverged: str = ""
    complete: bool = True
    settings: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0  # of all updates
    compile_seconds: float = 0.0

    @property
    def params(self) -> Any:
        return self.target.params

    @property
    def num_updates(self) -> int:
        return len(self.history["jump"])

    def __repr__(self) -> str:
        text = f"Trained({self.target!r}, {self.num_updates} updates in {self.seconds:.1f} s, {self.kernel!r})"
        if self.num_updates:
            last = {name: float(np.mean(series[-100:])) for name, series in self.history.items()}
            text += f"\n  energy of data {last['data_energy']:.4g}, of samples {last['model_energy']:.4g}"
            text += f"; acceptance {last['acceptance']:.2f}, jump {last['jump']:.3g} (means of the last updates)"
        return text + (f"\n  DIVERGED at {self.diverged}" if self.diverged else "")

    def save(self, path: Any, *, overwrite: bool = False) -> Path:
        """Write the parameters, the chains and the history to one npz file; `saltus.training.load(path, target)` reads it."""
        place = read_path(path, "path")
        assert place is not None
        check_writable(place, "path")
        if place.exists() and not overwrite:
            raise StorageError(f"{place} exists.", expected="a new file", found="a file", hint="overwrite=True replaces it")
        if place.exists() and not _is_ours(place):
            hint = "it was left as it is: choose another path"
            raise StorageError(f"{place} is not a trained model, and is not replaced.", expected="a file of saltus", hint=hint)
        kernel, numbers = to_data(self.kernel, "kernel")
        header = dict(
            kind=_KIND,
            run_id=secrets.token_hex(16),
            space=space_mark(self.target.space),
            kernel=kernel,
            diverged=self.diverged,
            complete=self.complete,
            settings=self.settings,
            seconds=self.seconds,
            averaged=self.average is not None,
        )
        arrays = {**pack(self.params, "params"), **numbers, "buffer": self.buffer, **pack_history(self.history)}
        if self.average is not None:
            arrays |= pack(self.average.params, "average")
        write_npz(place, header, arrays)
        return place


def _is_ours(place: Path) -> bool:
    try:
        return bool(read_header(place)["kind"] == _KIND)
    except StorageError:
        return False


def load(path: Any, target: Target) -> Trained:
    """A model saved by `Trained.save`; `target` is the model with any parameters: functions are not stored."""
    place = read_path(path, "path")
    if place is None:
        raise StorageError("`path` is missing.", expected="a file written by Trained.save", found="None")
    target = read_model(target)
    header, arrays = read_npz(place, _KIND)
    if header["space"] != space_mark(target.space):
        raise StorageError(
            f"{place} holds another model.",
            expected=header["space"],
            found=space_mark(target.space),
            hint="pass the target it was trained from",
        )
    with understood(place):
        params = jax.tree.map(jax.numpy.asarray, unpack(target.params, arrays, "params", place))
        average = unpack(target.params, arrays, "average", place) if header["averaged"] else None
        leaves = {name: array for name, array in arrays.items() if name.startswith("kernel")}
        return Trained(
            target=target.replace(params=params),
            average=None if average is None else target.replace(params=jax.tree.map(jax.numpy.asarray, average)),
            buffer=arrays["buffer"],
            history=unpack_history(arrays),
            kernel=from_data(header["kernel"], leaves),
            diverged=header["diverged"],
            complete=header["complete"],
            settings=header["settings"],
            seconds=header["seconds"],
        )


def pack_history(history: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"history.{name}": series for name, series in history.items()}


def unpack_history(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix("history."): array for name, array in arrays.items() if name.startswith("history.")}
