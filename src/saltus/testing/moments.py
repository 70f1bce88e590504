"""The exact answer of a small target, in the form the error metrics of `saltus.diagnostics` take."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from .._pairs import pair_tables
from ..engine.arguments import read_target
from ..target import Target
from .enumeration import enumerate_states, stationary


@dataclass(frozen=True)
class Moments:
    """By enumeration, in float64. What a space does not have is None: moments of categories, pair tables of many values."""

    marginals: np.ndarray  # (d, k)
    means: np.ndarray | None  # (d,)
    covariance: np.ndarray | None  # (d, d)
    pair_table: np.ndarray | None  # (d, d, 2, 2) P(code_i = k, code_j = l)


def exact_moments(target: Target) -> Moments:
    """Marginals, means, covariance and pairs of a target small enough to enumerate.

    target: a `saltus.Target` of at most some 10^5 states; of a product of spaces, sites are in the order of its parts.
    Returns a `Moments`. Example: `saltus.testing.exact_moments(saltus.targets.ising((3, 3), 0.4)).means`.
    """
    codes, p, space = np.asarray(enumerate_states(read_target(target))), stationary(target), target.space
    marginals = np.stack([np.bincount(site, p, minlength=space.num_values) for site in codes.T])
    if not space.numeric:
        return Moments(marginals, None, None, None)
    with jax.enable_x64(True):
        states = np.asarray(space.ravel(space.embed(jnp.asarray(codes))), np.float64)
    means = p @ states
    centred = states - means
    covariance = centred.T @ (p[:, None] * centred)
    if space.num_values != 2:
        return Moments(marginals, means, covariance, None)
    together = codes.T @ (p[:, None] * codes)
    return Moments(marginals, means, covariance, pair_tables(marginals[:, 1], together))
