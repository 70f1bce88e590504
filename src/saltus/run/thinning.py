r"""`thin="auto"`: steps per kept draw, chosen once, from what the warm-up shows.

With τ steps per effective draw (`diagnostics.worth`), N draws of C chains and n steps between draws are worth about
N C n / τ. Aimed at is as many as make R-hat a sharp instrument, 2000, as far as that takes no more than ten seconds; and at
least 400 (with a quarter in reserve, since τ is estimated), as far as that takes no more than a minute. Where a race went
before, at least twice as many steps as that made, within the same ten seconds: to choose should not cost more than to draw.
Never more than one effective draw per draw: longer distances buy nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..diagnostics.worth import Worth, series, worth
from ..spaces import Space
from .settings import Settings

ENOUGH, PLENTY = 400, 2000
CAP_SECONDS, PLENTY_SECONDS = 60.0, 10.0
_RESERVE = 1.25
_FEWEST_STEPS = 50  # of warm-up, to tell anything
_MOST_CHAINS, _REFERENCES = 32, 4


@dataclass(frozen=True)
class Thinning:
    thin: int
    why: str


def warmup_worth(space: Space, block: dict[str, np.ndarray]) -> Worth | None:
    """What the last rows of the warm-up are worth; None where there are too few. block: (rows, chains, ...)."""
    lp = block["lp"][:, :_MOST_CHAINS]
    if len(lp) < _FEWEST_STEPS:
        return None
    if "s" not in block:
        return worth({"energy": lp.T.astype(np.float64)})
    codes = block["s"][:, :_MOST_CHAINS]
    found = worth(series(space, codes, lp, codes[0, :_REFERENCES]))
    return replace(found, worst=f"{found.worst}, in the warm-up")


def choose_thin(
    found: Worth | None, settings: Settings, seconds_per_step: float, parity: bool, seconds_left: float, least_steps: float = 0
) -> Thinning:
    """parity: only odd distances will do. seconds_left: until the time limit. least_steps: of all chains together."""
    if found is None:
        return Thinning(1, f"1: a warm-up of fewer than {_FEWEST_STEPS} steps tells nothing about distances")
    if not math.isfinite(found.steps):
        return Thinning(1, f"1: {found.worst}")
    total = settings.num_draws * settings.num_chains

    def steps_for(effective: float) -> int:
        return math.ceil(min(effective, total) * found.steps / total)

    def within(seconds: float) -> int:
        return int(min(seconds, seconds_left) / (settings.num_draws * max(seconds_per_step, 1e-9)))

    enough = steps_for(_RESERVE * ENOUGH)
    plenty = max(steps_for(PLENTY), min(math.ceil(least_steps / total), steps_for(total)))
    thin = max(min(plenty, within(PLENTY_SECONDS)), min(enough, within(CAP_SECONDS)), 1)
    thin += parity and thin % 2 == 0
    return Thinning(thin, f"{thin}: {_because(found, thin * total / found.steps, thin < enough, min(CAP_SECONDS, seconds_left))}")


def _because(found: Worth, expected: float, short: bool, cap: float) -> str:
    told = f"an effective draw took {found.steps:.3g} steps ({found.worst})"
    if short:
        return f"{told}; {ENOUGH} effective draws would take more than {cap:.0f} s: expect about {expected:.0f}"
    return f"{told}; expect about {expected:.0f} effective draws"
