"""Training between two chunks of updates: where it stands, what it shows, and what it returns."""

from __future__ import annotations

import contextlib
import secrets
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from .._record import as_size, changed
from ..engine.arguments import Options, read_flag, read_path
from ..engine.drive import drive, interruptible
from ..engine.progress import Silent, Status, make_progress
from ..errors import TrainingError
from .callback import Moment, call, read_callback
from .checkpoint import TrainingCheckpoint, read_changes
from .history import History, Log, longer, means
from .loss import combine, partition
from .prepare import Job
from .result import Trained
from .split import Split, num_shares
from .update import advance, history_names
from .watch import describe

_SHOWN = 20  # updates that the figures on the terminal are means of


class DivergenceWarning(UserWarning):
    """Training ended before its last update, because going on made no sense."""


@dataclass
class Reports:
    """Who is told of a training between updates, and how often."""

    callback: Callable | None
    log: Log | None
    every: int

    @staticmethod
    def read(callback: Any, log: Any, every: Any) -> Reports:
        path = read_path(log, "log")
        return Reports(read_callback(callback), Log(path) if path else None, as_size(every, "report_every", TrainingError))

    def next(self, update: int) -> int:
        """The update after which they are told again."""
        return (update // self.every + 1) * self.every if self.callback or self.log else 2**62


def train(job: Job, num_updates: Any, options: dict[str, Any], began: float) -> Trained:
    """Updates until there are `num_updates`, time is up, Ctrl-C, a callback says stop, or training has diverged; at least one,
    however late it is."""
    num_updates = as_size(num_updates, "num_updates", TrainingError, least=0)
    reports = Reports.read(options["callback"], options["log"], options["report_every"])
    changes, overwrite = read_changes(options["change"]), read_flag(options["overwrite"], "overwrite")
    folder = read_path(options["checkpoint"], "checkpoint")
    asked = Options.read(options["progress"], options["time_limit"], options["checkpoint_every"], began)
    saved = TrainingCheckpoint(folder, job.asked, changes) if folder else None
    with interruptible() as presses, make_progress(asked.progress) as shown, contextlib.ExitStack() as at_the_end:
        if saved:
            at_the_end.callback(saved.free)
        training = Training(job, num_updates, saved, shown, reports)
        training.open(overwrite)
        reason = _driven(training, shown, presses, asked)
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
    return training.result(reason)


def _driven(training: Training, shown: Silent, presses: Any, options: Options) -> str:
    """Why it ended. Where data or a callback fail, what was made is saved first, and goes with the error as `error.trained`."""
    try:
        return drive(training, shown, presses, options.deadline, options.checkpoint_every)
    except TrainingError as error:
        training.save()
        error.trained = training.result("error")  # type: ignore[attr-defined]
        raise


class Training:
    """What `engine.drive` drives; a step is an update."""

    def __init__(self, job: Job, num_updates: int, saved: TrainingCheckpoint | None, progress: Silent, reports: Reports):
        self.job, self.num_updates, self.saved, self.progress, self.reports = job, num_updates, saved, progress, reports
        self.compile_seconds = 0.0
        self.asked_to_stop = False
        shares = num_shares(job.recipe, job.target, job.settings.batch_size)
        self.split = Split(job.recipe, job.target, shares) if shares > 1 else None
        self.go_back(job.state, {name: np.zeros(0, np.float32) for name in history_names(job.state.tuner)}, 0.0, [])

    def open(self, overwrite: bool) -> None:
        """The checkpoint, to go on from where it stands, and the log."""
        if self.saved and self.saved.open(overwrite):
            self.go_back(*self.saved.read(self.job.state))
        if self.reports.log:
            self.reports.log.open(self.saved.run_id if self.saved else secrets.token_hex(16), self.made, overwrite)

    def go_back(self, state: Any, history: History, seconds: float, changes: list[dict[str, Any]]) -> None:
        """To where a checkpoint says that it stood."""
        self.state, self.history, self.seconds, self.changes = state, history, seconds, changes
        self.begun = self.made
        self.told = (self.made, seconds)  # when the last report was made
        self.diverged = describe(int(state.watch.verdict), self.made, history)

    @property
    def made(self) -> int:
        return len(self.history["jump"])

    @property
    def stopped(self) -> bool:
        return bool(self.diverged) and bool(self.job.recipe.stop)

    @property
    def finished(self) -> bool:
        return self.made >= self.num_updates or self.stopped or self.asked_to_stop

    @property
    def may_stop(self) -> bool:
        return self.made > self.begun

    @property
    def most_steps(self) -> int:
        return min(self.job.source.most_updates, min(self.num_updates, self.reports.next(self.made)) - self.made)

    def compile(self) -> None:
        """An update of nothing: most of it is compilation, the first time."""
        self.progress.say("compiling")
        began = time.perf_counter()
        self.job.source.length(self.made, 1)
        jax.block_until_ready(self._updates(0))
        self.compile_seconds = time.perf_counter() - began

    def _updates(self, count: int) -> Any:
        job, first = self.job, self.made
        data, rows = job.source.take(first, count)
        chains = np.zeros((job.source.most_updates, job.settings.batch_size), np.int32)
        chains[:count] = job.visits.rows(first, first + count)
        if self.split:
            return self.split.advance(data, self.state, (rows, chains), first, count)
        return advance(job.recipe, job.target, data, self.state, (rows, chains), np.int32(first), np.int32(count))

    def advance(self, steps: int) -> float:
        steps = self.job.source.length(self.made, steps)
        began = time.perf_counter()
        self.state, rows, made = jax.block_until_ready(self._updates(steps))
        seconds = time.perf_counter() - began
        self.seconds += seconds
        self.history = longer(self.history, {name: np.asarray(series) for name, series in rows.items()}, int(made))
        self.diverged = self.diverged or describe(int(self.state.watch.verdict), self.made, self.history)
        return seconds

    def between(self) -> None:
        """Tell those who want to know."""
        if not (self.reports.callback or self.reports.log) or self.made == self.told[0]:
            return
        if self.made % self.reports.every and not self.finished:
            return
        first = (self.made - 1) // self.reports.every * self.reports.every  # wherever a kill came between
        speed = (self.made - self.told[0]) / max(self.seconds - self.told[1], 1e-9)
        metrics = {**means(self.history, first), "updates_per_second": speed}
        self.told = (self.made, self.seconds)
        if self.reports.log:
            self.reports.log.write(self.made, {**metrics, "seconds": self.seconds})
        if self.reports.callback:
            moment = Moment(self.made, self.num_updates, self.history, metrics, self.seconds, self.job, self.state)
            self.asked_to_stop = call(self.reports.callback, moment)

    def until(self, deadline: float) -> float:
        return deadline

    def save(self) -> None:
        if self.saved:
            self.saved.write(self.state, self.history, self.seconds, self.changes)

    def status(self, per_step: float, deadline: float) -> Status:
        last = means(self.history, max(self.made - _SHOWN, 0))
        figures = [("loss", f"{last.pop('loss'):.3g}")]
        figures += [("energy of data", f"{last.pop('data_energy'):.4g}"), ("of samples", f"{last.pop('model_energy'):.4g}")]
        figures += [("accept", f"{last.pop('acceptance'):.2f}"), ("jump", f"{last.pop('jump'):.3g}")]
        figures += [(name.replace("_", " "), f"{value:.3g}") for name, value in last.items()]
        figures += [("updates/s", f"{1 / per_step:.3g}")]
        left = min((self.num_updates - self.made) * per_step, max(deadline - time.monotonic(), 0))
        return Status("training", self.made, self.num_updates, figures, left, counted="updates")

    def result(self, reason: str) -> Trained:
        job, state = self.job, self.state
        frozen = partition(job.target.params, job.recipe.trained)[1]
        ended = reason or ("diverged" if self.stopped else "callback" if self.made < self.num_updates else "")
        return Trained(
            target=job.target.replace(params=combine(state.trained, frozen)),
            average=None if state.average is None else job.target.replace(params=combine(state.average, frozen)),
            buffer=job.target.space.show(np.asarray(state.buffer)),
            history=self.history,
            kernel=changed(job.kernel, **state.tuner.centre()),
            diverged=self.diverged,
            complete=self.made >= self.num_updates,
            settings={**job.settings.as_data(), "changes": self.changes},
            seconds=self.seconds,
            compile_seconds=self.compile_seconds,
            ended=ended,
        )
