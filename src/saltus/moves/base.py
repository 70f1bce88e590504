"""What all forms of Moves share: arithmetic, and sums over sites."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .. import random
from .._fusion import folded, total
from .._record import changed, record

_FEW = 8  # values over which sums are written out


@record
class Moves:
    """Scores of single-site moves away from `codes`.

    A form also says how a table over values is *packed* into what a Point keeps, and how packed tables are read back:
    `packed`, `unpacked`, `rows`, `conditionals`, `chosen`. There `space` is the space whose form this is.
    """

    codes: jax.Array
    scores: Any  # an array whose last axis is the sites; of a product, one for each part

    def __add__(self, other: Moves) -> Any:
        return self._with(operator.add, other.scores)

    def __sub__(self, other: Moves) -> Any:
        return self._with(operator.sub, other.scores)

    def _with(self, combine: Callable, scores: Any) -> Any:
        return changed(self, scores=jax.tree.map(combine, self.scores, scores))

    def map(self, function: Callable[[jax.Array], jax.Array]) -> Any:
        """The same moves with `function` of their scores, which keeps 0 at 0."""
        return changed(self, scores=jax.tree.map(function, self.scores))

    def __mul__(self, number: Any) -> Any:
        return self.map(lambda scores: scores * number)

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> Any:
        return self.map(lambda scores: scores / number)

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

    def sample(self, key: jax.Array) -> jax.Array:
        """Codes drawn from prod_i softmax_v(score_i): one uniform per site, or `num_units` for more than 64 values."""
        dtype = jax.tree.leaves(self.scores)[0].dtype
        return self.choose(random.unit(key, (random.num_units(self.num_values), *self.codes.shape), dtype))

    @property
    def num_values(self) -> int:
        """k, the most that a site has."""
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

    def choose(self, u: jax.Array) -> jax.Array:
        """`sample`, given the uniforms (`num_units`, d)."""
        raise NotImplementedError

    def departures(self) -> jax.Array:
        """All single-site moves that change something, as flat scores; -inf marks staying put."""
        raise NotImplementedError

    def depart(self, index: jax.Array) -> jax.Array:
        """Codes after the move at `index` of `departures()`."""
        raise NotImplementedError

    def table(self) -> jax.Array:
        """(d, k) score_i(v), 0 at the current value; -inf for values that a site does not have."""
        raise NotImplementedError

    # ---- made from a space's tables ------------------------------------------------------------------------------

    @classmethod
    def linear(cls, space: Any, codes: jax.Array, h: jax.Array) -> Any:
        """Scores h_i . (v - s_i), for h of the shape of s or ravelled."""
        raise NotImplementedError

    @classmethod
    def quadratic(cls, space: Any, codes: jax.Array, c: jax.Array) -> Any:
        """Scores c_i (v - s_i)^2, for c a number, one per site, or one per entry of s: sum_m c_im (v_m - s_im)^2."""
        raise NotImplementedError

    @classmethod
    def packed(cls, space: Any, table: jax.Array) -> Any:
        """A (d, k) table over values as Points keep it."""
        raise NotImplementedError

    @classmethod
    def unpacked(cls, codes: jax.Array, packed: Any) -> Any:
        """Scores from a packed table; what it has at the current value is subtracted."""
        raise NotImplementedError

    @classmethod
    def rows(cls, codes: jax.Array, packed: Any) -> jax.Array:
        """(d, k) the table that was packed, up to a constant per site; NaN is impossible."""
        raise NotImplementedError

    @classmethod
    def conditionals(cls, codes: jax.Array, packed: Any) -> Any:
        """Moves whose softmax is that of each site of a packed table; unlike `unpacked`, fine where the current value has -inf."""
        raise NotImplementedError

    @classmethod
    def chosen(cls, codes: jax.Array, packed: Any, u: jax.Array) -> jax.Array:
        """Codes of all sites, drawn from a packed table, given uniforms as for `choose`; a site it leaves undefined stays."""
        raise NotImplementedError


def over_values(combine: Any, table: jax.Array) -> jax.Array:
    """`combine`, jnp.add or jnp.maximum, over the first axis of (k, d). Few values are written out: XLA fuses no reductions."""
    if len(table) <= _FEW:
        return functools.reduce(combine, table)
    return combine.reduce(table, axis=0)


def normaliser_gap(a: Moves, b: Moves, plus: Any = 0) -> jax.Array:
    """Φ_a - Φ_b + sum_i plus_i, added up site by site before summing: no cancellation of large sums in float32."""
    (top_a, mass_a), (top_b, mass_b) = a.normaliser(), b.normaliser()
    return total(top_a - top_b + plus) + log_product(mass_a / mass_b, a.num_values)


def log_product(factors: jax.Array, bound: int) -> jax.Array:
    """sum_i log(factors_i) for factors in [1/bound, bound]: up to 16, as many as cannot overflow, are multiplied per log taken."""
    most = max(120 // max(bound - 1, 1).bit_length(), 1)
    return total(jnp.log(folded(operator.mul, factors, min(most, 16), 1)))
