"""The loop around the compiled update: chunks, progress, time limits, checkpoints."""

from __future__ import annotations

import dataclasses
import time
import warnings
from typing import Any

import jax
import numpy as np

from .._record import as_size, changed
from ..errors import TrainingError
from ..run.progress import Silent, Status, make_progress
from ..run.settings import Options, read_flag, read_path
from .checkpoint import TrainingCheckpoint
from .loss import combine, partition
from .prepare import Job
from .result import Trained
from .update import State, advance, history_names
from .watch import describe

ROWS = 512  # most updates of one chunk: one shape, one compilation
_CHUNK_SECONDS = 0.25


@dataclasses.dataclass
class TrainingStatus(Status):
    """One moment of training."""

    data_energy: float = float("nan")
    model_energy: float = float("nan")
    settings: dict[str, float] = dataclasses.field(default_factory=dict)

    def figures(self) -> list[tuple[str, str]]:
        shown = [("updates/s", f"{self.steps_per_second:.3g}")]
        shown += [("energy of data", f"{self.data_energy:.4g}"), ("of samples", f"{self.model_energy:.4g}")]
        shown += [("accept", f"{self.acceptance:.2f}"), ("jump", f"{self.jump:.3g}")]
        return shown + [(name.replace("_", " "), f"{value:.3g}") for name, value in self.settings.items()]


class DivergenceWarning(UserWarning):
    """Training ended before its last update, because going on made no sense."""


def train(job: Job, num_updates: Any, progress: Any, time_limit: Any, checkpoint: Any, every: Any, overwrite: Any) -> Trained:
    """Updates until there are `num_updates`, time is up, Ctrl-C, or training has diverged."""
    num_updates = as_size(num_updates, "num_updates", TrainingError, least=0)
    options = Options.read(progress, time_limit, every)
    folder, overwrite = read_path(checkpoint, "checkpoint"), read_flag(overwrite, "overwrite")
    began, state, history, seconds = time.monotonic(), job.state, _nothing(job), 0.0
    saved = TrainingCheckpoint(folder) if folder else None
    if saved and saved.open(*job.mark, overwrite):
        state, history, seconds = saved.read(job.state)
    with make_progress(options.progress) as shown:
        compiling = _compile(job, state, shown)
        loop = _Loop(job, state, history, seconds, saved, options.checkpoint_every)
        try:
            deadline = began + (options.time_limit or float("inf"))
            while loop.made < num_updates and not loop.stopped and time.monotonic() < deadline:
                loop.chunk(num_updates, shown)
        except KeyboardInterrupt:
            shown.tell(f"interrupted after {loop.made} of {num_updates} updates; what was made is returned")
        loop.save()
        if loop.diverged:
            shown.tell(f"training diverged at {loop.diverged}")
    if loop.stopped:
        warnings.warn(f"Training ended at {loop.diverged}", DivergenceWarning, stacklevel=3)
    return _result(job, loop, num_updates, compiling)


def _nothing(job: Job) -> dict[str, np.ndarray]:
    return {name: np.zeros(0, np.float32) for name in history_names(job.state.tuner)}


def _compile(job: Job, state: State, shown: Silent) -> float:
    """Seconds that an update of nothing takes: most of it is compilation, the first time."""
    shown.say("compiling")
    began = time.perf_counter()
    jax.block_until_ready(_advance(job, state, 0, 0))
    return time.perf_counter() - began


def _advance(job: Job, state: State, first: int, count: int) -> Any:
    rows = [np.zeros((ROWS, job.settings.batch_size), np.int32) for _ in job.visits]
    for table, visits in zip(rows, job.visits, strict=True):
        table[:count] = visits.rows(first, first + count)
    return advance(job.plan, job.target, job.data, state, tuple(rows), np.int32(first), np.int32(count))


class _Loop:
    """Where training stands."""

    def __init__(self, job: Job, state: State, history: dict, seconds: float, saved: Any, every: float):
        self.job, self.state, self.history, self.seconds = job, state, history, seconds
        self.saved, self.every, self.rate, self.last_save = saved, every, 0.0, time.monotonic()
        self.made = len(history["jump"])
        self.diverged = describe(int(state.watch.verdict), self.made, history)

    @property
    def stopped(self) -> bool:
        return bool(self.diverged) and bool(self.job.plan.stop)

    def chunk(self, num_updates: int, shown: Silent) -> None:
        count = int(np.clip(self.rate * _CHUNK_SECONDS, 1, min(ROWS, num_updates - self.made)))
        began = time.perf_counter()
        state, rows, made = jax.block_until_ready(_advance(self.job, self.state, self.made, count))
        spent = time.perf_counter() - began
        self.state, self.made, self.seconds = state, self.made + int(made), self.seconds + spent
        self.rate = int(made) / spent
        self.history = {name: np.concatenate([self.history[name], np.asarray(rows[name])[: int(made)]]) for name in self.history}
        if not self.diverged:
            self.diverged = describe(int(state.watch.verdict), self.made, self.history)
        shown.show(self._status(num_updates))
        if self.saved and time.monotonic() - self.last_save > self.every:
            self.save()

    def save(self) -> None:
        if self.saved:
            self.saved.write(self.state, self.history, self.seconds)
        self.last_save = time.monotonic()

    def _status(self, num_updates: int) -> TrainingStatus:
        last = {name: float(np.mean(series[-20:])) for name, series in self.history.items()}
        energies = last.pop("data_energy"), last.pop("model_energy")
        status = TrainingStatus("training", self.made, num_updates, steps_per_second=self.rate, counted="updates")
        status.data_energy, status.model_energy = energies
        status.acceptance, status.jump, status.settings = last.pop("acceptance"), last.pop("jump"), last
        status.seconds_left = (num_updates - self.made) / self.rate
        return status


def _result(job: Job, loop: _Loop, num_updates: int, compiling: float) -> Trained:
    frozen = partition(job.target.params, job.plan.trained)[1]
    state, space = loop.state, job.target.space
    with_params = lambda trained: job.target.replace(params=combine(trained, frozen))  # noqa: E731
    return Trained(
        target=with_params(state.trained),
        average=None if state.average is None else with_params(state.average),
        buffer=space.show(np.asarray(state.buffer)),
        history=loop.history,
        kernel=changed(job.kernel, **state.tuner.centre()),
        diverged=loop.diverged,
        complete=loop.made >= num_updates,
        settings=job.settings.as_data(),
        seconds=loop.seconds,
        compile_seconds=compiling,
    )
