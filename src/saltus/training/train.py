"""Training between two chunks of updates: where it stands, what it shows, and what it returns."""

from __future__ import annotations

import contextlib
import time
import warnings
from typing import Any

import jax
import numpy as np

from .._record import as_size, changed
from ..engine.arguments import Options, read_flag, read_path
from ..engine.drive import drive, interruptible
from ..engine.progress import Silent, Status, make_progress
from ..errors import TrainingError
from .checkpoint import TrainingCheckpoint
from .loss import combine, partition
from .prepare import Job
from .result import Trained
from .update import MOST_UPDATES, advance, history_names
from .watch import describe


class DivergenceWarning(UserWarning):
    """Training ended before its last update, because going on made no sense."""


def train(
    job: Job, num_updates: Any, progress: Any, time_limit: Any, checkpoint: Any, every: Any, overwrite: Any, began: float
) -> Trained:
    """Updates until there are `num_updates`, time is up, Ctrl-C, or training has diverged; at least one, however late it is."""
    num_updates = as_size(num_updates, "num_updates", TrainingError, least=0)
    options = Options.read(progress, time_limit, every, began)
    folder, overwrite = read_path(checkpoint, "checkpoint"), read_flag(overwrite, "overwrite")
    saved = TrainingCheckpoint(folder) if folder else None
    with interruptible() as presses, make_progress(options.progress) as shown, contextlib.ExitStack() as at_the_end:
        if saved:
            at_the_end.callback(saved.free)
        training = Training(job, num_updates, saved, shown)
        if saved and saved.open(*job.mark, overwrite):
            training.go_back(*saved.read(job.state))
        reason = drive(training, shown, presses, options.deadline, options.checkpoint_every)
        presses.last_words()
        training.save()
        if reason == "interrupted":
            shown.tell(f"interrupted after {training.made} of {num_updates} updates; what was made is returned")
        if training.diverged:
            shown.tell(f"training diverged at {training.diverged}")
    if training.stopped:
        warnings.warn(f"Training ended at {training.diverged}", DivergenceWarning, stacklevel=3)
    elif reason == "time limit":
        warnings.warn(f"`time_limit` ended training after {training.made} of {num_updates} updates.", stacklevel=3)
    return training.result()


class Training:
    """What `engine.drive` drives; a step is an update."""

    def __init__(self, job: Job, num_updates: int, saved: TrainingCheckpoint | None, progress: Silent):
        self.job, self.num_updates, self.saved, self.progress = job, num_updates, saved, progress
        self.compile_seconds = 0.0
        self.go_back(job.state, {name: np.zeros(0, np.float32) for name in history_names(job.state.tuner)}, 0.0)

    def go_back(self, state: Any, history: dict[str, np.ndarray], seconds: float) -> None:
        """To where a checkpoint says that it stood."""
        self.state, self.history, self.seconds = state, history, seconds
        self.begun = self.made
        self.diverged = describe(int(state.watch.verdict), self.made, history)

    @property
    def made(self) -> int:
        return len(self.history["jump"])

    @property
    def stopped(self) -> bool:
        return bool(self.diverged) and bool(self.job.plan.stop)

    @property
    def finished(self) -> bool:
        return self.made >= self.num_updates or self.stopped

    @property
    def may_stop(self) -> bool:
        return self.made > self.begun

    @property
    def most_steps(self) -> int:
        return min(MOST_UPDATES, self.num_updates - self.made)

    def compile(self) -> None:
        """An update of nothing: most of it is compilation, the first time."""
        self.progress.say("compiling")
        began = time.perf_counter()
        jax.block_until_ready(self._updates(0))
        self.compile_seconds = time.perf_counter() - began

    def _updates(self, count: int) -> Any:
        job, first = self.job, self.made
        rows = [np.zeros((MOST_UPDATES, job.settings.batch_size), np.int32) for _ in job.visits]
        for table, visits in zip(rows, job.visits, strict=True):
            table[:count] = visits.rows(first, first + count)
        return advance(job.plan, job.target, job.data, self.state, tuple(rows), np.int32(first), np.int32(count))

    def advance(self, steps: int) -> float:
        began = time.perf_counter()
        self.state, rows, made = jax.block_until_ready(self._updates(steps))
        seconds = time.perf_counter() - began
        self.seconds += seconds
        self.history = {name: np.concatenate([x, np.asarray(rows[name])[: int(made)]]) for name, x in self.history.items()}
        self.diverged = self.diverged or describe(int(self.state.watch.verdict), self.made, self.history)
        return seconds

    def between(self) -> None:
        """One phase only."""

    def until(self, deadline: float) -> float:
        return deadline

    def save(self) -> None:
        if self.saved:
            self.saved.write(self.state, self.history, self.seconds)

    def status(self, per_step: float, deadline: float) -> Status:
        last = {name: float(np.mean(series[-20:])) for name, series in self.history.items()}
        figures = [("updates/s", f"{1 / per_step:.3g}")]
        figures += [("energy of data", f"{last.pop('data_energy'):.4g}"), ("of samples", f"{last.pop('model_energy'):.4g}")]
        figures += [("accept", f"{last.pop('acceptance'):.2f}"), ("jump", f"{last.pop('jump'):.3g}")]
        figures += [(name.replace("_", " "), f"{value:.3g}") for name, value in last.items()]
        left = min((self.num_updates - self.made) * per_step, max(deadline - time.monotonic(), 0))
        return Status("training", self.made, self.num_updates, figures, left, counted="updates")

    def result(self) -> Trained:
        job, state = self.job, self.state
        frozen = partition(job.target.params, job.plan.trained)[1]
        with_params = lambda trained: job.target.replace(params=combine(trained, frozen))  # noqa: E731
        return Trained(
            target=with_params(state.trained),
            average=None if state.average is None else with_params(state.average),
            buffer=job.target.space.show(np.asarray(state.buffer)),
            history=self.history,
            kernel=changed(job.kernel, **state.tuner.centre()),
            diverged=self.diverged,
            complete=self.made >= self.num_updates,
            settings=job.settings.as_data(),
            seconds=self.seconds,
            compile_seconds=self.compile_seconds,
        )
