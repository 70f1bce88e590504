r"""Moves: for every site, a score for each value it could take, 0 at the current one.

A table D_i(v) of predicted changes, a noise term u_i (v - s_i), a penalty c_i (v - s_i)^2 and a neighbourhood (0 inside,
-inf outside) are all Moves around the same codes; proposals are sums of them. Two forms share one interface, chosen by
the space's number of values, and no kernel looks inside: `Flips` (two values: one score per site) and `Tables`.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp

from . import random
from ._fusion import folded, stored, total
from ._record import changed, record

_FEW = 8  # values over which sums are written out
_LONG = 2**12  # sites from which on an array is worth a boundary of its own


@record
class Moves:
    """Scores of single-site moves away from `codes`."""

    codes: jax.Array
    scores: jax.Array

    def __add__(self, other: Moves) -> Any:
        return changed(self, scores=self.scores + other.scores)

    def __sub__(self, other: Moves) -> Any:
        return changed(self, scores=self.scores - other.scores)

    def __mul__(self, number: Any) -> Any:
        return changed(self, scores=self.scores * number)

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> Any:
        return changed(self, scores=self.scores / number)

    def at(self, codes: jax.Array) -> jax.Array:
        """sum_i score_i(codes_i): the score of moving every site at once."""
        return total(self.each(codes))

    def log_normaliser(self) -> jax.Array:
        """Φ = sum_i log sum_v exp(score_i(v))."""
        top, mass = self.normaliser()
        return total(top) + log_product(mass, self.num_values)

    def log_prob(self, codes: jax.Array) -> jax.Array:
        """log of prod_i softmax_v(score_i) at `codes`."""
        return self.at(codes) - self.log_normaliser()

    @property
    def num_values(self) -> int:
        """k."""
        raise NotImplementedError

    def each(self, codes: jax.Array) -> jax.Array:
        """(d,) score_i(codes_i)."""
        raise NotImplementedError

    def recentre(self, codes: jax.Array) -> Any:
        """The same scores seen from `codes`: score_i(v) - score_i(codes_i)."""
        raise NotImplementedError

    def only(self, sites: jax.Array) -> Any:
        """Sites outside the mask may not move."""
        raise NotImplementedError

    def normaliser(self) -> tuple[jax.Array, jax.Array]:
        """(top, mass), each (d,): log sum_v exp(score_i(v)) = top_i + log mass_i with 1 <= mass_i <= k."""
        raise NotImplementedError

    def sample(self, key: jax.Array) -> jax.Array:
        """Codes drawn from prod_i softmax_v(score_i): one uniform per site, or `num_units` for more than 64 values."""
        return self.choose(random.unit(key, (random.num_units(self.num_values), *self.codes.shape), self.scores.dtype))

    def choose(self, u: jax.Array) -> jax.Array:
        """The same, given the uniforms (`num_units`, d)."""
        raise NotImplementedError

    def departures(self) -> jax.Array:
        """All single-site moves that change something, as flat scores; -inf marks staying put."""
        raise NotImplementedError

    def depart(self, index: jax.Array) -> jax.Array:
        """Codes after the move at `index` of `departures()`."""
        raise NotImplementedError


@record
class Flips(Moves):
    """Two values: the score of flipping each site, (d,)."""

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


def over_values(combine: Any, table: jax.Array) -> jax.Array:
    """`combine`, jnp.add or jnp.maximum, over the first axis of (k, d). Few values are written out: XLA fuses no reductions."""
    if len(table) <= _FEW:
        return functools.reduce(combine, table)
    return combine.reduce(table, axis=0)


def _flipped(codes: jax.Array, scores: jax.Array, u: jax.Array) -> jax.Array:
    """The rarer outcome happens when u < e / (1 + e), e = exp(-|score|): no division, and u is finest near zero."""
    e = jnp.exp(-jnp.abs(scores))
    rarer = u * (1 + e) < e
    return jnp.where(rarer ^ (scores > 0), 1 - codes, codes)


@record
class Tables(Moves):
    """Any number of values: scores (k, d). Sites come last, since processors make many short sums at once, not one."""

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


def normaliser_gap(a: Moves, b: Moves, plus: Any = 0) -> jax.Array:
    """Φ_a - Φ_b + sum_i plus_i, added up site by site before summing: no cancellation of large sums in float32."""
    (top_a, mass_a), (top_b, mass_b) = a.normaliser(), b.normaliser()
    return total(top_a - top_b + plus) + log_product(mass_a / mass_b, a.num_values)


def log_product(factors: jax.Array, bound: int) -> jax.Array:
    """sum_i log(factors_i) for factors in [1/bound, bound]: up to 16, as many as cannot overflow, are multiplied per log taken."""
    most = max(120 // max(bound - 1, 1).bit_length(), 1)
    return total(jnp.log(folded(operator.mul, factors, min(most, 16), 1)))
