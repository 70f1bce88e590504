"""The paper's search: first the order of magnitude, then its deciles, on the mean L1 jump (PAPER_NOTES section 3).

All candidates are stepped at once from the same chains, which go on with the best of them until it stops moving.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._record import changed
from ..kernels import Kernel
from ..spaces import Space
from ..target import Target
from .trial import CANDIDATES, Chains, Outcome

STEPS = 100  # of a trial
_MOST_ROUNDS = 8  # of one grid


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


def unit(space: Space) -> float:
    """The square of the smallest distance between two values: what step sizes are measured in."""
    table = space.distance_table()
    return float(table[table > 0].min())


def orders(space: Space) -> np.ndarray:
    """Eighteen orders of magnitude around the unit."""
    return unit(space) * 10.0 ** np.arange(-9, CANDIDATES - 9)


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


def tune_field(kernel: Any, target: Target, name: str, chains: Chains, steps: int = STEPS) -> tuple[Any, Curve]:
    """The kernel with its `name` ("step_size" or "radius") chosen; the chains have moved on with it."""
    curve = Curve(name)
    if name == "radius":
        coarse = radii(kernel.largest_radius(target.space))
        best = settle(kernel, target, {name: coarse}, chains, steps, curve)
        finer = radii_around(coarse[best], coarse)
        value = finer[settle(kernel, target, {name: finer}, chains, steps, curve)]
    else:
        scales = orders(target.space)
        order = scales[settle(kernel, target, {name: scales}, chains, steps, curve)]
        value = _best_decile(kernel, target, name, order, chains, steps, curve)
    return changed(kernel, **{name: jnp.asarray(value, getattr(kernel, name).dtype)}), curve


def _best_decile(kernel: Kernel, target: Target, name: str, order: float, chains: Chains, steps: int, curve: Curve) -> float:
    """The best of two decades of deciles; a best at the edge moves them by a decade. Always a value that was measured."""
    grid, everything = deciles(order), orders(target.space)
    for _ in range(_MOST_ROUNDS):
        best = settle(kernel, target, {name: grid}, chains, 3 * steps, curve, smooth=True)
        value, shift = float(grid[best]), {0: 0.1, len(grid) - 1: 10.0}.get(best, 1.0)
        grid = grid * shift
        if shift == 1 or not everything[0] <= grid[0] < grid[-1] <= everything[-1]:
            break
    return value


def settle(
    kernel: Kernel, target: Target, grid: dict[str, np.ndarray], chains: Chains, steps: int, curve: Curve, smooth: bool = False
) -> int:
    """Try the grid again and again, going on with the best, until it stays where it was and f no longer climbs.

    The index of the best: the largest jump, averaged over the last two rounds and, on a `smooth` grid, over neighbours.
    """
    name, before = curve.name, None
    level: Any = -np.inf
    for _ in range(_MOST_ROUNDS):
        found = chains.try_out(kernel, target, grid, chains.length(steps))
        curve.add("orders" if len(curve.values) == 0 else "finer", grid[name], found)
        jump = _smoothed(np.nan_to_num(found.jump)) if smooth else np.nan_to_num(found.jump)
        best = int(np.argmax(jump if before is None else jump + before))
        chains.codes = found.codes[best]
        f = found.log_prob[best]
        climbs = f.mean() > level + 2 * f.std() / np.sqrt(len(f)) + 1e-6 * abs(f.mean())
        if before is not None and not climbs and abs(best - int(np.argmax(before))) <= 1 + len(jump) // 9:
            break
        before, level = jump, max(f.mean(), level)
    return best


def _smoothed(jump: np.ndarray) -> np.ndarray:
    """Each with its neighbours, 1:2:1: the curve is smooth, its measurement is not."""
    padded = np.concatenate([jump[:1], jump, jump[-1:]])
    return (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
