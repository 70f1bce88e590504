"""A run between two chunks: its chains, its clock, and what is kept; from warm-up to draws."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from ..diagnostics.worth import Worth
from ..engine.chains import Blocks, Chains
from ..engine.clock import Clock
from ..engine.files import understood
from ..engine.kept import Kept
from ..engine.keys import DRAWS, WARMUP
from ..engine.loop import agree, first_does
from ..engine.progress import EnergyTrace, Silent, Status, number
from ..race.cost import loop_seconds
from ..race.thinning import FEWEST_STEPS, choose_thin, hurried, warmup_worth
from .plan import Plan

_WARMUP_SHARE = 0.9  # of what is left of a time limit: a warm-up that takes longer is cut


class Run:
    """What `engine.drive` drives.

    However late it is, there is a draw; or, with a checkpoint, from which the warm-up can go on, a step.
    """

    def __init__(self, plan: Plan, chains: Chains, kept: Kept, deadline: float, progress: Silent):
        self.plan, self.chains, self.kept, self.progress = plan, chains, kept, progress
        settings = plan.settings
        given = settings.thin if isinstance(settings.thin, int) else 0
        self.clock = Clock(settings.num_warmup, settings.num_draws, plan.rows, given)
        self.deadline, now = deadline, time.monotonic()
        self.enough_warmup = np.inf if plan.checkpoint else now + _WARMUP_SHARE * (deadline - now)
        self.begun = self.clock.phase, self.clock.done
        self.full: Any = None  # (start, block) of a full block that has not been handed over yet
        self.report = _Report()

    @property
    def finished(self) -> bool:
        return self.clock.finished

    @property
    def may_stop(self) -> bool:
        if self.plan.checkpoint and self.clock.phase == WARMUP:
            return (self.clock.phase, self.clock.done) != self.begun
        return self.clock.draws_so_far > 0 and (self.clock.phase, self.clock.done) != self.begun

    @property
    def most_steps(self) -> int:
        return self.clock.left_in_block

    @property
    def cut(self) -> str:
        """What the time limit took from the warm-up, in words."""
        clock, asked = self.clock, self.plan.settings.num_warmup
        if clock.phase == WARMUP and not clock.phase_over and clock.done:
            later = ", and saltus.resume goes on with it" if self.plan.checkpoint else ""
            return f"the warm-up ({clock.done} of {asked} steps were made; these draws are states of the warm-up{later})"
        return f"the warm-up ({clock.num_warmup} of {asked} steps were made)" if clock.num_warmup < asked else ""

    def until(self, deadline: float) -> float:
        until = self.enough_warmup if self.clock.phase == WARMUP else deadline if self.clock.draws_so_far else np.inf
        return min(until, deadline if self.plan.checkpoint else np.inf)

    def compile(self) -> None:
        """No step: one executable serves any number of them."""
        self.progress.say(f"compiling {self.chains.kernel!r} for {self.chains.num} chains on {self.chains.target.space}")
        began = time.perf_counter()
        self.chains.advance(self.clock, 0)
        self.chains.wait()
        self.clock.times.compile += time.perf_counter() - began

    def advance(self, steps: int) -> float:
        """Steps within this block and phase. While they are made, the block before is handed over, if it was full."""
        began, start = time.perf_counter(), self.clock.block_start
        try:
            self.chains.advance(self.clock, steps)
        finally:
            self._hand_over_full()
        self.chains.wait()
        seconds = time.perf_counter() - began
        self.clock.passed(steps, seconds)
        if self.clock.num_rows - start == self.clock.rows:
            self.full = start, self.chains.block
        return seconds

    def between(self) -> None:
        """From warm-up to draws, once it is over or there is no more time for it."""
        clock = self.clock
        if clock.phase != WARMUP:
            return
        if not clock.phase_over and np.isfinite(self.enough_warmup):
            late = bool(agree(np.array(time.monotonic() >= self.enough_warmup)))
            clock.num_warmup = clock.done if late else clock.num_warmup
        if clock.phase_over:
            self._hand_over()
            if not clock.steps_per_draw:
                self._choose_thin()
            clock.phase, clock.done = DRAWS, 0
            self.save()  # from here on the run is what it will stay

    def _choose_thin(self) -> None:
        """Once, from the last two thirds of the warm-up or what is still on the devices of them; process 0 decides."""
        clock, kernel, measured = self.clock, self.chains.kernel, self.plan.choice.steps_per_effective
        names = [name for name in ("lp", "s") if name in self.chains.names]
        long = clock.num_warmup >= FEWEST_STEPS
        space = self.chains.target.space
        found = warmup_worth(space, self.chains.rows_since(clock, clock.total // 3, names)) if long else None
        if measured and not (found and measured <= found.steps < np.inf):
            found = Worth(measured, 1.0, "in the race")
        settings, parity = self.plan.settings, kernel.keeps_parity(space)
        chosen = choose_thin(found, settings, loop_seconds(self.chains), parity)
        if np.isfinite(self.deadline) and not self.plan.checkpoint:  # a run that can go on is not cut to fit
            timed = clock.times.warmup / clock.num_warmup if clock.num_warmup else np.inf
            chosen = hurried(chosen, settings, timed, parity, self.deadline - time.monotonic())
        clock.steps_per_draw, clock.thinning = int(agree(np.array(chosen.thin))), chosen.why
        if self.kept.store:
            first_does(partial(self.kept.store.set, thin=clock.steps_per_draw, thinning=clock.thinning))

    # ---- what is kept --------------------------------------------------------------------------------------------

    def _hand_over_full(self) -> None:
        """The last full block, if it is still here."""
        if self.full:
            (start, block), self.full = self.full, None
            self._write(start, self.clock.rows, block)

    def _hand_over(self, unfinished: bool = False) -> None:
        """All rows of this phase that are still here, those of the block being filled with them."""
        self._hand_over_full()
        start = self.clock.block_start
        self._write(start, self.clock.num_rows - start, self.chains.block, unfinished)

    def _write(self, start: int, num_rows: int, block: Blocks, unfinished: bool = False) -> None:
        """Rows start..start + num_rows go where this phase is kept."""
        if num_rows and self.kept.wants(self.clock.phase):
            self.kept.write(self.clock.phase, start, self.chains.rows_of(block, 0, num_rows), unfinished)

    def end(self, reason: str) -> None:
        """The rows of the block that was being filled; the state keeps them too.

        A run that was ended in its warm-up returns where its chains are, one draw each; its checkpoint has no draw.
        """
        self._hand_over(unfinished=True)
        clock = self.clock
        if not clock.draws_so_far:
            in_warmup = reason and clock.phase == WARMUP and clock.done
            rows = self.chains.rows_since(clock, clock.num_rows - 1) if in_warmup else self.chains.no_rows()
            self.kept.write_provisional(rows)
        self.kept.commit()

    def save(self) -> None:
        """Write the state; blocks it counts on are written already."""
        self._hand_over_full()
        self.kept.commit()
        checkpoint, statistics = self.plan.checkpoint, self.kept.statistics
        if not checkpoint:
            return
        sums = {f"sum.{name}": value for name, value in (statistics.sums if statistics else {}).items()}
        arrays = {**self.chains.as_arrays(self.clock), **sums}
        first_does(partial(checkpoint.write_state, self.clock.as_data(), arrays))

    def go_back(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """To a state that `save` wrote."""
        assert self.plan.checkpoint
        path = self.plan.checkpoint.folder / "state.npz"
        with understood(path):
            self.clock.go_back(header)
            self.chains.go_back(self.clock, arrays, path)
        sums = {n.removeprefix("sum."): a for n, a in arrays.items() if n.startswith("sum.")}
        self.kept.go_back(self.clock.rows_written(), self.clock.rows_known(), sums)
        self.begun = self.clock.phase, self.clock.done
        if not self.finished:
            first_does(self.plan.checkpoint.sign)
            self.chains.check(self.plan.checkpoint.folder)

    def status(self, per_step: float, deadline: float) -> Status:
        return self.report.status(self.chains, self.clock, per_step, deadline)


class _Report:
    """One moment of a run after the other, as figures."""

    def __init__(self) -> None:
        self.phase, self.row, self.trace = -1, 0, EnergyTrace()
        self.acceptance = self.jump = float("nan")

    def status(self, chains: Chains, clock: Clock, per_step: float, deadline: float) -> Status:
        if self.phase != clock.phase:
            newest = max(clock.num_rows - 1, 0) // clock.rows * clock.rows  # what is on the devices
            self.phase, self.row, self.trace = clock.phase, newest, EnergyTrace()
        if clock.num_rows > self.row:
            rows = chains.rows_since(clock, self.row, ("lp", "acceptance_rate", "jump"))
            self.row = clock.num_rows
            self.trace.extend(rows["lp"])
            self.acceptance, self.jump = float(rows["acceptance_rate"].mean()), float(rows["jump"].mean())
        figures = [("steps/s", number(1 / per_step)), ("draws/s", number(chains.num / (per_step * clock.thin)))]
        if np.isfinite(self.acceptance):
            figures += [("accept", f"{self.acceptance:.2f}"), ("jump", f"{self.jump:.3g}")]
        ess = self.trace.ess(chains.num, now=clock.phase_over)  # None: not known yet; 0: the energy is constant
        if ess is not None:
            figures.append(("ESS", number(ess) if ess > 0 else "constant"))
        left = min(clock.left * per_step, max(deadline - time.monotonic(), 0))
        return Status("sampling" if clock.phase == DRAWS else "warm-up", clock.done, clock.total, figures, left)
