r"""How many independent draws would estimate a mean as well as these do, and whether chains agree: ESS and split R-hat."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_array, default_float
from ..errors import SaltusError

FEWEST_DRAWS = 4
_AT_ONCE = 2**21  # numbers whose Fourier transforms are held together


def ess(x: Any) -> Any:
    r"""Effective sample size N/τ, chain by chain: x (..., draws) -> (...,).

    JAX arrays may be traced; numpy arrays are computed by numpy, at once. `autocorrelation_time` has the estimator.
    0 where the draws say nothing: a constant chain, fewer than 4 draws, a NaN or
    an infinity among them. Never NaN, and at most N log10(N). It is blind to what a chain has not visited:
    of chains together see `ess_of_chains`, and `split_rhat`.
    """
    tau = autocorrelation_time(x)
    return module_of(tau).asarray(np.shape(x)[-1], tau.dtype) / tau


def autocorrelation_time(x: Any) -> Any:
    r"""Draws per independent draw, chain by chain: x (..., draws) -> (...,). The paper's estimator, as in TFP:

    $$ \tau = -1 + 2 \sum_{k \in \text{kept}} (1 - k/N) \rho_k, \qquad
       \rho_k = \frac{\frac{1}{N-k} \sum_n x_n x_{n+k}}{\frac{1}{N} \sum_n x_n^2}, \qquad \sum_n x_n = 0 $$

    keeping the pairs (ρ_0 + ρ_1), (ρ_2 + ρ_3), ... up to the first negative one. Unlike TFP's it is at least 1/log10(N):
    alternating chains would give τ near or below 0. Infinite where `ess` is 0.
    """
    x = as_draws(x, "(..., draws)", least_axes=1)
    xp, x = module_of(x), relative(x, x[..., :1])
    if x.shape[-1] < FEWEST_DRAWS:
        return xp.full(x.shape[:-1], xp.inf, x.dtype)
    return _integrated_time(np, x) if xp is np else _compiled_time(x)


def _integrated_time(xp: Any, x: Any) -> Any:
    n = x.shape[-1]
    unit, usable = scaled(xp, x, axis=-1)
    rho = autocorrelations(xp, unit)
    pairs = _sum_pairs(rho)
    index = xp.arange(n // 2)
    kept = index < xp.min(xp.where(pairs < 0, index, n // 2), axis=-1, keepdims=True)
    weighted = _sum_pairs(rho * (1 - xp.arange(n, dtype=x.dtype) / n))
    tau = -1 + 2 * xp.sum(xp.where(kept, weighted, 0), axis=-1)
    return xp.where(usable[..., 0], xp.maximum(tau, 1 / math.log10(n)), xp.inf)


_compiled_time = jax.jit(partial(_integrated_time, jnp))


def autocorrelations(xp: Any, x: Any) -> Any:
    """ρ_0, ..., ρ_{N-1}; by FFT, padded with zeros so that the end does not meet the beginning. All 0 where x is."""
    n = x.shape[-1]
    padded = 2 ** (2 * n - 1).bit_length()
    spectrum = xp.fft.rfft(x - xp.mean(x, axis=-1, keepdims=True), padded)
    products = xp.fft.irfft(spectrum.real**2 + spectrum.imag**2, padded)[..., :n]
    covariances = products / (n - xp.arange(n, dtype=x.dtype))
    variance = covariances[..., :1]
    return covariances / xp.where(variance > 0, variance, 1)


def _sum_pairs(x: Any) -> Any:
    """x_0 + x_1, x_2 + x_3, ...; the last value of an odd number is dropped."""
    even = x.shape[-1] // 2 * 2
    return x[..., 0:even:2] + x[..., 1:even:2]


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
    return np.where(varies, total / np.maximum(_monotone_time(rho), 1 / math.log10(total)), 0)[()]


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


def _monotone_time(rho: np.ndarray) -> np.ndarray:
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


def split_rhat(x: Any) -> Any:
    r"""Split R-hat (BDA3, Eqs. 11.3-11.4): x (chains, ..., draws) -> (...), chains first, draws last, the rest kept.

    $$ \hat R = \sqrt{\frac{\frac{n-1}{n} W + \frac{1}{n} B}{W}} $$

    over the halves of all chains, n draws each (the middle draw of an odd number is dropped): W is the mean of their
    variances, B/n the variance of their means. Near 1 when they agree; one chain will do, since it has two halves.
    0 marks a constant: every half sits at one and the same value, which says nothing. Infinite where each half is constant
    but not at the same value, and where agreement cannot be seen: fewer than 4 draws, a NaN or an infinity among them.
    """
    x = as_draws(x, "(chains, ..., draws)", least_axes=2)
    xp, x = module_of(x), relative(x, x[:1, ..., :1])
    if x.shape[-1] < FEWEST_DRAWS:
        return xp.full(x.shape[1:-1], xp.inf, x.dtype)
    return _rhat_of_halves(np, x) if xp is np else _compiled_rhat(x)


def _rhat_of_halves(xp: Any, x: Any) -> Any:
    n = x.shape[-1] // 2
    halves = xp.concatenate([x[..., :n], x[..., -n:]], axis=0)
    unit, usable = scaled(xp, halves, axis=(0, -1))
    constant = xp.all(halves == 0, axis=(0, -1))  # x is relative to a draw of the first half
    # Around the first draw of each half: the variance of a constant half is then exactly 0.
    within = unit - unit[..., :1]
    means = unit[..., 0] + xp.mean(within, axis=-1)
    W = xp.mean(xp.var(within, axis=-1, ddof=1), axis=0)
    ratio = (n - 1) / n + xp.var(means, axis=0, ddof=1) / xp.where(W > 0, W, 1)
    seen = usable[0, ..., 0] & (W > 0)
    return xp.where(constant, 0, xp.where(seen, xp.sqrt(ratio), xp.inf))


_compiled_rhat = jax.jit(partial(_rhat_of_halves, jnp))


def as_draws(x: Any, shape: str, least_axes: int) -> Any:
    """x as floats; a numpy array stays one."""
    x = as_array(x, "x", SaltusError, f"draws: real numbers of shape {shape}")
    if x.ndim < least_axes or 0 in (x.shape[0], x.shape[-1]):
        found = f"shape {tuple(x.shape)}"
        raise SaltusError("`x` is not a series of draws.", expected=f"shape {shape}, at least one draw", found=found)
    if x.dtype in (np.float32, np.float64):
        return x
    return x.astype(default_float() if isinstance(x, jax.Array) else np.float64)


def module_of(x: Any) -> Any:
    """numpy for host arrays, which then compile nothing and keep their dtype; jax.numpy for JAX's."""
    return jnp if isinstance(x, jax.Array) else np


def relative(x: Any, origin: Any) -> Any:
    """x - origin, exactly 0 where they are equal: with a log_prob near -1e6 the digits that vary survive float32."""
    with np.errstate(invalid="ignore", over="ignore"):
        return x - origin


def scaled(xp: Any, x: Any, axis: int | tuple[int, ...]) -> tuple[Any, Any]:
    """x over its largest size, so that no square overflows or vanishes, and whether that size was neither 0 nor undefined.

    Zeros where it was. The second array keeps its axes.
    """
    size = xp.max(xp.abs(x), axis=axis, keepdims=True)
    usable = (size > 0) & xp.isfinite(size)
    with np.errstate(invalid="ignore"):
        return xp.where(usable, x / xp.where(usable, size, 1), 0), usable
