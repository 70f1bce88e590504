"""The search of one number: first its order of magnitude, then deciles, then around the best, on the mean L1 jump.

All candidates are stepped at once from the same chains, which go on with the best of them until it stops moving.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..kernels import Kernel
from ..kernels.declarations import Decades
from ..spaces import Space
from ..target import Target
from .trial import CANDIDATES, Chains, Outcome, with_values

STEPS = 100  # of a trial
_MOST_ROUNDS, _MOST_CLIMBS = 8, 30  # of one grid
SCALES = np.array([0, 0.25, -0.25, 1, -1, 4, -4, 16, -16, 64, -64])
FACTORS = np.array([0.25, 0.354, 0.5, 0.707, 0.841, 1, 1.189, 1.414, 2, 2.828, 4])
_SQUARED = Decades()


@dataclass
class Curve:
    """What was measured of one setting: a row per candidate and trial, in the order in which they were tried."""

    name: str
    values: list[float] = field(default_factory=list)
    jump: list[float] = field(default_factory=list)
    acceptance: list[float] = field(default_factory=list)
    stage: list[str] = field(default_factory=list)

    def add(self, stage: str, values: np.ndarray, found: Outcome) -> None:
        self.values += np.asarray(values, float).tolist()
        self.jump += np.asarray(found.jump, float).tolist()
        self.acceptance += np.asarray(found.acceptance, float).tolist()
        self.stage += [stage] * len(values)


def orders(space: Space, search: Any = _SQUARED) -> np.ndarray:
    """Eighteen orders of magnitude around the unit."""
    return search.unit(space) * 10.0 ** np.arange(-9, CANDIDATES - 9)


def deciles(order: float) -> np.ndarray:
    """1..9 times the order of magnitude below, and 1..9 times this one."""
    return np.concatenate([np.arange(1, 10) * order / 10, np.arange(1, 10) * order])


def radii(most: int) -> np.ndarray:
    """Up to eighteen whole numbers from 1 to `most`, evenly spaced in logarithm where there are more."""
    return np.unique(np.round(np.geomspace(1, most, CANDIDATES)).astype(int))


def radii_around(best: float, tried: np.ndarray) -> np.ndarray:
    """Whole numbers between the neighbours of the best of those tried."""
    below, above = tried[tried < best].max(initial=tried[0]), tried[tried > best].min(initial=tried[-1])
    return np.unique(np.round(np.linspace(below, above, CANDIDATES)).astype(int))


def tune_positive(kernel: Any, target: Target, name: str, search: Any, chains: Chains, steps: int = STEPS) -> tuple[Any, Curve]:
    """The kernel with a positive number chosen; the chains have moved on with it."""
    curve, scales = Curve(name), orders(target.space, search)
    value = order = scales[settle(kernel, target, {name: scales}, chains, steps, curve)]
    if not chains.late():
        value = decile = _best_decile(kernel, target, name, order, scales, chains, steps, curve)
    if not chains.late():
        finer = around(decile)
        value = finer[settle(kernel, target, {name: finer}, chains, 3 * steps, curve, smooth=True)]
    return with_values(kernel, **{name: value}), curve


def tune_radius(kernel: Any, target: Target, name: str, chains: Chains, steps: int = STEPS) -> tuple[Any, Curve]:
    """The kernel with a whole number chosen, from 1 to its `largest_radius`."""
    curve, coarse = Curve(name), radii(int(kernel.largest_radius(target.space)))
    value = coarse[settle(kernel, target, {name: coarse}, chains, steps, curve)]
    if not chains.late():
        finer = radii_around(value, coarse)
        value = finer[settle(kernel, target, {name: finer}, chains, steps, curve)]
    return with_values(kernel, **{name: value}), curve


def tune_signed(kernel: Any, target: Target, name: str, unit: float, chains: Chains, steps: int = STEPS) -> tuple[Any, Curve]:
    """The kernel with a number of either sign chosen: zero, or by factors 4 of the unit, then finer ones."""
    curve, grid = Curve(name), unit * SCALES
    value = grid[settle(kernel, target, {name: grid}, chains, steps, curve)]
    if value and not chains.late():
        finer = value * FACTORS
        value = finer[settle(kernel, target, {name: finer}, chains, steps, curve)]
    return with_values(kernel, **{name: value}), curve


def _best_decile(
    kernel: Kernel, target: Target, name: str, order: float, everything: np.ndarray, chains: Chains, steps: int, curve: Curve
) -> float:
    """The best of two decades of deciles; a best at the edge moves them by a decade. Always a value that was measured."""
    grid = deciles(order)
    for _ in range(_MOST_ROUNDS):
        best = settle(kernel, target, {name: grid}, chains, steps, curve)
        value, shift = float(grid[best]), {0: 0.1, len(grid) - 1: 10.0}.get(best, 1.0)
        grid = grid * shift
        if shift == 1 or chains.late() or not everything[0] <= grid[0] < grid[-1] <= everything[-1]:
            break
    return value


def around(decile: float) -> np.ndarray:
    """Even in logarithm, from half to twice: the neighbours of any decile lie in between."""
    return decile * np.geomspace(0.5, 2, CANDIDATES)


def settle(
    kernel: Kernel, target: Target, grid: dict[str, np.ndarray], chains: Chains, steps: int, curve: Curve, smooth: bool = False
) -> int:
    """Try the grid again and again, until the chains have burnt in and the best stays where it was; its index.

    While f climbs with some candidate, the chains go on with the one that climbs highest: far from typical states long jumps
    are easy, and say nothing. Then they go on with the largest jump, averaged over two rounds and, on a `smooth` grid, over
    neighbours.
    """
    before = None
    for _ in range(_MOST_ROUNDS):
        found = _burnt_in(kernel, target, grid, chains, steps, curve)
        jump = _smoothed(np.nan_to_num(found.jump)) if smooth else np.nan_to_num(found.jump)
        best = int(np.argmax(jump if before is None else jump + before))
        chains.move_to(found, best)
        if (before is not None and abs(best - int(np.argmax(before))) <= 1 + len(jump) // 9) or chains.late():
            break
        before = jump
    return best


def _burnt_in(kernel: Kernel, target: Target, grid: dict[str, np.ndarray], chains: Chains, steps: int, curve: Curve) -> Outcome:
    """The first outcome in which no candidate's f climbs, chain by chain, beyond four standard errors."""
    for _ in range(_MOST_CLIMBS):
        found = chains.try_out(kernel, target, grid, chains.length(steps))
        curve.add("orders" if len(curve.values) == 0 else "finer", grid[curve.name], found)
        if chains.late():
            break
        highest = int(np.argmax(found.log_prob.mean(axis=1)))
        f, last = found.log_prob[highest], chains.log_prob
        if last is not None:
            gain = f - last
            if gain.mean() <= 4 * gain.std() / np.sqrt(len(gain)) + 1e-6 * abs(f.mean()):
                break
        chains.move_to(found, highest)
    return found


def _smoothed(jump: np.ndarray) -> np.ndarray:
    """Each with its neighbours, 1:2:1: the curve is smooth, its measurement is not."""
    padded = np.concatenate([jump[:1], jump, jump[-1:]])
    return (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
