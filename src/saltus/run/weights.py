"""Weighted chains: `posterior` is resampled from them, so that it may be averaged as it is; the raw chain stays beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..diagnostics.weights import weighted_ess, weighted_rhat, weights
from ..engine.arguments import Settings
from ..engine.keys import RESAMPLING, chain_keys
from ..errors import RunError
from ..kernels import Kernel
from .tree import Layout

_MOST_NUMBERS = 2**25  # looked at once


def check_weights(kernel: Kernel, settings: Settings) -> None:
    """RunError where sums over draws were asked for, and draws do not count the same."""
    if kernel.weighted and settings.statistics:
        raise RunError(
            "The draws of this sampler carry weights, and running statistics count every draw once.",
            expected='keep="draws", or keep={name: function of s}',
            found=f"keep={', '.join(settings.keep)} with {kernel!r}",
            hint="run.posterior holds draws that were resampled by their weights: average those",
        )


def resampling(log_weight: np.ndarray, seed: int) -> np.ndarray:
    r"""(chains, draws) which draw of its chain each draw of the posterior is: systematic resampling, in order.

    $$ i_t = \min\{i : \sum_{j \le i} W_j > (u + t) / n\}, \qquad W = w / \textstyle\sum w $$

    with one u a chain, from the seed: a draw is taken n W times, rounded up or down.
    """
    chains, draws = log_weight.shape
    u = (chain_keys(seed, RESAMPLING, np.arange(chains))[:, 0] + 0.5) / 2**32
    index = np.zeros((chains, draws), np.int64)
    for c in range(chains if draws else 0):
        cumulative = np.cumsum(weights(log_weight[c]))
        index[c] = np.searchsorted(cumulative / cumulative[-1], (u[c] + np.arange(draws)) / draws, side="right")
    return np.minimum(index, max(draws - 1, 0))


def resampled(values: Any, index: np.ndarray) -> np.ndarray:
    """Draws of an array (chains, draws, ...) in memory."""
    return np.asarray(values)[np.arange(len(index))[:, None], index]


def worth_of(draws: dict[str, Any], log_weight: np.ndarray, layout: Layout) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """`ess` and `rhat` of the weighted mean: of every site of s, and, with its name behind, of every other variable.

    draws: {name: (chains, draws, ...)} that can be sliced; labels that are no numbers count as whether they are the first.
    """
    found = {}
    for name, values in draws.items():
        columns = [_column(values, part) for part in _parts(values.shape)]
        after = "" if name == "s" else f"_{name}"
        dims = layout.dims(name) or tuple(f"{name}_dim_{i}" for i in range(len(values.shape) - 2))
        for label, measure in (("ess", weighted_ess), ("rhat", weighted_rhat)):
            each = [measure(x, log_weight) for x in columns]
            found[f"{label}{after}"] = dims, np.concatenate(each, axis=0) if dims else each[0]
    return found


def _parts(shape: tuple[int, ...]) -> list[Any]:
    """Slices of the first axis behind the draws, few enough numbers each."""
    if len(shape) == 2:
        return [()]
    size = max(_MOST_NUMBERS // max(shape[0] * shape[1] * int(np.prod(shape[3:], dtype=int)), 1), 1)
    return [(slice(i, i + size),) for i in range(0, shape[2], size)]


def _column(values: Any, part: Any) -> np.ndarray:
    """(chains, ..., draws) numbers."""
    x = np.asarray(values[(slice(None), slice(None), *part)])
    x = x if x.dtype.kind in "biuf" else x == x[:1, :1]
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))
