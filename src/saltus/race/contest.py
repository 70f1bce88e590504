"""A race while it goes on: who has entered, what they measured, who leads, and whether another is worth its price."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..engine.arguments import Settings
from ..engine.loop import agree
from ..kernels import Kernel
from ..target import Target
from ..tuning.trial import Chains, num_tuning_chains
from ..tuning.tune import tune_from
from .compiling import seconds_compiling
from .cost import step_seconds
from .entrants import Entrant
from .practice import MOST_CHAINS, Practice
from .thinning import needed_steps
from .trial_run import TrialRun, Trials

BURN_IN_SECONDS, TRIAL_SECONDS, LONGEST_TRIAL = 0.1, 0.5, 4.0  # computed, of all chains of a trial
_ENOUGH_FOR_A_TRIAL = 200  # effective draws
_TIE, _NEAR = 0.9, 1.6  # as good as the best; how far behind one may still win
_FAR_APART = 1.5  # R-hat
_EFFORT, _TUNING_CHAINS = 0.15, 8
_TUNING_STEPS = 3000  # of the run's chains: about what tuning takes
_COMPILING, _TUNED = 1.0, 2.0  # seconds: about what it takes to compile a sampler, and what tuning adds
_SAVED = 0.5  # of the run, that another sampler may be hoped to save
_DEARER = 4  # times as long as by a gradient that can be trusted: no better guide makes up for that
NOT_NEEDED, NO_MODE_LEFT = "not needed", "it would have to cross between the modes too"


@dataclass
class Entry:
    entrant: Entrant
    kernel: Kernel
    trial: TrialRun
    evaluations: int
    seconds: float
    compile_seconds: float


@dataclass
class Contest:
    """A race while it goes on. What decides is computed: seconds are those of `cost`, except where a time limit is over."""

    target: Target
    settings: Settings
    trials: Trials
    deadline: float
    progress: Any
    entered: list[Entry] = field(default_factory=list)
    unusable: dict[str, str] = field(default_factory=dict)  # {name: why}
    tuned: dict[Any, Kernel] = field(default_factory=dict)  # {class: kernel} through the target's own local model
    last_hope: Any = None  # the entrant whose failure is the user's to see: no other could do better
    tempering: str = ""  # what came of it, in words
    tuning_steps: int = 0
    spent: int = 0  # evaluations, those of the burn-in too
    began: float = field(default_factory=time.perf_counter)
    compiled: float = field(default_factory=seconds_compiling)  # before

    # ---- one sampler after the other -----------------------------------------------------------------------------

    def burn_in(self, kernel: Kernel) -> None:
        trial = self.trials.burn_in(kernel, BURN_IN_SECONDS)
        self.spent += self._evaluations(kernel, trial)

    def enter(self, entrant: Entrant) -> None:
        """Tune, freeze, run a trial, note it. A sampler that cannot be used here is noted as such."""
        self.progress.say(f"racing: {entrant.name}")
        began, before, compiled = time.perf_counter(), self.spent, seconds_compiling()
        try:
            kernel = self._tuned(entrant)
            trial = self.try_out(kernel, self._trial_seconds(), _ENOUGH_FOR_A_TRIAL)
            if trial.apart:  # chains may only have been on their way: again, and for longer
                self.trials.codes = trial.codes
                trial = self.try_out(kernel, 4 * self._trial_seconds(), 2 * _ENOUGH_FOR_A_TRIAL)
        except Exception as cause:  # a log_prob that one sampler cannot use, another may
            if entrant is self.last_hope:
                raise
            self.unusable[entrant.name] = f"cannot be used here: {first_line(cause)}"
            return
        seconds, compiled = time.perf_counter() - began, seconds_compiling() - compiled
        self.entered.append(Entry(entrant, kernel, trial, self.spent - before, seconds, compiled))
        if trial.agrees or len(self.entered) == 1:
            self.trials.codes = trial.codes

    def _tuned(self, entrant: Entrant) -> Kernel:
        if entrant.nothing_to_tune:
            return entrant.start if entrant.ready else entrant.frozen(entrant.start)
        target, own = entrant.seen(self.target), entrant.differences is None
        chains = self._tuning_chains(entrant, target)
        kernel, _ = tune_from(target, entrant.kind, chains, known=self.tuned if own else {})
        self.tuning_steps, self.spent = chains.steps, self.spent + chains.evaluations
        if own:
            self.tuned[entrant.kind] = kernel
        return entrant.frozen(kernel)

    def _tuning_chains(self, entrant: Entrant, target: Target) -> Chains:
        """As many as the run has, stepped by its loop; where it has very many, a few, all candidates at once."""
        num = self.settings.num_chains
        common: dict[str, Any] = dict(seed=self.settings.seed, steps=self.tuning_steps, deadline=self.deadline)
        if num > MOST_CHAINS:
            few = min(_TUNING_CHAINS, num_tuning_chains(target))
            return Chains(np.resize(self.trials.codes, (few, self.trials.codes.shape[1])), effort=_EFFORT, **common)
        effort = float(np.clip(_EFFORT * _TUNING_CHAINS / num, _EFFORT, 1))
        codes = self.trials.codes[:num]
        return Practice(codes, effort=effort, settings=self.settings, given=self.target, frozen=entrant.frozen, **common)

    def try_out(self, kernel: Kernel, seconds: float, enough: float) -> TrialRun:
        trial = self.trials.run(kernel, seconds, enough, self.leading())
        self.spent += self._evaluations(kernel, trial)
        return trial

    def _trial_seconds(self) -> float:
        """A sixteenth of what the run takes with the best so far, from half a second to four."""
        return float(np.clip(self.needed() / 16, TRIAL_SECONDS, LONGEST_TRIAL)) if self.entered else TRIAL_SECONDS

    def _evaluations(self, kernel: Kernel, trial: TrialRun) -> int:
        """Of a trial; a step that makes none counts as one."""
        return max(kernel.evaluations(self.target), 1) * trial.steps * len(trial.codes)

    # ---- is another worth its price? -----------------------------------------------------------------------------

    def needed(self) -> float:
        """Seconds that the run takes with the best so far: its warm-up, and the draws asked for or 400 effective ones."""
        trial = self.winner().trial
        return (self.settings.num_warmup + needed_steps(trial.worth.steps, self.settings)) * trial.seconds_per_step

    def settled(self) -> bool:
        """Whether no other sampler is worth even being compiled."""
        return bool(self.entered) and self.winner().trial.agrees and _SAVED * self.needed() <= _COMPILING

    def why_not(self, entrant: Entrant, trusted: bool) -> str:
        """Why another sampler is not worth what it takes to try it; nothing where it is. trusted: the target's own local model."""
        if self.tempering and self.winner().trial.agrees:
            return NO_MODE_LEFT
        price = _COMPILING + (0 if entrant.nothing_to_tune else _TUNED)
        if _SAVED * self.needed() <= price:
            return NOT_NEEDED
        try:
            step = step_seconds(entrant.frozen(entrant.start), self.target, self.settings.num_chains)
        except Exception:  # it will say so itself when it enters
            return ""
        own = [e.trial for e in self.entered if e.entrant.kind is entrant.kind and e.entrant.differences is None]
        if trusted and entrant.differences is not None and own and step > _DEARER * own[0].seconds_per_step:
            return f"the gradient is a good guide, and their steps take more than {_DEARER} times as long"
        best = self.winner()
        if best.trial.agrees and step > 2 * best.trial.worth.steps * best.trial.seconds_per_step:
            return f"a step takes longer than an effective draw of {best.entrant.name}"
        if not entrant.nothing_to_tune and _SAVED * self.needed() <= price + _TUNING_STEPS * step:
            return "tuning would take longer than it could save"
        return ""

    def late(self) -> bool:
        """Whether the race's share of a time limit is over, or would be with another sampler that takes as long as the longest."""
        longest = max((entry.seconds for entry in self.entered), default=0.0)
        return bool(agree(np.array(time.monotonic() + longest > self.deadline)))

    # ---- who leads -----------------------------------------------------------------------------------------------

    def leading(self) -> float:
        return max((e.trial.ess_per_second for e in self.entered if e.trial.agrees), default=0.0)

    def winner(self) -> Entry:
        moved = [e for e in self.entered if e.trial.jump > 0]
        if not moved:
            return min(self.entered, key=lambda e: e.entrant.simplicity)
        agreeing = [e for e in moved if e.trial.agrees]
        if not agreeing:  # R-hat counts in ess_per_second too; but where chains are far apart, only their distance tells
            near = [e for e in moved if e.trial.worth.rhat <= _FAR_APART]
            return max(near, key=lambda e: e.trial.ess_per_second) if near else min(moved, key=lambda e: e.trial.worth.rhat)
        best = max(e.trial.ess_per_second for e in agreeing)
        return min((e for e in agreeing if e.trial.ess_per_second >= _TIE * best), key=lambda e: e.entrant.simplicity)

    def apart(self) -> bool:
        """Whether samplers move, and the chains of none agree."""
        return any(e.trial.apart for e in self.entered) and not any(e.trial.agrees for e in self.entered)

    def modes_seen(self) -> bool:
        """Whether chains are apart although their energies agree."""
        return self.apart() and self.winner().trial.energies_agree

    def once_more(self) -> None:
        """Those near the best run once more, for longer, where the run is long enough to gain by it.

        Among them are those whose chains did not agree but had too few steps to: their second trial counts alone.
        """
        agreed = [e for e in self.entered if e.trial.agrees or e.trial.too_short]
        near = [e for e in agreed if e.trial.ess_per_second * _NEAR >= self.leading()]
        seconds = 2 * self._trial_seconds()
        for entry in near if len(near) > 1 and self.needed() > 4 * seconds else ():
            if not self.late():
                self.progress.say(f"racing: {entry.entrant.name}, once more")
                before = self.spent
                later = self.try_out(entry.kernel, seconds, 4 * _ENOUGH_FOR_A_TRIAL)
                entry.trial = entry.trial.and_then(later) if entry.trial.agrees else later
                entry.evaluations += self.spent - before


def first_line(cause: Exception) -> str:
    return next(iter(str(cause).splitlines()), type(cause).__name__).rstrip(".")
