"""The plain Python between compiled chunks: pace, progress, blocks, checkpoints, interrupts, time limits. It never adapts."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np

from ..diagnostics.worth import Worth
from ..kernels import Kernel
from ..target import Target
from .checkpoint import Checkpoint, pack, unpack
from .kept import Kept
from .loop import DRAWS, WARMUP, Carry, advance, agree, chain_keys, fetch, first_does, per_chain, spread, spread_carry
from .progress import EnergyTrace, Silent, Status
from .recording import Recording
from .settings import Settings
from .sinks import Block
from .thinning import FEWEST_STEPS, choose_thin, warmup_worth

_CHUNK_SECONDS, _LONGEST_CHUNK = 0.25, 4.0
_FEWEST_STEPS = 32  # of a chunk that does not take too long with them: every chunk is given its memory anew, page by page


@dataclass
class Times:
    """Seconds of wall-clock, over all sessions of a run."""

    compile: float = 0.0
    warmup: float = 0.0
    sampling: float = 0.0


@dataclass
class Run:
    """A run between two chunks."""

    settings: Settings
    recording: Recording
    kernel: Kernel
    target: Target
    mesh: Any
    chains: np.ndarray  # (chains,) their numbers
    rows: int  # of a block
    carry: Carry
    kept: Kept
    checkpoint: Checkpoint | None = None
    phase: int = WARMUP
    done: int = 0  # steps of this phase
    times: Times = field(default_factory=Times)
    measured: float = 0.0  # steps per effective draw, where a race measured them before the run
    raced: int = 0  # evaluations that it made
    steps_per_draw: int = 0  # 0 until chosen
    thinning: str = "as given"  # or why so many
    deadline: float = np.inf
    keyed: int = 0  # the phase that `keys` are of
    keys: Any = None
    full: Any = None  # (start, block) of a full block that has not been handed over yet

    def __post_init__(self) -> None:
        if isinstance(self.settings.thin, int):
            self.steps_per_draw = self.settings.thin

    @property
    def thin(self) -> int:
        return self.steps_per_draw if self.phase == DRAWS else 1

    @property
    def total(self) -> int:
        return self.settings.num_draws * self.steps_per_draw if self.phase == DRAWS else self.settings.num_warmup

    @property
    def doing(self) -> str:
        return "sampling" if self.phase == DRAWS else "warm-up"

    @property
    def num_rows(self) -> int:
        """Draws of this phase so far."""
        return self.done // self.thin

    @property
    def num_draws(self) -> int:
        return self.num_rows if self.phase == DRAWS else 0

    @property
    def block_start(self) -> int:
        """The first row of the block that the next step belongs to."""
        return self.num_rows // self.rows * self.rows

    @property
    def finished(self) -> bool:
        return self.phase == DRAWS and self.done == self.total

    def advance(self, steps: int) -> None:
        """That many steps, within this block and phase. While they are made, the block before is handed over, if it was full."""
        start = self.block_start
        clock = {"first": np.int32(self.done), "stop": np.int32(self.done + steps)}
        clock |= {"start": np.int32(start), "thin": np.int32(self.thin)}
        try:
            self.carry = advance(self.mesh, self.recording, self.kernel, self.target, self.words(), self.carry, clock)
        finally:
            self.hand_over_full()
        jax.block_until_ready(self.carry)
        self.done += steps
        if self.num_rows - start == self.rows:
            self.full = start, self.carry.block

    def words(self) -> Any:
        """(chains, 2) of their keys in this phase, laid out over the devices."""
        if self.keyed != self.phase:
            self.keyed, self.keys = self.phase, spread(self.mesh, chain_keys(self.settings.seed, self.phase, self.chains))
        return self.keys

    def steps_left_in_block(self) -> int:
        return min(self.total, (self.block_start + self.rows) * self.thin) - self.done

    def rows_since(self, row: int, names: tuple[str, ...]) -> Block:
        """Rows of the block now on the devices, from `row` of this phase to the newest."""
        start = max(self.num_rows - 1, 0) // self.rows * self.rows
        host = fetch({name: self.carry.block[name] for name in names})
        kept = slice(max(row - start, 0), self.num_rows - start)
        return {name: rows[kept, : self.settings.num_chains] for name, rows in host.items()}

    def hand_over_full(self) -> None:
        """The last full block, if it is still here."""
        if self.full:
            (start, block), self.full = self.full, None
            self._write(start, self.rows, block)

    def hand_over(self, unfinished: bool = False) -> None:
        """All rows of this phase that are still here, those of the block being filled with them."""
        self.hand_over_full()
        self._write(self.block_start, self.num_rows - self.block_start, self.carry.block, unfinished)

    def _write(self, start: int, num_rows: int, block: dict[str, jax.Array], unfinished: bool = False) -> None:
        """Rows start..start + num_rows go where this phase is kept."""
        if num_rows and self.kept.wants(self.phase):
            rows = {name: x[:num_rows, : self.settings.num_chains] for name, x in fetch(block).items()}
            self.kept.write(self.phase, start, rows, unfinished)

    def next_phase(self) -> bool:
        """From warm-up to draws, once its last rows are handed over; whether that was now."""
        over = self.phase == WARMUP and self.done == self.total
        if over:
            self.hand_over()
            if not self.steps_per_draw:
                self.choose_thin()
            self.phase, self.done = DRAWS, 0
        return over

    def choose_thin(self) -> None:
        """Once, from the last two thirds of the warm-up or what is still on the devices of them; process 0 decides."""
        names = tuple(name for name in ("lp", "s") if name in self.carry.block)
        long = self.settings.num_warmup >= FEWEST_STEPS
        found = warmup_worth(self.target.space, self.rows_since(self.total // 3, names)) if long else None
        if self.measured and not (found and self.measured <= found.steps < np.inf):
            found = Worth(self.measured, 1.0, "in the race")
        per_step = self.times.warmup / max(self.settings.num_warmup, 1)
        parity = self.kernel.keeps_parity(self.target.space)
        least = 2 * self.raced / max(self.kernel.evaluations(self.target), 1)
        left = np.inf if self.checkpoint else self.deadline - time.monotonic()  # a run that can go on is not cut to fit
        chosen = choose_thin(found, self.settings, per_step, parity, left, least)
        self.steps_per_draw = int(agree(np.array(chosen.thin)))
        self.thinning = chosen.why
        if self.kept.store:
            first_does(partial(self.kept.store.set, thin=self.steps_per_draw, thinning=self.thinning))

    def end(self) -> None:
        """The rows of the block that was being filled; the state keeps them too."""
        self.hand_over(unfinished=True)
        if not self.num_draws:  # no draw at all: none of every variable
            none = {name: np.zeros((0, self.settings.num_chains, *x.shape[2:]), x.dtype) for name, x in self.carry.block.items()}
            self.kept.write(DRAWS, 0, none, unfinished=True)

    def rows_written(self) -> dict[int, int]:
        """By phase: rows that have left the state."""
        return {self.phase: self.block_start} | ({WARMUP: self.settings.num_warmup} if self.phase == DRAWS else {})

    def save(self) -> None:
        """Write the state; blocks it counts on are written already."""
        self.hand_over_full()
        if not self.checkpoint:
            return
        filled = self.num_rows - self.block_start
        cropped = per_chain(
            fetch(self.carry),
            lambda x, axis: x[: self.settings.num_chains] if axis == 0 else x[:filled, : self.settings.num_chains],
        )
        header = {"phase": self.phase, "done": self.done, "times": vars(self.times)}
        header |= {"thin": self.steps_per_draw, "thinning": self.thinning}
        sums = {f"sum.{name}": value for name, value in (self.kept.statistics.sums if self.kept.statistics else {}).items()}
        first_does(partial(self.checkpoint.write_state, header, {**pack(cropped, "carry"), **sums}))

    def restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go back to a state that `save` wrote."""
        self.phase, self.done, self.times = header["phase"], header["done"], Times(**header["times"])
        self.steps_per_draw, self.thinning = header["thin"], header["thinning"]
        filled, chains = self.num_rows - self.block_start, self.settings.num_chains
        padded = self.carry.rate.shape[0]
        like = per_chain(
            self.carry,
            lambda x, axis: jax.ShapeDtypeStruct((chains, *x.shape[1:]) if axis == 0 else (filled, chains, *x.shape[2:]), x.dtype),
        )
        assert self.checkpoint
        host = unpack(like, arrays, "carry", self.checkpoint.folder / "state.npz")
        host = per_chain(host, lambda x, axis: _grown(x if axis == 0 else _with_rows(x, self.rows), padded, axis))
        self.carry = spread_carry(self.mesh, host)
        self.kept.go_back(self.rows_written(), {n.removeprefix("sum."): a for n, a in arrays.items() if n.startswith("sum.")})


