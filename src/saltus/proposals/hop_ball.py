"""Uniform proposals within a radius, for targets without a gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from .. import random
from .._record import default_float, record, static
from ..spaces import Space
from .factorised import Factorised


def hop_ball(space: Space, codes: jax.Array, radius: jax.Array) -> Factorised | SiteBall:
    """Every site uniform within `radius` hops; where all values are one hop apart that is the whole space, so there
    `radius` random sites are drawn afresh instead (PAPER_NOTES 1.19)."""
    if space.diameter == 1:
        return SiteBall(codes, jnp.minimum(radius, space.num_sites), space.num_values)
    return Factorised(space.within(codes, radius))


@record
class SiteBall:
    """`radius` different sites, chosen uniformly, take uniform values, the current one included: symmetric."""

    codes: jax.Array
    radius: jax.Array
    num_values: int = static()

    def sample(self, key: jax.Array) -> jax.Array:
        site_key, value_key = random.split(key)
        d = self.codes.shape[0]
        order = jnp.argsort(random.uniform(site_key, (d,)))
        chosen = jnp.zeros(d, bool).at[order].set(jnp.arange(d, dtype=jnp.int32) < self.radius)
        fresh = random.categorical(value_key, jnp.ones((self.num_values, d), default_float()))
        return jnp.where(chosen, fresh.astype(self.codes.dtype), self.codes)

    def log_prob(self, codes: jax.Array) -> jax.Array:
        """log of sum over the chosen sets that contain every changed site: C(d - h, r - h) / C(d, r) k^-r."""
        dtype = default_float()
        d, h = jnp.asarray(self.codes.shape[0], dtype), jnp.sum(codes != self.codes).astype(dtype)
        r = self.radius.astype(dtype)
        log_choices = lambda n, k: gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)  # noqa: E731
        within = log_choices(d - h, jnp.maximum(r - h, 0)) - log_choices(d, r) - r * jnp.log(jnp.asarray(self.num_values, dtype))
        return jnp.where(h <= r, within, -jnp.inf)

    def log_normaliser_minus(self, other: SiteBall) -> jax.Array:
        return jnp.zeros((), default_float())
