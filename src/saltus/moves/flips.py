"""Two values: one score a site."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .._fusion import stored
from .._record import changed, record
from .base import Moves

_LONG = 2**12  # sites from which on an array is worth a boundary of its own


@record
class Flips(Moves):
    """Two values: the score of flipping each site, (d,). Packed tables are (d,): how much more code 1 has than code 0."""

    @property
    def num_values(self) -> int:
        return 2

    def each(self, codes: jax.Array) -> jax.Array:
        return jnp.where(codes != self.codes, self.scores, 0)

    def recentre(self, codes: jax.Array) -> Flips:
        return Flips(codes, jnp.where(codes != self.codes, -self.scores, self.scores))

    def only(self, sites: jax.Array) -> Flips:
        return changed(self, scores=jnp.where(sites, self.scores, -jnp.inf))

    def normaliser(self) -> tuple[jax.Array, jax.Array]:
        return jnp.maximum(self.scores, 0), 1 + jnp.exp(-jnp.abs(self.scores))

    def choose(self, u: jax.Array) -> jax.Array:
        # In halves, as `random.unit` makes its numbers: put together before they are used they would be copied twice.
        halves = zip(*(jnp.split(x, [-(-len(x) // 2)]) for x in (self.codes, self.scores, u[0])), strict=True)
        if len(self.codes) < _LONG:
            return jnp.concatenate([_flipped(*half) for half in halves])
        return jnp.concatenate([stored(_flipped, *half) for half in halves])

    def departures(self) -> jax.Array:
        return self.scores

    def depart(self, index: jax.Array) -> jax.Array:
        return self.codes.at[index].set(1 - self.codes[index])

    def table(self) -> jax.Array:
        here = self.codes[:, None] == jnp.arange(2, dtype=self.codes.dtype)
        return jnp.where(here, 0, self.scores[:, None])

    @classmethod
    def linear(cls, space: Any, codes: jax.Array, h: jax.Array) -> Flips:
        h = jnp.reshape(h, space.shape)
        slope = _over_vector(h * _step(space, h.dtype))
        return cls(codes, jnp.where(codes == 0, slope, -slope))

    @classmethod
    def quadratic(cls, space: Any, codes: jax.Array, c: jax.Array) -> Flips:
        c = space.per_entry(c)
        return cls(codes, _over_vector(c * _step(space, c.dtype) ** 2))

    @classmethod
    def packed(cls, space: Any, table: jax.Array) -> jax.Array:
        return table if table.ndim == 1 else table[:, 1] - table[:, 0]

    @classmethod
    def unpacked(cls, codes: jax.Array, packed: jax.Array) -> Flips:
        return cls(codes, jnp.where(codes == 0, packed, -packed))

    @classmethod
    def rows(cls, codes: jax.Array, packed: jax.Array) -> jax.Array:
        """0 at the current value."""
        zero = jnp.zeros_like(packed)
        both = jnp.where(codes == 0, jnp.stack([zero, packed]), jnp.stack([-packed, zero]))
        return jnp.where(jnp.isnan(both), -jnp.inf, both).T

    @classmethod
    def conditionals(cls, codes: jax.Array, packed: jax.Array) -> Flips:
        """Where both values are impossible, either is as good: so a chain leaves a bad start."""
        return cls.unpacked(codes, jnp.where(jnp.isnan(packed), 0, packed))

    @classmethod
    def chosen(cls, codes: jax.Array, packed: jax.Array, u: jax.Array) -> jax.Array:
        drawn = cls(jnp.zeros_like(codes), packed).choose(u)  # seen from code 0: faster
        return jnp.where(jnp.isnan(packed), codes, drawn)


def _flipped(codes: jax.Array, scores: jax.Array, u: jax.Array) -> jax.Array:
    """The rarer outcome happens when u < e / (1 + e), e = exp(-|score|): no division, and u is finest near zero."""
    e = jnp.exp(-jnp.abs(scores))
    rarer = u * (1 + e) < e
    return jnp.where(rarer ^ (scores > 0), 1 - codes, codes)


def _step(space: Any, dtype: Any) -> jax.Array:
    """What is added to s_i when code 0 becomes 1."""
    return jnp.asarray(space.values[1] - space.values[0], dtype)


def _over_vector(x: jax.Array) -> jax.Array:
    """Sum over the entries of a vector value; numbers stay as they are."""
    return jnp.sum(x, axis=-1) if x.ndim == 2 else x
