r"""What chains are worth by a few scalar statistics of theirs: the energy, and distances from reference states.

Steps per effective draw are the larger of what one chain shows, its autocorrelation time, and what several show: with
n steps in each half, the means of halves scatter with variance W τ/n, so that

$$ \tau \approx (\hat R^2 - 1)\, n . $$

The first misses modes a chain has not left yet; the second sees them where chains are in different ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..spaces import Space
from .ess import FEWEST_DRAWS, autocorrelation_time
from .rhat import split_rhat
from .rows import travelled

ENERGY = "energy"
_NUMERIC_DIMS = 1  # values that are numbers; else categories or directions, told apart only


@dataclass(frozen=True)
class Worth:
    """Of the worst statistic: steps per effective draw (infinite where none ever varies), and the largest R-hat."""

    steps: float
    rhat: float
    worst: str


def series(space: Space, codes: np.ndarray, lp: np.ndarray, references: np.ndarray) -> dict[str, np.ndarray]:
    """{statistic: (chains, steps)} from codes (steps, chains, d), lp (steps, chains) and reference codes (r, d)."""
    labels, numeric = space.labels, space.values.ndim == _NUMERIC_DIMS
    found = {ENERGY: np.asarray(lp, np.float64).T}
    for i, reference in enumerate(references):
        found[f"distance from state {i}"] = np.asarray(travelled(labels[codes], labels[reference], numeric), np.float64).T
    return found


def worth(statistics: dict[str, np.ndarray]) -> Worth:
    """The worst of some statistics (chains, steps); those that never vary in any chain say nothing."""
    told = {name: _steps_and_rhat(x) for name, x in statistics.items()}
    judged = {name: found for name, found in told.items() if found is not None}
    if not judged:
        return Worth(np.inf, np.inf, "everything is constant")
    worst = max(judged, key=lambda name: judged[name][0])
    return Worth(judged[worst][0], max(rhat for _, rhat in judged.values()), worst)


def _steps_and_rhat(x: np.ndarray) -> tuple[float, float] | None:
    n = x.shape[1]
    if n < FEWEST_DRAWS:
        return np.inf, np.inf
    if np.ptp(x) == 0:
        return None
    rhat = float(split_rhat(x))
    worth_of_chains = np.sum(1 / autocorrelation_time(x))  # a chain that never moves adds nothing
    within = len(x) / worth_of_chains if worth_of_chains > 0 else np.inf
    return float(max(within, (rhat**2 - 1) * (n // 2))), rhat
