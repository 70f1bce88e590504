r"""`sampler="auto"`: samplers race on this target and this machine, by effective draws per second.

They run with the run's own chains, one after the other, each tuned first. What counts is the worst of several statistics:
the energy, and the distances from four states. A sampler whose chains disagree cannot win; of samplers within a tenth of
the best, the simplest is taken. Two stages, since every sampler costs a second or more of compilation: those that the
target's structure offers, the simplest with a local model, the simplest without, and all that were asked for by name; then the
others, one by one, while the best so far would need more than five seconds for 400 effective draws, or for the draws that
were asked for. Those near the best run once more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np

from ..engine.arguments import Settings
from ..engine.loop import agree
from ..engine.samplers import AUTO
from ..engine.starts import start_codes
from ..errors import KernelError
from ..kernels import Kernel, samplers
from ..target import Target
from .compiling import seconds_compiling
from .contest import LAP_SECONDS, Contest, Entry, first_line, tuning_evaluations
from .entrants import Entrant, Field, find_entrants, package_entrants, simplest
from .lap import Course
from .local_check import check

FEWEST_WARMUP = 100  # steps: with fewer nothing is tuned or raced
PATIENCE = 5.0  # seconds that a run may be predicted to take before the others enter
NOT_NEEDED, LATE = "not needed", "half of the time limit was over"
_LONGEST_LAP = 4.0  # seconds
_LEAST_LIMIT = 15.0  # seconds of a time limit that leave time for a race


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
    cut: str = ""  # what the time limit left out, in words

    def as_json(self) -> str:
        """Nothing where there was no race."""
        rows = [{k: (None if v == float("inf") else v) for k, v in asdict(row).items()} for row in self.rows]
        return json.dumps(rows) if rows else ""


def race(
    target: Target, settings: Settings, *, initial: Any, deadline: float, progress: Any, asked: Sequence[Any] = (AUTO,)
) -> Race:
    """asked: who races, as `read_samplers` left it.

    deadline: of the whole run (time.monotonic); no sampler enters once half of the time until then is over.
    """
    codes, now = start_codes(target, settings.seed, initial, settings.num_chains), time.monotonic()
    if settings.num_warmup < FEWEST_WARMUP:
        why = f"a warm-up of {settings.num_warmup} steps is too short to tune or race (that takes {FEWEST_WARMUP})"
        return _without_a_race(target, asked, codes, why)
    if bool(agree(np.array(deadline - now < _LEAST_LIMIT))):
        why = f"a time limit of less than {_LEAST_LIMIT:g} s leaves no time for one"
        return _without_a_race(target, asked, codes, why, "the race")
    half = now + (deadline - now) / 2
    contest = Contest(target, settings, Course(target, settings, codes, deadline=half), half, progress)
    progress.say("checking the local model")
    entrants = find_entrants(target, *_doubt(target, settings, initial), asked=asked)
    contest.last_hope = _last_hope(entrants)
    progress.say("burning in")
    contest.burn_in(_guide(target))
    for entrant in entrants.first:
        if contest.late():
            entrants.out[entrant.name] = LATE
        else:
            contest.enter(entrant, LAP_SECONDS)
    for entrant in entrants.others:
        why = _why_not(contest, entrant)
        if why:
            entrants.out[entrant.name] = why
        else:
            contest.enter(entrant, _lap_seconds(contest))
    if not contest.entered and contest.unusable:
        found = "; ".join(f"{name} {why}" for name, why in contest.unusable.items())
        raise KernelError("No sampler can be used here.", expected="one that can sample this target", found=found)
    if not contest.entered:  # compiling and burning in took all of the time
        return _without_a_race(target, asked, contest.course.codes, LATE, "the race")
    contest.final_heat()
    return _finished(contest, entrants)


def _guide(target: Target) -> Kernel:
    """Of the package, the simplest that does without a local model: with it the chains burn in."""
    return next(e.start for e in package_entrants(target) if not e.guided)


def _last_hope(entrants: Field) -> Entrant | None:
    """Of the package, the simplest that enters at once and does without a local model: where it fails, log_prob does."""
    ours = samplers().values()
    return min((e for e in entrants.first if not e.guided and e.kind in ours), key=lambda e: e.simplicity, default=None)


def _lap_seconds(contest: Contest) -> float:
    """An eighth of what the run would take with the best so far, from one second to four."""
    return float(np.clip(contest.predicted()[0] / 8, LAP_SECONDS, _LONGEST_LAP)) if contest.entered else LAP_SECONDS


def _why_not(contest: Contest, entrant: Entrant) -> str:
    """Why this one does not enter."""
    if contest.late():
        return LATE
    if not contest.entered:
        return ""
    if not any(entry.lap.jump > 0 for entry in contest.entered):
        return "" if entrant.needs_values_only else "nothing moves here"  # they move if anything can
    if entrant.last_resort:
        return "a last resort"
    if contest.predicted()[0] <= PATIENCE:
        return NOT_NEEDED
    per_step = entrant.seen(contest.target).differences.evaluations_on(contest.target)
    if contest.allowance() < tuning_evaluations(per_step):
        return "tuning would take more than the race's third of all evaluations"
    return ""


def _doubt(target: Target, settings: Settings, initial: Any) -> tuple[str, bool]:
    """Why the local model may mislead, and whether it can be used at all.

    No doubt where it is a good guide, or where no single-site change is possible and so nothing can be said.
    """
    if target.differences.exact:
        return "", True
    try:
        jax.eval_shape(target.point, jax.ShapeDtypeStruct((target.space.num_sites,), np.int32))
    except Exception as cause:
        return f"log_prob cannot be differentiated ({first_line(cause)}).", False
    found = check(target, settings.seed, initial, small=True)
    nothing_to_see = not found.typical.num_moves and not found.typical.unpredicted
    return "" if found.trustworthy or nothing_to_see else found.advice, True


def _row(entry: Entry, chosen: bool) -> Row:
    lap = entry.lap
    verdict = ""
    if not lap.jump > 0:
        verdict = "never moved"
    elif not lap.agrees:
        verdict = f"{'too slow to tell' if lap.too_short else 'chains disagree'} (R-hat {lap.worth.rhat:.2f})"
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


def _without_a_race(target: Target, asked: Sequence[Any], codes: np.ndarray, why: str, cut: str = "") -> Race:
    """The simplest that has nothing to tune."""
    taken = simplest(target, asked)
    what = "has nothing to tune" if taken.nothing_to_tune else "is at its first setting, and not tuned"
    told = f"Skipped the race: {why}. Taken instead: {taken.start!r}, which {what}."
    return Race(taken.start, codes, [], told, cut=cut)


def _finished(contest: Contest, entrants: Field) -> Race:
    from .verdict import paragraph

    won = contest.winner()
    rows = [_row(entry, entry is won) for entry in contest.entered]
    rows += [Row(name, "", verdict=why) for name, why in contest.unusable.items()]
    steps = won.lap.worth.steps if np.isfinite(won.lap.worth.steps) else 0.0
    seconds, compiling = time.perf_counter() - contest.began, seconds_compiling() - contest.compiled
    cost = f"The race made {contest.spent} evaluations of log_prob and took {seconds:.1f} s, {compiling:.1f} s of them compiling."
    cut = "the race" if LATE in entrants.out.values() else ""
    told = f"{paragraph(rows, entrants.out, entrants.doubt)} {cost}"
    return Race(won.kernel, won.lap.codes, rows, told, steps, contest.spent, cut)
