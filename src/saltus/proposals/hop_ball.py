"""Uniform proposals within a radius, for targets without a gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from .. import random
from .._record import default_float, record, static
from ..spaces import Space
from .factorised import Factorised


def hop_ball(space: Space, codes: jax.Array, radius: jax.Array) -> Factorised | SiteBall:
    """Every site uniform within `radius` hops; where all values are one hop apart that is the whole space, so there
    `radius` random sites are drawn afresh instead."""
    if space.diameter == 1:
        return SiteBall(codes, jnp.minimum(radius, space.num_sites), tuple(space.num_values_per_site.tolist()))
    return Factorised(space.within(codes, radius))


@record
class SiteBall:
    """`radius` different sites, chosen uniformly, take uniform values, the current one included: symmetric."""

    codes: jax.Array
    radius: jax.Array
    num_values: tuple[int, ...] = static()  # of every site

    def sample(self, key: jax.Array) -> jax.Array:
        site_key, value_key = random.split(key)
        d = self.codes.shape[0]
        order = jnp.argsort(random.uniform(site_key, (d,)))
        chosen = jnp.zeros(d, bool).at[order].set(jnp.arange(d, dtype=jnp.int32) < self.radius)
        sizes = np.asarray(self.num_values)
        weights = np.arange(sizes.max())[:, None] < sizes
        fresh = random.categorical(value_key, jnp.asarray(weights, default_float()))
        return jnp.where(chosen, fresh, self.codes.astype(fresh.dtype))

    def log_prob(self, codes: jax.Array) -> jax.Array:
        r"""log of the sum over sets of r sites that contain every changed one, Π_{i in set} 1/k_i / C(d, r).

        With e_m the elementary symmetric polynomials of the 1/k_i of sites that did not change, built up site by site.
        """
        dtype = default_float()
        d, r = len(self.num_values), self.radius
        changed, inverse = codes != self.codes, 1 / jnp.asarray(self.num_values, dtype)

        def add(i: jax.Array, e: jax.Array) -> jax.Array:
            with_it = inverse[i] * jnp.concatenate([jnp.zeros(1, dtype), e[:-1]])
            return jnp.where(changed[i], with_it, e + with_it)

        sets = jax.lax.fori_loop(0, d, add, jnp.zeros(d + 1, dtype).at[0].set(1))[r]
        n, m = jnp.asarray(d, dtype), r.astype(dtype)
        return jnp.log(sets) - (gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1))

    def log_normaliser_minus(self, other: SiteBall) -> jax.Array:
        return jnp.zeros((), default_float())
