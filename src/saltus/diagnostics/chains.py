r"""Effective sample size of several chains together: chains that disagree are worth little, however long each is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .ess import FEWEST_DRAWS, as_draws, relative, scaled

_AT_ONCE = 2**21  # numbers whose Fourier transforms are held together


def ess_of_chains(x: Any) -> Any:
    r"""Effective draws of all chains together: x (chains, ..., draws) -> (...), chains first, draws last.

    The variance between chains counts, as in Vehtari et al. (2021): over the m halves of all chains, n draws each,

    $$ \rho_k = 1 - \frac{W - \bar\gamma_k}{\frac{n-1}{n} W + B/n}, \qquad \tau = -1 + 2 \sum_k \rho_k, \qquad
       \mathrm{ESS} = \frac{m n}{\tau} $$

    with W the mean of their variances, B/n the variance of their means and γ̄_k their mean autocovariance at lag k. Pairs
    of ρ are summed up to the first that is not positive, none counted for more than the one before it. This is ArviZ's
    ess(method="mean"), and like it at most N log10(N).

    x: real numbers, at least one chain and one draw. Computed on the host, in float64.
    Returns 0 where the draws say nothing: no half of any chain varies, fewer than 4 draws, a NaN or an infinity among them.

        ess_of_chains(run["sample_stats"]["lp"].values)
    """
    x = np.asarray(as_draws(x, "(chains, ..., draws)", least_axes=2), np.float64)
    n = x.shape[-1] // 2
    if x.shape[-1] < FEWEST_DRAWS:
        return np.zeros(x.shape[1:-1])[()]
    x, usable = scaled(np, relative(x, x[:1, ..., :1]), axis=(0, -1))
    halves = np.concatenate([x[..., :n], x[..., -n:]])
    halves = halves - halves[..., :1]  # of a constant half exactly 0
    means = np.concatenate([x[..., 0], x[..., -n]]) + halves.mean(axis=-1)
    covariances = _mean_autocovariances(halves - halves.mean(axis=-1, keepdims=True))
    varies = usable[0, ..., 0] & (np.ptp(halves, axis=-1) > 0).any(axis=0)
    within = covariances[..., :1] * n / (n - 1)
    spread = covariances[..., :1] + means.var(axis=0, ddof=1)[..., None]
    rho = 1 - (within - covariances) / np.where(spread > 0, spread, 1)
    rho[..., 0] = 1
    total = halves.shape[0] * n
    return np.where(varies, total / np.maximum(_integrated(rho), 1 / math.log10(total)), 0)[()]


def _mean_autocovariances(x: np.ndarray) -> np.ndarray:
    """(..., n) over lags, of centred x (m, ..., n), each divided by n; a few chains at a time."""
    n = x.shape[-1]
    padded = 2 ** (2 * n - 1).bit_length()
    at_once = max(_AT_ONCE // (padded * math.prod(x.shape[1:-1])), 1)
    power = np.zeros((*x.shape[1:-1], padded // 2 + 1))
    for start in range(0, len(x), at_once):
        spectrum = np.fft.rfft(x[start : start + at_once], padded)
        power += (spectrum.real**2 + spectrum.imag**2).sum(axis=0)
    return np.fft.irfft(power, padded)[..., :n] / (len(x) * n)


def _integrated(rho: np.ndarray) -> np.ndarray:
    """τ from ρ_0, ρ_1, ...: Geyer's initial monotone sequence, and half of what begins the first pair left out.

    The last pair of a sequence that never ends counts as left out; but of halves of 2 to 4 draws every pair is needed.
    """
    n = rho.shape[-1]
    num, longest = ((n - 1) // 2, (n - 3) // 2) if n > 4 else (n // 2, n // 2)
    even, odd = rho[..., 0 : 2 * num : 2], rho[..., 1 : 2 * num : 2]
    pairs, index = even + odd, np.arange(num)
    end = np.min(np.where(pairs > 0, longest, index), axis=-1, keepdims=True)
    kept = np.where(index < end, np.minimum.accumulate(pairs, axis=-1), 0)
    after = np.where(index == end, np.maximum(even, 0), 0)
    return -1 + (2 * kept + after).sum(axis=-1)
