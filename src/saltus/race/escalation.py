"""Chains that move and disagree sit in several modes: the sampler is tempered, and its round trips say whether that helps."""

from __future__ import annotations

import time

from ..kernels import Kernel, Tempered
from ..tuning.ladder import search_ladder
from .compiling import seconds_compiling
from .contest import LONGEST_TRIAL, TRIAL_SECONDS, Contest, Entry, first_line
from .entrants import Entrant
from .trial_run import TrialRun

_LADDERS, _EFFORT = 8, 1.0
_ENOUGH = 400  # effective draws of a trial


def temper(contest: Contest) -> None:
    """Enter the best so far on every rung of a ladder that is found for it, and say what came of it."""
    best = contest.winner()
    contest.progress.say(f"chains disagree: tempering {best.entrant.name}")
    began, before, compiled = time.perf_counter(), contest.spent, seconds_compiling()
    try:
        kernel, trial = _tempered(contest, best.kernel)
    except Exception as cause:
        contest.tempering = f"{_why(best)} Tempering could not be used: {first_line(cause)}."
        return
    seconds, compiled = time.perf_counter() - began, seconds_compiling() - compiled
    entry = Entry(Entrant(Tempered, start=kernel, ready=True), kernel, trial, contest.spent - before, seconds, compiled)
    contest.entered.append(entry)
    contest.trials.codes = trial.codes
    contest.tempering = f"{_why(best)} {_verdict(entry)}"


def _tempered(contest: Contest, part: Kernel) -> tuple[Kernel, TrialRun]:
    """The ladder, frozen, and its trial: longer where replicas have not travelled far enough to tell."""
    found = search_ladder(contest.target, part, contest.trials.codes[:_LADDERS], contest.settings.seed, _EFFORT, measured=False)
    contest.spent += found.evaluations
    for seconds in (2 * TRIAL_SECONDS, LONGEST_TRIAL):
        trial = contest.try_out(found.kernel, seconds, _ENOUGH)
        contest.trials.codes = trial.codes
        if worked(trial):
            break
    return found.kernel, trial


def worked(trial: TrialRun) -> bool:
    """At least one round trip a chain, and chains that agree."""
    return trial.told.round_trips >= len(trial.codes) and trial.agrees


def _why(best: Entry) -> str:
    starts, rhat = len(best.trial.codes), best.trial.worth.rhat
    if best.trial.energies_agree:
        return f"Two modes, or more: {starts} chains from spread starts agree in energy and not in state (R-hat {rhat:.3g})."
    return f"{starts} chains from spread starts do not agree (R-hat {rhat:.3g})."


def _verdict(entry: Entry) -> str:
    trial, ladder = entry.trial, entry.trial.told
    cost = f"it took {entry.seconds:.1f} s and {entry.evaluations} evaluations"
    trips = f"{ladder.round_trips} round trips of {len(trial.codes)} ladders in {trial.steps} steps"
    if worked(trial):
        return f"So it was tempered on {len(ladder.rejection) + 1} rungs, and chains agree: {trips}; {cost}."
    return f"Tempering it on {len(ladder.rejection) + 1} rungs did not help enough: {trips}, R-hat {trial.worth.rhat:.3g}; {cost}."
