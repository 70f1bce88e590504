r"""What weighted draws are worth: effective sample size and R-hat of the ratio estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from .ess import ess, split_rhat


def weighted_ess(x: Any, log_weight: Any) -> np.ndarray:
    r"""How many independent draws would estimate the mean as well: x (chains, ..., draws), log_weight (chains, draws) -> (...).

    $$ \hat m = \frac{\sum_t w_t h_t}{\sum_t w_t}, \qquad v_t = w_t (h_t - \hat m), \qquad
       \mathrm{ESS} = \sum_{\text{chains}} \mathrm{ess}(v) \cdot \frac{\bar w \sum w (h - \hat m)^2}{\sum v^2} $$

    The error of m is that of the mean of its influence values v over the mean weight; the fraction turns effective draws of v
    into draws of h. With equal weights it is 1, and this is the sum of `ess` over chains. 0 where the draws say nothing.
    """
    x, w, v = _influence(x, log_weight)
    centred = np.where(w > 0, v / np.where(w > 0, w, 1), 0)
    spread, size = np.sum(w * centred**2, axis=(0, -1)) * w.mean(), np.sum(v**2, axis=(0, -1))
    return np.sum(ess(v), axis=0) * np.where(size > 0, spread / np.where(size > 0, size, 1), 0)


def weighted_rhat(x: Any, log_weight: Any) -> np.ndarray:
    """Split R-hat of the influence values w (h - mean): x (chains, ..., draws), log_weight (chains, draws) -> (...)."""
    return split_rhat(_influence(x, log_weight)[2])


def weights(log_weight: Any) -> np.ndarray:
    """exp, relative to the largest; 0 where a weight is not a number."""
    log_weight = np.nan_to_num(np.asarray(log_weight, np.float64), nan=-np.inf, posinf=-np.inf, neginf=-np.inf)
    top = log_weight.max(initial=-np.inf)
    return np.exp(log_weight - top) if np.isfinite(top) else np.ones(log_weight.shape)


def _influence(x: Any, log_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(x, w, w (x - mean)), the mean over all chains; w with the axes of x."""
    x, w = np.asarray(x, np.float64), weights(log_weight)
    w = w.reshape(w.shape[0], *(1,) * (x.ndim - 2), w.shape[-1])
    mean = np.sum(w * x, axis=(0, -1), keepdims=True) / np.sum(w)
    return x, w, w * (x - mean)
