r"""`thin="auto"`: steps per kept draw, chosen once, from what the warm-up shows.

With τ steps per effective draw (`diagnostics.worth`), N draws of C chains and n steps between draws are worth about N C n / τ.
Aimed at is as many as make R-hat a sharp instrument, 2000, as far as that takes no more than four seconds, or 1000 as far as that
takes no more than twenty, or 800 as far as that takes no more than a minute: some site is worse than what τ was measured on, and
each should have 400. At least 400 are aimed at (with a quarter in reserve) as far as a minute allows; never more than one effective
draw per draw. Seconds are computed (`cost`): the same call thins alike, unless a time limit is too short.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..diagnostics.worth import ENERGY, Worth, reference_chains, series, worth
from ..engine.arguments import Settings
from ..spaces import Space

ENOUGH, GOOD, PLENTY = 400, 1000, 2000
CAP_SECONDS, GOOD_SECONDS, PLENTY_SECONDS = 60.0, 20.0, 4.0
_RESERVE, _AMPLE = 1.25, 2.0
FEWEST_STEPS, _FEWEST_ROWS = 50, 8  # of the warm-up, to tell anything; of it that are still at hand
_MOST_CHAINS = 32


@dataclass(frozen=True)
class Thinning:
    thin: int
    why: str


def warmup_worth(space: Space, block: dict[str, np.ndarray]) -> Worth | None:
    """What the last rows of the warm-up are worth; None where there are too few. block: (rows, chains, ...)."""
    lp = block["lp"][:, :_MOST_CHAINS]
    if len(lp) < _FEWEST_ROWS:
        return None
    if "s" not in block:
        found = worth({ENERGY: lp.T.astype(np.float64)})
    else:
        codes = block["s"][:, :_MOST_CHAINS]
        found = worth(series(space, codes, lp, codes[0, reference_chains(codes.shape[1])]))
    return replace(found, worst=f"{found.worst}, in the warm-up")


def needed_steps(steps: float, settings: Settings) -> float:
    """Of each chain, for the draws asked for and, where that may be chosen, 400 effective ones. steps: per effective draw."""
    if isinstance(settings.thin, int):
        return settings.num_draws * settings.thin
    return max(settings.num_draws, _RESERVE * ENOUGH * steps / settings.num_chains)


def choose_thin(found: Worth | None, settings: Settings, seconds_per_step: float, parity: bool) -> Thinning:
    """seconds_per_step: computed. parity: only odd distances will do."""
    if found is None:
        return Thinning(1, f"1: to tell how far apart draws should be takes a warm-up of {FEWEST_STEPS} steps")
    if not math.isfinite(found.steps):
        return Thinning(1, f"1: nothing was seen to change ({found.worst})")
    total = settings.num_draws * settings.num_chains

    def steps_for(effective: float) -> int:
        return math.ceil(min(effective, total) * found.steps / total)

    def within(wanted: int, seconds: float) -> int:
        most = seconds / (settings.num_draws * max(seconds_per_step, 1e-9))
        return wanted if wanted <= most else 2 ** int(math.log2(max(most, 1)))

    enough = steps_for(_RESERVE * ENOUGH)
    ample = steps_for(_AMPLE * ENOUGH)
    aims = ((steps_for(PLENTY), PLENTY_SECONDS), (steps_for(GOOD), GOOD_SECONDS), (ample, CAP_SECONDS), (enough, CAP_SECONDS))
    thin = _odd(max(1, *(within(wanted, seconds) for wanted, seconds in aims)), parity)
    return Thinning(thin, f"{thin}: {_because(found, min(thin / found.steps, 1) * total, thin < enough)}")


def hurried(chosen: Thinning, settings: Settings, seconds_per_step: float, parity: bool, seconds_left: float) -> Thinning:
    """What fits into a time limit, where that is less than was chosen. seconds_per_step: as it was timed."""
    most = max(seconds_left, 0) / (settings.num_draws * max(seconds_per_step, 1e-9))
    if chosen.thin <= most or chosen.thin == 1:
        return chosen
    thin = 2 ** int(math.log2(max(most, 1)))
    thin = thin - 1 if parity and thin > 1 else thin
    return Thinning(thin, f"{thin}: the time limit leaves no time for more. Without it: {chosen.why}")


def _odd(thin: int, parity: bool) -> int:
    return thin + (parity and thin % 2 == 0)


def _because(found: Worth, expected: float, short: bool) -> str:
    told = f"an effective draw took {found.steps:.3g} steps ({found.worst})"
    if short:
        return f"{told}; {ENOUGH} effective draws would take more than {CAP_SECONDS:.3g} s: expect about {expected:.0f}"
    return f"{told}; expect about {expected:.0f} effective draws"
