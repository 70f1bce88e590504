r"""Errors of functions of means, such as Binder's cumulant, from draws that are correlated.

With θ = g(x̄) and θ_(i) the same without block i of n, as long as several autocorrelation times,

$$ \hat\theta = n\theta - (n - 1) \overline{\theta_{(i)}}, \qquad
   \mathrm{error}^2 = \frac{n - 1}{n} \sum_i (\theta_{(i)} - \overline{\theta_{(i)}})^2 $$
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..diagnostics import ess_of_chains, split_rhat
from .observables import Observable

_TIMES, _MOST, _FEWEST = 10, 32, 4  # autocorrelation times in a block; blocks of a chain; blocks in all
_APART = 1.05  # R-hat from which a chain is one block: where chains disagree, blocks of one chain agree too well

Function = Callable[[np.ndarray], np.ndarray]


def derived(name: str, series: np.ndarray, g: Function) -> Observable:
    """θ = g(means) with its jackknife error.

    series: (chains, draws, p). g: (..., p) means -> (...,). tau, ess and rhat are those of the influence Σ_j ∂g/∂x̄_j (x_j - x̄_j).
    """
    draws = series.shape[1]
    influence = (series - series.mean(axis=(0, 1))) @ _slopes(g, series.mean(axis=(0, 1)))
    ess, rhat = float(ess_of_chains(influence[:, None, :])[0]), float(split_rhat(influence[:, None, :])[0])
    if np.ptp(influence) == 0:
        return Observable(name, float(g(series.mean(axis=(0, 1)))), 0.0, float("nan"), 0.0, rhat)
    tau = series.shape[0] * draws / ess if ess > 0 else float("inf")
    each = 1 if rhat > _APART else int(np.clip(draws / (_TIMES * max(tau, 1.0)), 1, _MOST))
    estimate, error = jackknifed(series, g, each)
    return Observable(name, estimate, error, tau, ess, rhat)


def jackknifed(series: np.ndarray, g: Function, blocks_per_chain: int) -> tuple[float, float]:
    """(θ less its bias, error) of series (chains, draws, p); without an error, infinity, where there are fewer than 4 blocks."""
    chains, draws, p = series.shape
    size = draws // blocks_per_chain
    blocks = series[:, draws - size * blocks_per_chain :].reshape(chains * blocks_per_chain, size, p).mean(axis=1)
    n, whole = len(blocks), float(g(blocks.mean(axis=0)))
    if n < _FEWEST:
        return whole, float("inf")
    without = g((blocks.sum(axis=0) - blocks) / (n - 1))
    middle = float(without.mean())
    return n * whole - (n - 1) * middle, float(np.sqrt((n - 1) / n * np.sum((without - middle) ** 2)))


def _slopes(g: Function, means: np.ndarray) -> np.ndarray:
    """∂g/∂x̄_j, by central differences."""
    step = 1e-6 * np.maximum(np.abs(means), 1e-12)
    moved = step * np.eye(len(means))
    return (g(means + moved) - g(means - moved)) / (2 * step)
