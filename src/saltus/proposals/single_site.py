"""One site moves (one softmax over site and value), or a block of sites and no other."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .. import random
from .._record import record
from ..moves import Moves


@record
class SingleSite:
    """q(s') = softmax over (i, v ≠ s_i) of score_i(v): exactly one site changes.

    moves: the scores of all sites and values, a `Moves`.
    """

    moves: Moves

    def sample(self, key: jax.Array) -> jax.Array:
        return self.moves.depart(random.categorical(key, self._weights()[1]))

    def _weights(self) -> tuple[jax.Array, jax.Array]:
        scores = self.moves.departures()
        top = jnp.max(scores)
        return top, jnp.where(scores == top, 1, jnp.exp(scores - top))  # even where all are -inf or one is +inf

    def log_prob(self, codes: jax.Array) -> jax.Array:
        one_site = jnp.sum(codes != self.moves.codes) == 1
        return jnp.where(one_site, self.moves.at(codes) - self.log_normaliser(), -jnp.inf)

    def log_normaliser(self) -> jax.Array:
        """L = log sum over (i, v ≠ s_i) of exp(score_i(v))."""
        top, weights = self._weights()
        return top + jnp.log(jnp.sum(weights))


@record
class SiteBlock:
    """The sites of a block are drawn from softmax_v(score_i), independently; the others stay. Index d is padding.

    codes: of the state. sites: indices of the block. moves: the scores, a `Moves`.
    """

    codes: jax.Array
    sites: jax.Array
    moves: Moves

    def sample(self, key: jax.Array) -> jax.Array:
        return self.codes.at[self.sites].set(self.moves.sample(key), mode="drop")

    def log_prob(self, codes: jax.Array) -> jax.Array:
        inside = jnp.zeros(self.codes.shape, bool).at[self.sites].set(True, mode="drop")
        drawn = jnp.where(self.sites < self.codes.shape[0], jnp.take(codes, self.sites, mode="clip"), self.moves.codes)
        real = self.moves.only(self.sites < self.codes.shape[0])
        return jnp.where(jnp.all(inside | (codes == self.codes)), real.log_prob(drawn), -jnp.inf)
