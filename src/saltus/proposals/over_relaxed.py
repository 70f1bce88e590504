"""All sites move at once to the other side of their distributions: over-relaxed draws."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .. import random
from .._fusion import total
from .._record import record
from ..moves import Moves


@record
class OverRelaxed:
    r"""With q_i = softmax_v(scores_i) and F its distribution function over codes, site i goes from level j to level l with

    $$ K_i(j \to l) = \big|[F_{j-1}, F_j] \cap [1 - F_l, 1 - F_{l-1}]\big| / q_i(j) $$

    It leaves q_i invariant and is reversible; on two values it flips with probability min(1, q_other / q_current).
    """

    moves: Moves

    def chances(self) -> jax.Array:
        """(d, k) K_i(j → .) from the current levels: these very numbers are drawn from, and enter the ratio.

        A level so unlikely that rounding leaves it no overlap stays.
        """
        table = self.moves.table()
        ways = overlaps(jnp.exp(table - jnp.max(table, axis=1, keepdims=True)), self.moves.codes)
        sums = jnp.sum(ways, axis=1, keepdims=True)
        stay = self.moves.codes[:, None] == jnp.arange(ways.shape[1], dtype=self.moves.codes.dtype)
        return jnp.where(sums > 0, ways / jnp.where(sums > 0, sums, 1), stay.astype(ways.dtype))

    def sample(self, key: jax.Array) -> jax.Array:
        return random.categorical(key, self.chances().T).astype(self.moves.codes.dtype)

    def log_prob(self, codes: jax.Array) -> jax.Array:
        return total(self.each(codes))

    def each(self, codes: jax.Array) -> jax.Array:
        """(d,) log K_i(j → codes_i)."""
        return jnp.log(_at(self.chances(), codes))


def _at(table: jax.Array, codes: jax.Array) -> jax.Array:
    return jnp.take_along_axis(table, codes[:, None].astype(jnp.int32), axis=1)[:, 0]


def overlaps(weights: jax.Array, codes: jax.Array) -> jax.Array:
    """(d, k) the length of [F_{j-1}, F_j] ∩ [B_l, B_{l-1}] for the current level j and every l; not normalised.

    F adds up from below and B from above: 1 - F would lose the small ones. Of two expressions for the same difference the one
    with the smaller terms is taken, and the result is the same with j and l exchanged.
    """
    nothing = jnp.zeros_like(weights[:, :1])
    F, B_before = jnp.cumsum(weights, axis=1), jnp.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
    F_before, B = jnp.concatenate([nothing, F[:, :-1]], axis=1), jnp.concatenate([B_before[:, 1:], nothing], axis=1)
    own, Fj, Fj_before, Bj, Bj_before = (_at(x, codes)[:, None] for x in (weights, F, F_before, B, B_before))
    upper = _smaller_terms((Fj, B), (F, Bj))
    lower = _smaller_terms((B_before, Fj_before), (Bj_before, F_before))
    return jnp.maximum(jnp.minimum(jnp.minimum(own, weights), jnp.minimum(upper, lower)), 0)


def _smaller_terms(one: tuple[jax.Array, jax.Array], other: tuple[jax.Array, jax.Array]) -> jax.Array:
    """a - b from whichever pair is smaller."""
    return jnp.where(jnp.maximum(*one) <= jnp.maximum(*other), one[0] - one[1], other[0] - other[1])
