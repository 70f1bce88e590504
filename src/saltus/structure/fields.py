r"""Exact single-site changes of a quadratic f, from the pull Hs of all sites on each:

f(s with s_i = v) - f(s) = φ_i(v) - φ_i(s_i) + (v - s_i)·(Hs)_i
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .quadratic import BoundQuadratic


def pull(quadratic: BoundQuadratic, space: Any, codes: jax.Array) -> jax.Array:
    """Hs."""
    return quadratic.coupling.matvec(space.ravel(space.embed(codes)))


def packed(space: Any, potentials: jax.Array, pulls: jax.Array) -> jax.Array:
    """φ_i(v) + v·(Hs)_i of some sites, as the space's form of Moves keeps tables.

    potentials: (sites, k). pulls: as many entries of Hs as those sites have.
    """
    num, k = potentials.shape
    values = jnp.asarray(space.values.reshape(k, -1), pulls.dtype)
    pulls = pulls.reshape(num, -1)
    if k == 2:
        step = values[1] - values[0]
        return potentials[:, 1] - potentials[:, 0] + (pulls[:, 0] * step[0] if len(step) == 1 else pulls @ step)
    table = potentials + (pulls * values[:, 0] if values.shape[1] == 1 else jnp.matmul(pulls, values.T, precision="highest"))
    return space.form.packed(space, table)
