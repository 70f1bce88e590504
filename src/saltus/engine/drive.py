"""The plain Python between compiled chunks of any long job: pace, progress, checkpoints, interrupts, time limits."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import numpy as np

from .loop import agree
from .progress import Silent, Status

INTERRUPTED, TIME_LIMIT = "interrupted", "time limit"  # why a job is incomplete
_CHUNK_SECONDS, _LONGEST_CHUNK = 0.25, 4.0
_FEWEST_STEPS = 32  # of a chunk that does not take too long with them: every chunk is given its memory anew, page by page


class Job(Protocol):
    """Some number of steps, made in chunks: a run, or training."""

    @property
    def finished(self) -> bool: ...

    @property
    def may_stop(self) -> bool:
        """Whether there is something to return, or to go on from, when time is up."""

    @property
    def most_steps(self) -> int:
        """Of the next chunk."""

    def compile(self) -> None:
        """Make no step."""

    def advance(self, steps: int) -> float:
        """Make so many steps; the seconds they took."""

    def between(self) -> None:
        """What is to be done between two chunks: on to the next phase."""

    def until(self, deadline: float) -> float:
        """The moment that the next chunk should not go beyond."""

    def save(self) -> None:
        """Write a checkpoint, where there is one."""

    def status(self, per_step: float, deadline: float) -> Status:
        """per_step: seconds."""


def drive(job: Job, progress: Silent, presses: Presses, deadline: float, checkpoint_every: float) -> str:
    """Go on until the job is finished, interrupted or out of time; returns "" or why it is incomplete."""
    if job.finished:
        return ""
    job.compile()
    job.between()
    saved, steps, per_step, stepped = time.monotonic(), 1, 0.0, False
    while not job.finished:
        now = time.monotonic()
        # However early the press: one step is made, so that there is something to return.
        reason = INTERRUPTED if presses.count and stepped else TIME_LIMIT if now >= deadline and job.may_stop else ""
        steps, stop, save = _agree(steps, reason, now - saved > checkpoint_every)
        if stop or save:
            job.save()
            saved = now
        if stop:
            return stop
        chunk = min(steps, job.most_steps)
        seconds, stepped = job.advance(chunk), True
        per_step += (1.0 if not per_step or chunk < 16 else 0.5) * (seconds / chunk - per_step)
        if progress.heard or jax.process_count() > 1:  # a process that is silent helps the one that speaks
            progress.show(job.status(per_step, deadline))
        job.between()
        steps = _paced(chunk, seconds, job.until(deadline) - time.monotonic())
    job.save()
    return ""


def _paced(steps: int, seconds: float, seconds_left: float) -> int:
    """Steps of the next chunk, grown gently from the first, never far beyond the deadline."""
    wanted = steps_of_a_chunk(max(seconds, 1e-6) / steps, max(seconds_left, 0))
    return max(min(wanted, 8) if steps == 1 else wanted, 1)


def steps_of_a_chunk(per_step: float, seconds_left: float = np.inf) -> int:
    """A quarter of a second; where steps are slow, some seconds."""
    seconds = max(_CHUNK_SECONDS, min(_FEWEST_STEPS * per_step, _LONGEST_CHUNK))
    return int(min(seconds, seconds_left) / per_step)


_REASONS = ("", INTERRUPTED, TIME_LIMIT)


def _agree(steps: int, reason: str, save: bool) -> tuple[int, str, bool]:
    """What process 0 decides, everywhere: chains on all hosts take the same chunks."""
    told = agree(np.array([steps, _REASONS.index(reason), save]))
    return int(told[0]), _REASONS[int(told[1])], bool(told[2])


@dataclass
class Presses:
    """Ctrl-C or SIGTERM, as often as it came: noted and acted on between chunks; at `patience` presses it stops at once."""

    count: int = 0
    patience: int = 2

    def last_words(self) -> None:
        """What follows is short and saves what there is."""
        self.count, self.patience = 0, 3


@contextlib.contextmanager
def interruptible(patience: int = 2, count: int = 0) -> Iterator[Presses]:
    """Count presses of Ctrl-C, and SIGTERMs, instead of ending; only the main thread can.

    patience: at so many presses KeyboardInterrupt is raised. count: of those that came before.
    """
    presses = Presses(count, patience)
    if threading.current_thread() is not threading.main_thread():
        yield presses
        return

    def note(number: int, frame: Any) -> None:
        presses.count += 1
        if presses.count >= presses.patience:
            raise KeyboardInterrupt

    # A SIGTERM that the program handles itself is its own affair.
    noted = [signal.SIGINT] + [signal.SIGTERM] * (signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
    before = {number: signal.signal(number, note) for number in noted}
    try:
        yield presses
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
