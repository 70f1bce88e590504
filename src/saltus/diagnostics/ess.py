r"""Effective sample size of one chain: how many independent draws would estimate its mean as well."""

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
