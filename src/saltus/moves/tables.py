"""Any number of values: a table of scores."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .. import random
from .._fusion import stored
from .._record import changed, record
from .base import Moves, over_values


@record
class Tables(Moves):
    """Any number of values: scores (k, d), and packed tables likewise.

    Sites come last, since processors make many short sums at once, not one.
    """

    @property
    def num_values(self) -> int:
        return self.scores.shape[0]

    def _is(self, codes: jax.Array) -> jax.Array:
        return codes == jnp.arange(self.num_values, dtype=codes.dtype)[:, None]

    def each(self, codes: jax.Array) -> jax.Array:
        return over_values(jnp.add, jnp.where(self._is(codes), self.scores, 0))

    def recentre(self, codes: jax.Array) -> Tables:
        # Impossible values stay impossible and the centre is exactly 0, whatever the score at the centre was.
        centred = jnp.where(self.scores == -jnp.inf, -jnp.inf, self.scores - self.each(codes))
        return Tables(codes, jnp.where(self._is(codes), 0, centred))

    def only(self, sites: jax.Array) -> Tables:
        return changed(self, scores=jnp.where(sites | self._is(self.codes), self.scores, -jnp.inf))

    def _weights(self) -> tuple[jax.Array, jax.Array]:
        top = over_values(jnp.maximum, self.scores)
        # A score of +inf owns its site; without this exp(inf - inf) would be NaN.
        return top, jnp.where(self.scores == top, 1, jnp.exp(self.scores - top))

    def normaliser(self) -> tuple[jax.Array, jax.Array]:
        top, weights = self._weights()
        return top, over_values(jnp.add, weights)

    def choose(self, u: jax.Array) -> jax.Array:
        return stored(lambda u, w: random.inverse_cdf(u, w).astype(self.codes.dtype), u, self._weights()[1])

    def departures(self) -> jax.Array:
        return jnp.where(self._is(self.codes), -jnp.inf, self.scores).ravel()

    def depart(self, index: jax.Array) -> jax.Array:
        value, site = index // self.codes.shape[0], index % self.codes.shape[0]
        return self.codes.at[site].set(value.astype(self.codes.dtype))

    def table(self) -> jax.Array:
        return self.scores.T

    @classmethod
    def linear(cls, space: Any, codes: jax.Array, h: jax.Array) -> Tables:
        h = jnp.reshape(h, space.shape)
        if space.numeric:
            return cls(codes, h * space.offsets(codes, h.dtype))
        scores = h.T if space.one_hot else jnp.matmul(_table(space, h.dtype), h.T, precision="highest")
        return cls(codes, scores).recentre(codes)

    @classmethod
    def quadratic(cls, space: Any, codes: jax.Array, c: jax.Array) -> Tables:
        c = space.per_entry(c)
        if space.numeric:
            return cls(codes, c * space.offsets(codes, c.dtype) ** 2)
        if space.one_hot:  # two entries of s change, by one each
            own = cls(codes, c.T)
            return cls(codes, jnp.where(own._is(codes), 0, c.T + own.each(codes)))
        s, v = space.embed(codes), _table(space, c.dtype)
        cross = jnp.matmul(v**2, c.T, precision="highest") - 2 * jnp.matmul(v, (c * s).T, precision="highest")
        return cls(codes, cross).recentre(codes)

    @classmethod
    def packed(cls, space: Any, table: jax.Array) -> jax.Array:
        return table.T

    @classmethod
    def unpacked(cls, codes: jax.Array, packed: jax.Array) -> Tables:
        return cls(codes, packed).recentre(codes)

    @classmethod
    def rows(cls, codes: jax.Array, packed: jax.Array) -> jax.Array:
        return _possible(packed).T

    @classmethod
    def conditionals(cls, codes: jax.Array, packed: jax.Array) -> Tables:
        return cls(codes, _possible(packed))

    @classmethod
    def chosen(cls, codes: jax.Array, packed: jax.Array, u: jax.Array) -> jax.Array:
        return cls(codes, _possible(packed)).choose(u)


def _table(space: Any, dtype: Any) -> jax.Array:
    return jnp.asarray(space.values, dtype)


def _possible(packed: jax.Array) -> jax.Array:
    return jnp.where(jnp.isnan(packed), -jnp.inf, packed)