def _grown(x: np.ndarray, num_chains: int, axis: int) -> np.ndarray:
    """Repeat the last chain where devices outnumber chains; such copies are never kept."""
    last = np.take(x, [-1], axis)
    return np.concatenate([x, np.repeat(last, num_chains - x.shape[axis], axis)], axis)


def _with_rows(x: np.ndarray, rows: int) -> np.ndarray:
    return np.concatenate([x, np.zeros((rows - len(x), *x.shape[1:]), x.dtype)])


def drive(run: Run, progress: Silent, presses: Presses, time_limit: float | None, checkpoint_every: float) -> str:
    """Go on until the run is finished, interrupted or out of time; returns "" or why it is incomplete."""
    if run.finished:
        return ""
    deadline = run.deadline = time.monotonic() + time_limit if time_limit else np.inf
    saved, steps, report = time.monotonic(), 1, Report(progress, deadline)
    progress.say(f"compiling {run.kernel!r} for {run.settings.num_chains} chains on {run.target.space}")
    run.times.compile += _timed(run, 0)  # no step: one executable serves any number of them
    run.next_phase()
    while not run.finished:
        now = time.monotonic()
        reason = "interrupted" if presses.count else "time limit" if now >= deadline else ""
        steps, stop, save = _agree(steps, reason, now - saved > checkpoint_every)
        if stop or save:
            run.save()
            saved = now
        if stop:
            return stop
        seconds = _timed(run, chunk := min(steps, run.steps_left_in_block()))
        report.after(run, chunk, seconds)
        if run.next_phase():
            run.save()  # from here on the run is what it will stay
        steps = _paced(chunk, seconds, deadline - time.monotonic())
    run.save()
    return ""


