"""Inverse temperatures of an anneal, from what single-site changes of f amount to."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .._compiling import program
from ..target import Target

_STATES = 32  # random ones at which changes are looked at
_HOT, _COLD = 0.5, 6.0  # β times a typical change at the start, and times a small one at the end


def temperatures(target: Target, codes: np.ndarray) -> tuple[float, float]:
    """(first β, last β): at the first most changes are accepted, at the last hardly any that makes f smaller.

    codes: (states, d) possible ones, at which f is changed at one random site after another.
    """
    rng = np.random.default_rng(0)
    states = np.resize(codes, (_STATES, target.space.num_sites))
    num = target.space.num_values_per_site
    sites = rng.integers(target.space.num_sites, size=(_STATES, 16))
    hops = 1 + rng.integers(2**30, size=sites.shape) % np.maximum(num[sites] - 1, 1)
    new = (np.take_along_axis(states, sites, axis=1) + hops) % num[sites]
    given = (a.astype(target.space.code_dtype) if i != 1 else a.astype(np.int32) for i, a in enumerate((states, sites, new)))
    changes = np.abs(np.asarray(_changes(target, *map(jnp.asarray, given)), np.float64)).ravel()
    changes = changes[np.isfinite(changes) & (changes > 0)]
    if not changes.size:
        return 1.0, 1.0
    low, typical = float(np.quantile(changes, 0.05)), float(changes.mean())
    return _HOT / typical, max(_COLD / low, 4 * _HOT / typical)


@program()
def _changes(target: Target, states: jax.Array, sites: jax.Array, new: jax.Array) -> jax.Array:
    """(states, sites) f with one site changed, less f."""

    def one(codes: jax.Array, sites: jax.Array, new: jax.Array) -> jax.Array:
        f = target.value(codes)
        return jax.vmap(lambda site, code: target.value(codes.at[site].set(code)) - f)(sites, new)

    return jax.lax.map(lambda given: one(*given), (states, sites, new))


def falling(first: float, last: float, num: int) -> np.ndarray:
    """(num,) β in equal ratios from first to last; the last tenth stays there, so that every chain ends at the top of a hill."""
    ramp = max(num - max(num // 10, 1), 1)
    return np.concatenate([np.geomspace(first, last, ramp), np.full(num - ramp, last)])[:num]
