r"""What chains are worth by a few scalar statistics of theirs: the energy, and distances from reference states.

Steps per effective draw are what one chain shows, its autocorrelation time τ. But a chain that sits in one mode shows none of
the others; there several chains tell: with n steps in each of m + 1 halves, the variance of their means is about W τ/n, so that

$$ (\hat R^2 - 1)\, n \approx \tau \chi^2_m / m , $$

and the left side is taken instead where it is larger than chance (one in a thousand) would make it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..spaces import Space
from .ess import FEWEST_DRAWS, autocorrelation_time, split_rhat
from .moves import label_distance

ENERGY = "energy"
_REFERENCES = 4
_NORMAL = 3.0902323  # its quantile at 0.999


@dataclass(frozen=True)
class Worth:
    """Of the worst statistic: steps per effective draw (infinite where none ever varies), and the largest R-hat.

    within: steps per effective draw as single chains show them, the largest of all statistics.
    """

    steps: float
    rhat: float
    worst: str
    within: float = 0.0


def reference_chains(num_chains: int) -> np.ndarray:
    """Up to four chains, evenly spaced, whose states may serve as references for the others; none where there are no others."""
    return np.arange(num_chains)[:: -(-num_chains // _REFERENCES)] if num_chains > 1 else np.zeros(0, int)


def series(space: Space, codes: np.ndarray, lp: np.ndarray, references: np.ndarray) -> dict[str, np.ndarray]:
    """{statistic: (chains, steps)} from codes (steps, chains, d), lp (steps, chains) and reference codes (r, d).

    References are states of `reference_chains`, in that order. A chain's distance from its own state grows from 0 at first, a
    trend that says nothing: only the others' distances count.
    """
    found, chains = {ENERGY: np.asarray(lp, np.float64).T}, np.arange(codes.shape[1])
    for owner, reference in zip(reference_chains(len(chains)), references, strict=True):
        others = codes[:, chains != owner]
        found[f"distance from a state of chain {owner}"] = np.asarray(_apart(space, others, reference), np.float64).T
    return found


def _apart(space: Space, codes: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """(...) of shown states, summed over pieces."""
    each = [
        label_distance(piece.space.labels[codes[..., piece.sites]], piece.space.labels[reference[piece.sites]], piece.space.numeric)
        for piece in space.pieces
    ]
    return np.sum(each, axis=0) if len(each) > 1 else each[0]


def worth(statistics: dict[str, np.ndarray]) -> Worth:
    """The worst of some statistics (chains, steps); those that never vary in any chain say nothing."""
    told = {name: _steps_and_rhat(x) for name, x in statistics.items()}
    judged = {name: found for name, found in told.items() if found is not None}
    if not judged:
        return Worth(np.inf, np.inf, "everything is constant", np.inf)
    worst = max(judged, key=lambda name: judged[name][0])
    return Worth(judged[worst][0], max(rhat for _, rhat, _ in judged.values()), worst, max(w for *_, w in judged.values()))


def _steps_and_rhat(x: np.ndarray) -> tuple[float, float, float] | None:
    n = x.shape[1]
    if n < FEWEST_DRAWS:
        return np.inf, np.inf, np.inf
    if np.ptp(x) == 0:
        return None
    rhat = float(split_rhat(x))
    worth_of_chains = np.sum(1 / autocorrelation_time(x))  # a chain that never moves adds nothing
    within = len(x) / worth_of_chains if worth_of_chains > 0 else np.inf
    between, freedom = (rhat**2 - 1) * (n // 2), 2 * len(x) - 1
    chance = _by_chance(freedom)
    return float(between if between > chance * within else within), rhat, float(within)


def _by_chance(freedom: int) -> float:
    """What χ²_m / m exceeds one time in a thousand, to a hundredth (Wilson and Hilferty 1931); scipy.stats takes long to import."""
    part = 2 / (9 * freedom)
    return float((1 - part + _NORMAL * np.sqrt(part)) ** 3)