def _timed(run: Run, steps: int) -> float:
    """Advance; the seconds it took, charged to the phase it was in."""
    began, phase = time.perf_counter(), run.phase
    run.advance(steps)
    seconds = time.perf_counter() - began
    if steps and phase == DRAWS:
        run.times.sampling += seconds
    elif steps:
        run.times.warmup += seconds
    return seconds


def _paced(steps: int, seconds: float, seconds_left: float) -> int:
    """Steps of the next chunk, grown gently from the first, never far beyond the deadline."""
    wanted = steps_of_a_chunk(max(seconds, 1e-6) / steps, max(seconds_left, 0))
    return max(min(wanted, 8) if steps == 1 else wanted, 1)


def steps_of_a_chunk(per_step: float, seconds_left: float = np.inf) -> int:
    """A quarter of a second; where steps are slow, some seconds."""
    seconds = max(_CHUNK_SECONDS, min(_FEWEST_STEPS * per_step, _LONGEST_CHUNK))
    return int(min(seconds, seconds_left) / per_step)


_REASONS = ("", "interrupted", "time limit")


def _agree(steps: int, reason: str, save: bool) -> tuple[int, str, bool]:
    """What process 0 decides, everywhere: chains on all hosts take the same chunks."""
    told = agree(np.array([steps, _REASONS.index(reason), save]))
    return int(told[0]), _REASONS[int(told[1])], bool(told[2])


class Report:
    """Turns chunks into Status for the progress display."""

    def __init__(self, progress: Silent, deadline: float):
        self.progress, self.deadline, self.trace = progress, deadline, EnergyTrace()
        self.phase = self.row = -1
        self.per_step = 0.0
        self.acceptance = self.jump = float("nan")

    def after(self, run: Run, steps: int, seconds: float) -> None:
        if type(self.progress) is Silent and jax.process_count() == 1:
            return
        if self.phase != run.phase:
            self.phase, self.row, self.trace = run.phase, (run.done - steps) // run.thin, EnergyTrace()
        weight = 1.0 if not self.per_step or steps < 16 else 0.5
        self.per_step += weight * (seconds / steps - self.per_step)
        if run.num_rows > self.row:
            rows = run.rows_since(self.row, ("lp", "acceptance_rate", "jump"))
            self.row = run.num_rows
            self.trace.extend(rows["lp"])
            self.acceptance, self.jump = float(rows["acceptance_rate"].mean()), float(rows["jump"].mean())
        self.progress.show(self._status(run))

    def _status(self, run: Run) -> Status:
        still = run.total - run.done
        if run.phase == WARMUP:
            still += run.settings.num_draws * max(run.steps_per_draw, 1)
        return Status(
            doing=run.doing,
            done=run.done,
            total=run.total,
            thin=run.thin,
            num_chains=run.settings.num_chains,
            steps_per_second=1 / self.per_step,
            acceptance=self.acceptance,
            jump=self.jump,
            ess=self.trace.ess(run.settings.num_chains, now=run.done == run.total),
            seconds_left=min(still * self.per_step, max(self.deadline - time.monotonic(), 0)),
        )


@dataclass
class Presses:
    """Ctrl-C, as far as it has been pressed: noted and acted on between chunks; at `patience` presses it stops at once."""

    count: int = 0
    patience: int = 2


@contextlib.contextmanager
def interruptible() -> Iterator[Presses]:
    """Count presses of Ctrl-C instead of raising; only the main thread can."""
    presses = Presses()
    if threading.current_thread() is not threading.main_thread():
        yield presses
        return

    def note(number: int, frame: Any) -> None:
        presses.count += 1
        if presses.count >= presses.patience:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield presses
    finally:
        signal.signal(signal.SIGINT, before)
