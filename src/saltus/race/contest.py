"""A race while it goes on: who has entered, what they measured, who leads, and what may still be spent."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..engine.arguments import Settings
from ..engine.loop import agree
from ..kernels import Kernel
from ..target import Target
from ..tuning.trial import CANDIDATES, Chains, num_tuning_chains
from ..tuning.tune import tune_from
from .compiling import seconds_compiling
from .entrants import Entrant
from .lap import Course, Lap
from .thinning import ENOUGH, choose_thin

LAP_SECONDS = 1.0
_LEAST_LAP = 30_000  # evaluations
_ENOUGH_FOR_A_LAP = 100  # effective draws
_TIE, _NEAR = 0.9, 1.6  # as good as the best; how far behind one may still win
_FAR_APART = 1.5  # R-hat
_EFFORT, _LEAST_EFFORT, _TUNING_CHAINS = 0.15, 0.05, 8
_TUNING_STEPS = 200  # of every candidate and chain: about what tuning takes


def tuning_evaluations(per_step: int) -> int:
    """About what it takes to tune a sampler whose steps make so many evaluations."""
    return _TUNING_STEPS * CANDIDATES * _TUNING_CHAINS * per_step


@dataclass
class Entry:
    entrant: Entrant
    kernel: Kernel
    lap: Lap
    evaluations: int
    seconds: float
    compile_seconds: float


@dataclass
class Contest:
    """A race while it goes on."""

    target: Target
    settings: Settings
    course: Course
    deadline: float
    progress: Any
    entered: list[Entry] = field(default_factory=list)
    unusable: dict[str, str] = field(default_factory=dict)  # {name: why}
    tuned: dict[Any, Kernel] = field(default_factory=dict)  # {class: kernel} through the target's own local model
    last_hope: Any = None  # the entrant whose failure is the user's to see: no other could do better
    tuning_steps: int = 0
    spent: int = 0  # evaluations, those of the burn-in too
    seconds_per_evaluation: float = 0.0
    began: float = field(default_factory=time.perf_counter)
    compiled: float = field(default_factory=seconds_compiling)  # before

    def enter(self, entrant: Entrant, seconds: float) -> None:
        """Tune, freeze, run a lap, note it. A sampler that cannot be used here is noted as such."""
        self.progress.say(f"racing: {entrant.name}")
        began, before, compiled = time.perf_counter(), self.spent, seconds_compiling()
        try:
            kernel = self._tuned(entrant)
            lap = self._lap(kernel, seconds, _ENOUGH_FOR_A_LAP)
        except Exception as cause:  # a log_prob that one sampler cannot use, another may
            if entrant is self.last_hope:
                raise
            self.unusable[entrant.name] = f"cannot be used here: {first_line(cause)}"
            return
        seconds, compiled = time.perf_counter() - began, seconds_compiling() - compiled
        self.entered.append(Entry(entrant, kernel, lap, self.spent - before, seconds, compiled))
        if lap.agrees or len(self.entered) == 1:
            self.course.codes = lap.codes

    def _tuned(self, entrant: Entrant) -> Kernel:
        if entrant.ready:
            return entrant.start
        target, own = entrant.seen(self.target), entrant.differences is None
        num = min(_TUNING_CHAINS, num_tuning_chains(target))
        codes = np.resize(self.course.codes, (num, self.course.codes.shape[1]))
        effort = self._effort(max(target.differences.evaluations_on(target), 1))
        chains = Chains(codes, self.settings.seed, self.tuning_steps, effort=effort, deadline=self.deadline)
        kernel, _ = tune_from(target, entrant.kind, chains, known=self.tuned if own else {})
        self.tuning_steps, self.spent = chains.steps, self.spent + chains.evaluations
        if own:
            self.tuned[entrant.kind] = kernel
        return entrant.frozen(kernel)

    def _effort(self, per_step: int) -> float:
        """Less than usual where tuning would take seconds, and more than half of the evaluations the run surely makes."""
        usual, settings = tuning_evaluations(per_step), self.settings
        if usual * self.seconds_per_evaluation < LAP_SECONDS:
            return _EFFORT
        least = (settings.num_warmup + settings.num_draws) * settings.num_chains * per_step / 2
        return float(np.clip(_EFFORT * least / usual, _LEAST_EFFORT, _EFFORT))

    def _lap(self, kernel: Kernel, seconds: float, enough: float) -> Lap:
        """At most half of the evaluations that are left to the race, where the kernel makes any."""
        evaluations = max(self.allowance() / 2, _LEAST_LAP) if kernel.evaluations(self.target) else np.inf
        lap = self.course.run(kernel, seconds, evaluations, enough, self.leading())
        self.spent += lap.steps * self._evaluations(kernel)
        return lap

    def _evaluations(self, kernel: Kernel) -> int:
        """Of one step of all chains; a step that makes none counts as one."""
        return max(kernel.evaluations(self.target), 1) * self.settings.num_chains

    def burn_in(self, kernel: Kernel) -> None:
        lap = self.course.burn_in(kernel, LAP_SECONDS / 2, _LEAST_LAP / 2)
        self.spent += lap.steps * self._evaluations(kernel)
        self.seconds_per_evaluation = lap.seconds_per_step / self._evaluations(kernel)

    def leading(self) -> float:
        return max((e.lap.ess_per_second for e in self.entered if e.lap.agrees), default=0.0)

    def predicted(self) -> tuple[float, float]:
        """(seconds, evaluations) of the run, with the best so far. Seconds: or those of 400 effective draws, if more."""
        best, settings = self.winner(), self.settings
        if isinstance(settings.thin, int):
            thin = least = settings.thin
        else:
            thin = choose_thin(best.lap.worth, settings, best.lap.seconds_per_step, False, float("inf")).thin
            least = 1
        seconds = max(ENOUGH / max(best.lap.ess_per_second, 1e-9), settings.num_draws * least * best.lap.seconds_per_step)
        return seconds, (settings.num_warmup + settings.num_draws * thin) * self._evaluations(best.kernel)

    def allowance(self) -> float:
        """Evaluations the race may still make: in all a third of what race and run will have made together."""
        return self.predicted()[1] / 2 - self.spent if self.entered else np.inf

    def winner(self) -> Entry:
        moved = [e for e in self.entered if e.lap.jump > 0]
        if not moved:
            return min(self.entered, key=lambda e: e.entrant.simplicity)
        agreeing = [e for e in moved if e.lap.agrees]
        if not agreeing:  # R-hat counts in ess_per_second too; but where chains are far apart, only their distance tells
            near = [e for e in moved if e.lap.worth.rhat <= _FAR_APART]
            return max(near, key=lambda e: e.lap.ess_per_second) if near else min(moved, key=lambda e: e.lap.worth.rhat)
        best = max(e.lap.ess_per_second for e in agreeing)
        return min((e for e in agreeing if e.lap.ess_per_second >= _TIE * best), key=lambda e: e.entrant.simplicity)

    def late(self) -> bool:
        return bool(agree(np.array(time.monotonic() > self.deadline)))

    def final_heat(self) -> None:
        """Those near the best run once more, for longer, while the allowance lasts.

        Among them are those whose chains did not agree but had too little time to: their second lap counts alone.
        """
        agreed = [e for e in self.entered if e.lap.agrees or e.lap.too_short]
        near = [e for e in agreed if e.lap.ess_per_second * _NEAR >= self.leading()]
        for entry in near if len(near) > 1 else ():
            if self.allowance() > 0 and not self.late():
                self.progress.say(f"racing: {entry.entrant.name}, once more")
                before = self.spent
                later = self._lap(entry.kernel, 2 * LAP_SECONDS, 4 * _ENOUGH_FOR_A_LAP)
                entry.lap = entry.lap.and_then(later) if entry.lap.agrees else later
                entry.evaluations += self.spent - before


def first_line(cause: Exception) -> str:
    return next(iter(str(cause).splitlines()), type(cause).__name__).rstrip(".")
