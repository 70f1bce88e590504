r"""`sampler="auto"`: samplers race on this target, by effective draws per second.

They run with the run's own compiled loop, one after the other, each tuned first. Effective draws per step are measured, seconds
per step computed (`cost`): no clock decides, and the same call makes the same choice. What counts is the worst of several
statistics: the energy, and the distances from four states, of at least sixteen chains. A sampler whose chains disagree cannot
win; of samplers within a tenth of the best, the simplest is taken. Every sampler costs a second or more of compilation, so they
enter one by one: first the simplest without a local model, then others as long as the run, with the best so far, takes so long
that another may be worth its price. Where chains disagree although they move, the best is tempered (`escalation`).
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
from ..errors import KernelError, SaltusError
from ..kernels import Kernel, samplers
from ..target import Target
from .compiling import seconds_compiling
from .contest import NOT_NEEDED, Contest, Entry, first_line
from .entrants import Entrant, Entrants, find_entrants, package_entrants, simplest
from .escalation import temper
from .local_check import check
from .trial_run import STARTS, Trials

FEWEST_WARMUP = 100  # steps: with fewer nothing is tuned or raced
LATE = "half of the time limit was over"
_LEAST_LIMIT = 15.0  # seconds of a time limit that leave time for a race


@dataclass
class RaceRow:
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
    rows: list[RaceRow]
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
    codes, now = _spread_starts(target, settings, initial), time.monotonic()
    if settings.num_warmup < FEWEST_WARMUP:
        why = f"a warm-up of {settings.num_warmup} steps is too short to tune or race (that takes {FEWEST_WARMUP})"
        return _without_a_race(target, asked, codes[: settings.num_chains], why)
    if bool(agree(np.array(deadline - now < _LEAST_LIMIT))):
        why = f"a time limit of less than {_LEAST_LIMIT:g} s leaves no time for one"
        return _without_a_race(target, asked, codes[: settings.num_chains], why, "the race")
    half = now + (deadline - now) / 2
    contest = Contest(target, settings, Trials(target, settings, codes, deadline=half), half, progress)
    entrants = _raced(contest, asked, initial)
    if not contest.entered and contest.unusable:
        found = "; ".join(f"{name} {why}" for name, why in contest.unusable.items())
        raise KernelError("No sampler can be used here.", expected="one that can sample this target", found=found)
    if not contest.entered:  # compiling and burning in took all of the time
        return _without_a_race(target, asked, contest.trials.codes[: settings.num_chains], LATE, "the race")
    contest.once_more()
    return _finished(contest, entrants)


def _spread_starts(target: Target, settings: Settings, initial: Any) -> np.ndarray:
    """(starts, d) those of the run, and as many random ones as make sixteen; where none of them is possible, the same again."""
    num = settings.num_chains
    more = -(-STARTS // num) * num
    if more == num or (initial is None and target.initial is None):
        return start_codes(target, settings.seed, initial, more)
    codes = start_codes(target, settings.seed, initial, num)
    try:
        spread = start_codes(target.replace(initial=None), settings.seed, None, more)
    except SaltusError:
        return np.resize(codes, (more, codes.shape[1]))
    return np.concatenate([codes, spread[num:]])


def _raced(contest: Contest, asked: Sequence[Any], initial: Any) -> Entrants:
    """Every sampler that is worth it has entered; who did not, and why."""
    target, guide, alone = contest.target, _guide(contest.target), tuple(asked) == (AUTO,)
    contest.progress.say("burning in")
    contest.burn_in(guide.start)
    if alone and not contest.late():
        contest.last_hope = guide
        contest.enter(guide)
        if contest.settled():
            return _not_needed(find_entrants(target, "", asked=asked), guide)
    contest.progress.say("checking the local model")
    entrants = find_entrants(target, *_doubt(target, contest.settings, initial), asked=asked)
    contest.last_hope = contest.last_hope or _last_hope(entrants)
    for entrant in sorted(entrants.first, key=lambda e: alone and not e.nothing_to_tune):
        _consider(contest, entrants, entrant, must=not alone)
    for entrant in entrants.others:
        _consider(contest, entrants, entrant)
    if contest.apart() and AUTO in asked:
        _temper_once(contest)
    return entrants


def _not_needed(entrants: Entrants, guide: Entrant) -> Entrants:
    entrants.out |= {e.name: NOT_NEEDED for e in (*entrants.first, *entrants.others) if e.name != guide.name}
    return entrants


def _consider(contest: Contest, entrants: Entrants, entrant: Entrant, must: bool = False) -> None:
    """Let it enter, or note why not. Where modes were seen, the best so far is tempered before others are tried."""
    if any(entrant.name == entry.entrant.name for entry in contest.entered):
        return
    if not must and contest.modes_seen():
        _temper_once(contest)
    why = LATE if contest.late() else "" if must else _why_not(contest, entrant, trusted=not entrants.doubt)
    if why:
        entrants.out[entrant.name] = why
    else:
        contest.enter(entrant)


def _temper_once(contest: Contest) -> None:
    if not contest.tempering and not contest.late():
        temper(contest)


def _guide(target: Target) -> Entrant:
    """Of the package, the simplest that does without a local model: with it the chains burn in."""
    return next(e for e in package_entrants(target) if not e.guided)


def _last_hope(entrants: Entrants) -> Entrant | None:
    """Of the package, the simplest that enters at once and does without a local model: where it fails, log_prob does."""
    ours = samplers().values()
    return min((e for e in entrants.first if not e.guided and e.kind in ours), key=lambda e: e.simplicity, default=None)


def _why_not(contest: Contest, entrant: Entrant, trusted: bool) -> str:
    """Why this one does not enter."""
    if not contest.entered:
        return ""
    if not any(entry.trial.jump > 0 for entry in contest.entered):
        return "" if entrant.needs_values_only else "nothing moves here"  # they move if anything can
    if entrant.last_resort:
        return "a last resort"
    return contest.why_not(entrant, trusted)


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


def _row(entry: Entry, chosen: bool) -> RaceRow:
    trial = entry.trial
    verdict = ""
    if not trial.jump > 0:
        verdict = "never moved"
    elif not trial.agrees:
        verdict = f"{'too slow to tell' if trial.too_short else 'chains disagree'} (R-hat {trial.worth.rhat:.2f})"
    return RaceRow(
        sampler=entry.entrant.name,
        kernel=repr(entry.kernel),
        ess_per_second=trial.ess_per_second,
        steps=trial.worth.steps,
        worst=trial.worth.worst,
        rhat=trial.worth.rhat,
        steps_per_second=1 / trial.seconds_per_step,
        acceptance=trial.acceptance,
        jump=trial.jump,
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


def _finished(contest: Contest, entrants: Entrants) -> Race:
    from .verdict import paragraph

    won, num = contest.winner(), contest.settings.num_chains
    rows = [_row(entry, entry is won) for entry in contest.entered]
    rows += [RaceRow(name, "", verdict=why) for name, why in contest.unusable.items()]
    steps = won.trial.worth.steps if np.isfinite(won.trial.worth.steps) else 0.0
    seconds, compiling = time.perf_counter() - contest.began, seconds_compiling() - contest.compiled
    cost = f"The race made {contest.spent} evaluations of log_prob and took {seconds:.1f} s, {compiling:.1f} s of them compiling."
    cut = "the race" if LATE in entrants.out.values() else ""
    told = " ".join(filter(None, [paragraph(rows, entrants.out, entrants.doubt), contest.tempering, cost]))
    return Race(won.kernel, won.trial.codes[:num], rows, told, steps, contest.spent, cut)
