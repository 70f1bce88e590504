"""All sites move at once, independently: one softmax per site."""

from __future__ import annotations

from typing import Any

import jax

from .._record import record
from ..moves import Moves, normaliser_gap


@record
class Factorised:
    """q(s') = prod_i softmax_v(scores_i(v)) at s'_i.

    moves: the scores of all sites and values, a `Moves`.
    """

    moves: Moves

    def sample(self, key: jax.Array) -> jax.Array:
        return self.moves.sample(key)

    def log_prob(self, codes: jax.Array) -> jax.Array:
        return self.moves.log_prob(codes)

    def log_normaliser_minus(self, other: Factorised, plus: Any = 0) -> jax.Array:
        """Φ - Φ' + sum_i plus_i, without the cancellation of large sums; plus: what else belongs to each site."""
        return normaliser_gap(self.moves, other.moves, plus)
