"""What a callback sees of a training, and what it may do: look, and stop it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._record import changed, shown
from ..errors import TrainingError
from ..kernels import Kernel
from ..target import Target
from .history import History
from .loss import combine, partition
from .prepare import Job
from .update import State


@dataclass(frozen=True)
class Moment:
    """Where a training stands, between two updates.

    update: how many have been made, of `num_updates`. history: {name: (update,) array} of all of them. metrics: means of
    the same over the last `report_every` updates, and updates_per_second. seconds: of all updates so far.
    """

    update: int
    num_updates: int
    history: History
    metrics: dict[str, float]
    seconds: float
    _job: Job = field(repr=False)
    _state: State = field(repr=False)

    @property
    def params(self) -> Any:
        """The parameters as they are now."""
        return self._whole(self._state.trained)

    @property
    def average_params(self) -> Any:
        """Their running average; None where none is kept."""
        return None if self._state.average is None else self._whole(self._state.average)

    @property
    def target(self) -> Target:
        """The model as it is now."""
        return self._job.target.replace(params=self.params)

    @property
    def samples(self) -> Any:
        """(chains, ...) the states of all chains, as a person reads them."""
        return self._job.target.space.show(np.asarray(self._state.buffer))

    @property
    def kernel(self) -> Kernel:
        """The sampler, with its settings as they are now."""
        found: Kernel = changed(self._job.kernel, **self._state.tuner.centre())
        return found

    def _whole(self, trained: Any) -> Any:
        return combine(trained, partition(self._job.target.params, self._job.recipe.trained)[1])


def read_callback(callback: Any) -> Callable | None:
    if callback is not None and (not callable(callback) or isinstance(callback, type)):
        expected = "a function of one argument, or None; it may return True to stop training"
        raise TrainingError("`callback` is not a function.", expected=expected, found=shown(callback))
    return callback


def call(callback: Callable, moment: Moment) -> bool:
    """Whether it says stop; TrainingError where it fails."""
    try:
        told = callback(moment)
    except Exception as cause:
        raise TrainingError(
            f"The callback failed after update {moment.update}.",
            expected="a function of one argument that returns nothing, or True to stop",
            found=f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}",
            hint="error.trained has the model so far; the checkpoint, if any, has been written: the same call goes on from it",
        ) from cause
    if told is not None and not isinstance(told, (bool, np.bool_)):
        raise TrainingError("The callback returned something.", expected="None, or True to stop training", found=shown(told))
    return bool(told)
