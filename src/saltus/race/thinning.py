r"""`thin="auto"`: steps per kept draw, chosen once, from what the warm-up shows.

With τ steps per effective draw (`diagnostics.worth`), N draws of C chains and n steps between draws are worth about
N C n / τ. Aimed at is as many as make R-hat a sharp instrument, 2000, as far as that takes no more than twenty seconds; and at
least 400 (with a quarter in reserve, since τ is estimated), as far as that takes no more than a minute; never more than
one effective draw per draw. Unless a race went before: then at least twice as many steps as that made, within the same minute:
to choose should not cost more than to draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..diagnostics.worth import ENERGY, Worth, reference_chains, series, worth
from ..engine.arguments import Settings
from ..spaces import Space

ENOUGH, PLENTY = 400, 2000
CAP_SECONDS, PLENTY_SECONDS = 60.0, 20.0
_RESERVE = 1.25
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


def choose_thin(
    found: Worth | None, settings: Settings, seconds_per_step: float, parity: bool, seconds_left: float, least_steps: float = 0
) -> Thinning:
    """parity: only odd distances will do. seconds_left: until the time limit. least_steps: of all chains together.

    Where time decides, the largest power of two that fits is taken, so that the same call mostly makes the same choice.
    """
    if found is None:
        return Thinning(1, f"1: to tell how far apart draws should be takes a warm-up of {FEWEST_STEPS} steps")
    if not math.isfinite(found.steps):
        return Thinning(1, f"1: nothing was seen to change ({found.worst})")
    total = settings.num_draws * settings.num_chains

    def steps_for(effective: float) -> int:
        return math.ceil(min(effective, total) * found.steps / total)

    def within(wanted: int, seconds: float) -> int:
        most = min(seconds, seconds_left) / (settings.num_draws * max(seconds_per_step, 1e-9))
        return wanted if wanted <= most else 2 ** int(math.log2(max(most, 1)))

    enough = steps_for(_RESERVE * ENOUGH)
    after_a_race = within(math.ceil(least_steps / total), CAP_SECONDS)
    thin = max(within(steps_for(PLENTY), PLENTY_SECONDS), within(enough, CAP_SECONDS), after_a_race, 1)
    thin += parity and thin % 2 == 0
    cap = max(min(CAP_SECONDS, seconds_left), 0)
    return Thinning(thin, f"{thin}: {_because(found, min(thin / found.steps, 1) * total, thin < enough, cap)}")


def _because(found: Worth, expected: float, short: bool, cap: float) -> str:
    told = f"an effective draw took {found.steps:.3g} steps ({found.worst})"
    if short:
        return f"{told}; {ENOUGH} effective draws would take more than {cap:.3g} s: expect about {expected:.0f}"
    return f"{told}; expect about {expected:.0f} effective draws"
