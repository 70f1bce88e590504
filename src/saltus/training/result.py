"""What training returns: the model, its average, the chains, what happened; saved without pickle."""

from __future__ import annotations

import secrets
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np

from .._record import as_flag
from ..engine.arguments import read_path
from ..engine.checkpoint import pack, space_mark, unpack
from ..engine.codec import from_data, to_data
from ..engine.files import check_writable, read_header, read_npz, understood, write_npz
from ..errors import StorageError, TrainingError
from ..kernels import Kernel
from ..target import Target
from .history import pack_history, unpack_history
from .settings import read_model
from .using import draw, infill

_KIND = "trained model"


@dataclass
class Trained:
    """A trained model.

    target: with the trained parameters, which are `params`; `saltus.sample(result.target)` draws from it. average_target: the
    model with the running average of the parameters, which are `average_params`. buffer: (chains, ...) where the chains ended,
    as a person reads states. history: one number an update of loss, data_energy, model_energy, acceptance, jump and every
    retuned setting. kernel: as it was at the end. diverged: what went wrong, or "". complete: whether all updates were made.
    ended: why not: "callback", "time limit", "interrupted", "diverged", "error", or "".

    settings: what was asked for. seconds, compile_seconds: how long it took, and compiling within that.
    """

    target: Target
    average: Target | None  # read as `average_target`
    buffer: Any
    history: dict[str, np.ndarray]
    kernel: Kernel
    diverged: str = ""
    complete: bool = True
    settings: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0  # of all updates
    compile_seconds: float = 0.0
    ended: str = ""
    _average = cast("Target | None", None)  # what `average` was given as; no field

    @property
    def params(self) -> Any:
        return self.target.params

    @property
    def average_params(self) -> Any:
        """The running average of the parameters; None where none was kept."""
        return None if self._average is None else self._average.params

    @property
    def average_target(self) -> Target:
        """The model with the running average of the parameters."""
        if self._average is None:
            raise TrainingError("No average was kept.", expected="pcd(..., average=0.999)", found="average=None")
        return self._average

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

    def sample(self, num: int = 16, *, num_steps: int = 1000, average: bool = False, seed: int = 0) -> Any:
        """New states of the model, each `num_steps` steps of the sampler from a chain of the buffer.

        num: how many, default 16. num_steps: default 1000. average: of the model with the averaged parameters, default False.
        seed: an integer, default 0. Returns (num, ...) states as a person reads them; of a product a dict of them.
        For means with error bars use `saltus.sample(result.target, result.kernel)`.
        """
        return draw(self._model(average), self.kernel, self.buffer, num, num_steps, seed)

    def infill(self, states: Any, known: Any, *, num_steps: int = 1000, average: bool = False, seed: int = 0) -> np.ndarray:
        """States with every site that is not known drawn from the model, given those that are.

        states: (number, ...) one a row; at sites that are not known any value will do.
        known: (d,) True where a site is known; of an image mask.ravel(). num_steps: of the sampler, default 1000.
        average: of the model with the averaged parameters, default False. seed: an integer, default 0.
        Returns the states, filled in. Each begins at random; several draws for one state are several equal rows.
        """
        return infill(self._model(average), self.kernel, states, known, num_steps, seed)

    def _model(self, average: Any) -> Target:
        return self.average_target if as_flag(average, "average", TrainingError) else self.target

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
            averaged=self._average is not None,
            ended=self.ended,
        )
        parts = self.buffer if isinstance(self.buffer, dict) else {"": self.buffer}
        arrays = {**pack(self.params, "params"), **numbers, **pack_history(self.history)}
        arrays |= {f"buffer.{name}" if name else "buffer": states for name, states in parts.items()}
        if self._average is not None:
            arrays |= pack(self.average_params, "average")
        write_npz(place, header, arrays)
        return place


def _old_average(self: Trained) -> Target | None:
    """Deprecated: what 0.1 had under this name, the model with the averaged parameters; None where none was kept."""
    warnings.warn(
        "result.average is a model, whose name does not say so. Type result.average_target for the model, "
        "result.average_params for its parameters; result.average goes with 0.3",
        DeprecationWarning,
        stacklevel=2,
    )
    return self._average


def _keep_average(self: Trained, average: Target | None) -> None:
    self._average = average


Trained.average = property(_old_average, _keep_average)  # type: ignore[assignment]  # after the fields: no default of one


def _is_ours(place: Path) -> bool:
    try:
        return bool(read_header(place)["kind"] == _KIND)
    except StorageError:
        return False


def load(path: Any, target: Target) -> Trained:
    """A model saved by `Trained.save`; `target` is the model with any parameters: functions are not stored.

    path: the file.
    """
    place = read_path(path, "path")
    if place is None:
        raise StorageError("`path` is missing.", expected="a file written by Trained.save", found="None")
    target = read_model(target)
    if not place.exists():
        raise StorageError(f"{place} is not there.", expected="a file written by Trained.save", found="no such file")
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
            buffer=_states(arrays),
            history=unpack_history(arrays),
            kernel=from_data(header["kernel"], leaves),
            diverged=header["diverged"],
            complete=header["complete"],
            settings=header["settings"],
            seconds=header["seconds"],
            ended=header.get("ended", ""),
        )


def _states(arrays: dict[str, np.ndarray]) -> Any:
    """The chains, by parts where states have parts."""
    if "buffer" in arrays:
        return arrays["buffer"]
    return {name.removeprefix("buffer."): array for name, array in arrays.items() if name.startswith("buffer.")}
