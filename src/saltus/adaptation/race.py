r"""`sampler="auto"`: samplers race on this target and this machine, by effective draws per second.

They run with the run's own chains, one after the other, each tuned first. What counts is the worst of several statistics:
the energy, and the distances from four states. A sampler whose chains disagree cannot win; of samplers within a tenth of
the best, the simplest is taken. Two stages, since every sampler costs a second or more of compilation: those that the
target's structure offers, NCG and Gibbs; then the others, one by one, while the best so far would need more than five
seconds for 400 effective draws, or for the draws that were asked for. Those near the best run once more.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import jax
import numpy as np

from ..diagnostics.local_model import check
from ..kernels import AVG, PAVG, Gibbs, Kernel, UniformMH
from ..run.loop import agree
from ..run.settings import Settings
from ..run.thinning import choose_thin
from ..target import Target
from .compiling import seconds_compiling
from .entrants import Entrant, Field, find_entrants, gibbs_entrant
from .lap import Course, Lap
from .trial import CANDIDATES, Chains, num_tuning_chains
from .tune import start_codes, tune_from

FEWEST_WARMUP = 100  # steps: with fewer nothing is tuned or raced
PATIENCE = 5.0  # seconds that a run may be predicted to take before the others enter
EFFECTIVE = 400
NOT_NEEDED, LATE = "not needed", "half of the time limit was over"
_TIE, _NEAR = 0.9, 1.6  # as good as the best; how far behind one may still win
_EFFORT, _LEAST_EFFORT, _TUNING_CHAINS = 0.15, 0.05, 8
_LAP_SECONDS, _LONGEST_LAP, _LEAST_LAP = 1.0, 4.0, 30_000  # the last in evaluations
_ENOUGH = 100  # effective draws of a lap
_FAR_APART = 1.5  # R-hat
_TOO_FEW = 50  # effective draws, to say that chains disagree
_LEAST_LIMIT = 15.0  # seconds of a time limit that leave time for a race
_TUNING_STEPS = 200  # of every candidate and chain: about what tuning takes


@dataclass
class Row:
    """One line of the table. steps: per effective draw, by the worst statistic."""

    sampler: str
    kernel: str
    ess_per_second: float = 0.0
    steps: float = float("inf")
    worst: str = ""
    rhat: float = float("inf")
    steps_per_second: float = 0.0
    acceptance: float = 0.0
    jump: float = 0.0
    evaluations: int = 0
    compile_seconds: float = 0.0
    seconds: float = 0.0
    chosen: bool = False
    verdict: str = ""  # why it could not win


@dataclass
class Race:
    """The winner, frozen; where its chains stand; and everything that was measured."""

    kernel: Kernel
    codes: np.ndarray
    rows: list[Row]
    paragraph: str
    steps_per_effective: float = 0.0
    evaluations: int = 0

    def as_json(self) -> str:
        """Nothing where there was no race."""
        rows = [{k: (None if v == float("inf") else v) for k, v in asdict(row).items()} for row in self.rows]
        return json.dumps(rows) if rows else ""


@dataclass
class _Entry:
    entrant: Entrant
    kernel: Kernel
    lap: Lap
    evaluations: int
    seconds: float
    compile_seconds: float


@dataclass
class _Contest:
    """A race while it goes on."""

    target: Target
    settings: Settings
    course: Course
    deadline: float
    progress: Any
    entered: list[_Entry] = field(default_factory=list)
    unusable: list[Row] = field(default_factory=list)
    averaging: Any = None  # AVG as tuned, with which PAVG begins
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
            lap = self._lap(kernel, seconds, _ENOUGH)
        except Exception as cause:  # a log_prob that one sampler cannot use, another may
            if entrant.kind is Gibbs:
                raise
            self.unusable.append(Row(entrant.name, "", verdict=f"cannot be used here: {_first_line(cause)}"))
            return
        seconds, compiled = time.perf_counter() - began, seconds_compiling() - compiled
        self.entered.append(_Entry(entrant, kernel, lap, self.spent - before, seconds, compiled))
        if lap.agrees or len(self.entered) == 1:
            self.course.codes = lap.codes

    def _tuned(self, entrant: Entrant) -> Kernel:
        target = entrant.seen(self.target)
        num = min(_TUNING_CHAINS, num_tuning_chains(target))
        codes = np.resize(self.course.codes, (num, self.course.codes.shape[1]))
        effort = self._effort(max(target.differences.evaluations(target.space), 1))
        chains = Chains(codes, self.settings.seed, self.tuning_steps, effort=effort, deadline=self.deadline)
        own = entrant.differences is None
        averaging = self.averaging if own and entrant.kind is PAVG else None
        kernel, _ = tune_from(target, entrant.kind, chains, averaging=averaging, **entrant.settings)
        self.tuning_steps, self.spent = chains.steps, self.spent + chains.evaluations
        if own and entrant.kind is AVG:
            self.averaging = kernel
        return entrant.frozen(kernel)

    def _effort(self, per_step: int) -> float:
        """Less than usual where tuning would take seconds, and more than half of the evaluations the run surely makes."""
        usual, settings = _TUNING_STEPS * CANDIDATES * _TUNING_CHAINS * per_step, self.settings
        if usual * self.seconds_per_evaluation < _LAP_SECONDS:
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
        lap = self.course.burn_in(kernel, _LAP_SECONDS / 2, _LEAST_LAP / 2)
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
        seconds = max(EFFECTIVE / max(best.lap.ess_per_second, 1e-9), settings.num_draws * least * best.lap.seconds_per_step)
        return seconds, (settings.num_warmup + settings.num_draws * thin) * self._evaluations(best.kernel)

    def allowance(self) -> float:
        """Evaluations the race may still make: in all a third of what race and run will have made together."""
        return self.predicted()[1] / 2 - self.spent if self.entered else np.inf

    def winner(self) -> _Entry:
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
        """Those that may still win run once more, for longer, while the allowance lasts."""
        near = [e for e in self.entered if e.lap.agrees and e.lap.ess_per_second * _NEAR >= self.leading()]
        for entry in near if len(near) > 1 else ():
            if self.allowance() > 0 and not self.late():
                self.progress.say(f"racing: {entry.entrant.name}, once more")
                before = self.spent
                entry.lap = entry.lap.and_then(self._lap(entry.kernel, 2 * _LAP_SECONDS, 4 * _ENOUGH))
                entry.evaluations += self.spent - before


def race(target: Target, settings: Settings, *, initial: Any, deadline: float, progress: Any) -> Race:
    """deadline: of the whole run (time.monotonic); no sampler enters once half of the time until then is over."""
    codes, now = start_codes(target, settings.seed, initial, settings.num_chains), time.monotonic()
    if settings.num_warmup < FEWEST_WARMUP:
        why = f"a warm-up of {settings.num_warmup} steps is too short to tune or race (that takes {FEWEST_WARMUP})"
        return _without_a_race(target, codes, why)
    if bool(agree(np.array(deadline - now < _LEAST_LIMIT))):
        return _without_a_race(target, codes, f"a time limit of less than {_LEAST_LIMIT:g} s leaves no time for one")
    half = now + (deadline - now) / 2
    contest = _Contest(target, settings, Course(target, settings, codes, deadline=half), half, progress)
    progress.say("checking the local model")
    entrants = find_entrants(target, _doubt(target, settings, initial))
    progress.say("burning in")
    contest.burn_in(gibbs_entrant(target).kernel())
    for entrant in entrants.first:
        if contest.entered and contest.late():
            entrants.out[entrant.name] = LATE
        else:
            contest.enter(entrant, _LAP_SECONDS)
    for entrant in entrants.others:
        why = _why_not(contest, entrant)
        if why:
            entrants.out[entrant.name] = why
        else:
            contest.enter(entrant, float(np.clip(contest.predicted()[0] / 8, _LAP_SECONDS, _LONGEST_LAP)))
    contest.final_heat()
    return _finished(contest, entrants)


def _why_not(contest: _Contest, entrant: Entrant) -> str:
    """Why this one does not enter."""
    if contest.late():
        return LATE
    if not any(entry.lap.jump > 0 for entry in contest.entered):
        return "" if entrant.kind is UniformMH else "nothing moves here"  # it moves if anything can
    if entrant.last_resort:
        return "a last resort"
    if contest.predicted()[0] <= PATIENCE:
        return NOT_NEEDED
    per_step = entrant.seen(contest.target).differences.evaluations(contest.target.space)
    if contest.allowance() < _TUNING_STEPS * CANDIDATES * _TUNING_CHAINS * per_step:
        return "tuning would take more than the race's third of all evaluations"
    return ""


def _doubt(target: Target, settings: Settings, initial: Any) -> str:
    """Why the local model may mislead; nothing where it is a good guide, or where no single-site change is possible."""
    if target.differences.exact:
        return ""
    try:
        jax.eval_shape(target.point, jax.ShapeDtypeStruct((target.space.num_sites,), np.int32))
    except Exception as cause:
        return f"log_prob cannot be differentiated ({_first_line(cause)})."
    found = check(target, settings.seed, initial, small=True)
    nothing_to_see = not found.typical.num_moves and not found.typical.unpredicted
    return "" if found.trustworthy or nothing_to_see else found.advice


def _first_line(cause: Exception) -> str:
    return next(iter(str(cause).splitlines()), type(cause).__name__).rstrip(".")


def _row(entry: _Entry, chosen: bool) -> Row:
    lap = entry.lap
    verdict = ""
    if not lap.jump > 0:
        verdict = "never moved"
    elif not lap.agrees:
        few = lap.steps * lap.num_chains < _TOO_FEW * lap.worth.steps
        verdict = f"{'too slow to tell' if few else 'chains disagree'} (R-hat {lap.worth.rhat:.2f})"
    return Row(
        sampler=entry.entrant.name,
        kernel=repr(entry.kernel),
        ess_per_second=lap.ess_per_second,
        steps=lap.worth.steps,
        worst=lap.worth.worst,
        rhat=lap.worth.rhat,
        steps_per_second=1 / lap.seconds_per_step,
        acceptance=lap.acceptance,
        jump=lap.jump,
        evaluations=entry.evaluations,
        compile_seconds=entry.compile_seconds,
        seconds=entry.seconds,
        chosen=chosen,
        verdict=verdict,
    )


def _without_a_race(target: Target, codes: np.ndarray, why: str) -> Race:
    """The simplest that has nothing to tune."""
    kernel = gibbs_entrant(target).kernel()
    return Race(kernel, codes, [], f"Skipped the race: {why}. Taken instead: {kernel!r}, which has nothing to tune.")


def _finished(contest: _Contest, entrants: Field) -> Race:
    from .verdict import paragraph

    won = contest.winner()
    rows = [_row(entry, entry is won) for entry in contest.entered] + contest.unusable
    steps = won.lap.worth.steps if np.isfinite(won.lap.worth.steps) else 0.0
    seconds, compiling = time.perf_counter() - contest.began, seconds_compiling() - contest.compiled
    cost = f"The race made {contest.spent} evaluations of log_prob and took {seconds:.1f} s, {compiling:.1f} s of them compiling."
    return Race(won.kernel, won.lap.codes, rows, f"{paragraph(rows, entrants.out, entrants.doubt)} {cost}", steps, contest.spent)
