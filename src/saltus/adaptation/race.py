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
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np

from ..diagnostics.local_model import check
from ..kernels import Kernel, UniformMH
from ..run.loop import agree
from ..run.settings import Settings
from ..target import Target
from .compiling import seconds_compiling
from .contest import LAP_SECONDS, Contest, Entry, first_line, tuning_evaluations
from .entrants import Entrant, Field, find_entrants, gibbs_entrant
from .lap import Course
from .tune import start_codes

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

    def as_json(self) -> str:
        """Nothing where there was no race."""
        rows = [{k: (None if v == float("inf") else v) for k, v in asdict(row).items()} for row in self.rows]
        return json.dumps(rows) if rows else ""


def race(target: Target, settings: Settings, *, initial: Any, deadline: float, progress: Any) -> Race:
    """deadline: of the whole run (time.monotonic); no sampler enters once half of the time until then is over."""
    codes, now = start_codes(target, settings.seed, initial, settings.num_chains), time.monotonic()
    if settings.num_warmup < FEWEST_WARMUP:
        why = f"a warm-up of {settings.num_warmup} steps is too short to tune or race (that takes {FEWEST_WARMUP})"
        return _without_a_race(target, codes, why)
    if bool(agree(np.array(deadline - now < _LEAST_LIMIT))):
        return _without_a_race(target, codes, f"a time limit of less than {_LEAST_LIMIT:g} s leaves no time for one")
    half = now + (deadline - now) / 2
    contest = Contest(target, settings, Course(target, settings, codes, deadline=half), half, progress)
    progress.say("checking the local model")
    entrants = find_entrants(target, *_doubt(target, settings, initial))
    progress.say("burning in")
    contest.burn_in(gibbs_entrant(target).kernel())
    for entrant in entrants.first:
        if contest.entered and contest.late():
            entrants.out[entrant.name] = LATE
        else:
            contest.enter(entrant, LAP_SECONDS)
    for entrant in entrants.others:
        why = _why_not(contest, entrant)
        if why:
            entrants.out[entrant.name] = why
        else:
            contest.enter(entrant, float(np.clip(contest.predicted()[0] / 8, LAP_SECONDS, _LONGEST_LAP)))
    contest.final_heat()
    return _finished(contest, entrants)


def _why_not(contest: Contest, entrant: Entrant) -> str:
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


def _without_a_race(target: Target, codes: np.ndarray, why: str) -> Race:
    """The simplest that has nothing to tune."""
    kernel = gibbs_entrant(target).kernel()
    return Race(kernel, codes, [], f"Skipped the race: {why}. Taken instead: {kernel!r}, which has nothing to tune.")


def _finished(contest: Contest, entrants: Field) -> Race:
    from .verdict import paragraph

    won = contest.winner()
    rows = [_row(entry, entry is won) for entry in contest.entered]
    rows += [Row(name, "", verdict=why) for name, why in contest.unusable.items()]
    steps = won.lap.worth.steps if np.isfinite(won.lap.worth.steps) else 0.0
    seconds, compiling = time.perf_counter() - contest.began, seconds_compiling() - contest.compiled
    cost = f"The race made {contest.spent} evaluations of log_prob and took {seconds:.1f} s, {compiling:.1f} s of them compiling."
    return Race(won.kernel, won.lap.codes, rows, f"{paragraph(rows, entrants.out, entrants.doubt)} {cost}", steps, contest.spent)
