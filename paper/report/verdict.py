"""Is one sampler better than another? Errors at equal budget, their difference in standard errors, and a word for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Measured = dict[str, Any]  # of one cell
Results = dict[tuple[str, str], list[Measured]]  # (problem, sampler) -> a cell for each seed
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "not decided: within the noise"
DECIDED = 2.0  # standard errors of the difference
ALIKE = 0.15  # relative: within it two errors count as equal, and a number as reproduced
AXES = {"iterations": "iteration", "evaluations": "evaluation", "seconds": "second"}


@dataclass(frozen=True)
class Estimate:
    mean: float
    error: float  # one standard error

    def __str__(self) -> str:
        """Two digits of the error, and as many decimals of the mean."""
        if not 0 < self.error < math.inf:
            return f"{self.mean:.3g}"
        places = max(1 - math.floor(math.log10(self.error)), 0)
        return f"{self.mean:.{places}f} ± {self.error:.{places}f}"


def estimate(means: Sequence[float], errors: Sequence[float]) -> Estimate:
    """Over seeds: the standard error from the chains of all seeds, or from the spread of seeds, whichever is larger."""
    n = len(means)
    over_chains = math.sqrt(sum(e * e for e in errors)) / n
    over_seeds = float(np.std(means, ddof=1)) / math.sqrt(n) if n > 1 else 0.0
    return Estimate(float(np.mean(means)), max(over_chains, over_seeds))


def at_budget(cells: Sequence[Measured], metric: str, axis: str, budget: float) -> Estimate:
    """The error after so many iterations, evaluations or seconds; between two points by a power law."""
    read = [_read_curve(cell, metric, axis, budget) for cell in cells]
    return estimate([m for m, _ in read], [e for _, e in read])


def _read_curve(cell: Measured, metric: str, axis: str, budget: float) -> tuple[float, float]:
    x = np.log(cell[axis])
    curve = cell["metrics"][metric]
    return tuple(float(np.exp(np.interp(math.log(budget), x, np.log(curve[part])))) for part in ("mean", "error"))


def common_budget(cells: Sequence[Measured], axis: str) -> float:
    """The most that every one of these has spent."""
    return min(cell[axis][-1] for cell in cells)


@dataclass(frozen=True)
class Comparison:
    """The errors of two samplers at the same budget."""

    better: Estimate  # of the sampler that is said to be better
    worse: Estimate

    @property
    def off(self) -> float:
        """How far the first is ahead, in standard errors of the difference."""
        error = math.hypot(self.better.error, self.worse.error)
        gap = self.worse.mean - self.better.mean
        return gap / error if error else math.copysign(math.inf, gap)

    @property
    def ratio(self) -> Estimate:
        """The first error over the second."""
        ratio = self.better.mean / self.worse.mean
        relative = math.hypot(self.better.error / self.better.mean, self.worse.error / self.worse.mean)
        return Estimate(ratio, ratio * relative)

    def verdict(self, relation: str) -> str:
        """relation: ">" or ">=" (the first is better, or no worse), "=" (alike)."""
        if relation == "=":
            return alike(self.ratio, 1.0)
        if abs(self.off) < DECIDED:
            return UNDECIDED
        return HOLDS if self.off > 0 else FAILS


def compare(first: Sequence[Measured], second: Sequence[Measured], metric: str, axis: str) -> Comparison:
    budget = common_budget([*first, *second], axis)
    return Comparison(at_budget(first, metric, axis, budget), at_budget(second, metric, axis, budget))


def alike(found: Estimate, expected: float) -> str:
    """Within 15 % of what was expected, or not, by two standard errors; or too noisy to say."""
    off, noise = abs(found.mean / expected - 1), DECIDED * found.error / expected
    if off + noise <= ALIKE:
        return HOLDS
    return FAILS if off - noise > ALIKE else UNDECIDED
