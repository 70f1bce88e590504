"""Lattices by shifts of flat vectors: whole, or as the two halves of a checkerboard."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._fusion import stored, total
from .._record import default_float
from ..moves import over_values


class Shifts:
    """s (..., d) on a lattice, seen from its neighbours; sides are periodic unless `periodic` says otherwise, one word an axis.

    Shifts of the flat vector, wrapped round once in a copy that is longer by a row at both ends: slices of that copy
    are plain loads, several times as fast as rolls of the lattice (`python -m benchmarks choices`).
    """

    def __init__(self, shape: tuple[int, ...], s: jax.Array, periodic: tuple[bool, ...] | None = None):
        d = math.prod(shape)
        row = self.row = d // shape[0]
        self.shape, self.index = shape, np.indices(shape).reshape(len(shape), d)
        self.periodic = periodic or (True,) * len(shape)
        self.longer = stored(lambda s: jnp.concatenate([s[..., d - row :], s, s[..., :row]], axis=-1), s)

    def by(self, places: int) -> jax.Array:
        """s of the site so many places further on, up to a row away."""
        return jax.lax.slice_in_dim(self.longer, self.row + places, self.longer.shape[-1] - self.row + places, axis=-1)

    def next(self, axis: int, way: int) -> jax.Array:
        """s of the neighbour of every site along an axis, after it (way 1) or before it (-1); 0 beyond an open side."""
        side, step = self.shape[axis], math.prod(self.shape[axis + 1 :])
        found, inside = self.by(way * step), self.index[axis] < side - 1 if way > 0 else self.index[axis] > 0
        if not self.periodic[axis]:
            return jnp.where(inside, found, jnp.zeros((), found.dtype))
        return jnp.where(inside, found, self.by(way * (step - step * side))) if axis else found

    def along(self, axis: int) -> jax.Array:
        """The sum of both neighbours of every site along an axis, or the one where the side is 2."""
        after = self.next(axis, 1)
        return after if self.shape[axis] == 2 and self.periodic[axis] else after + self.next(axis, -1)


@dataclass(frozen=True)
class Checkerboard:
    """The two colours of a lattice of even sides, each a vector of half the sites.

    Rows 2k and 2k + 1 (of the first axis) are folded into one: a colour has every other site of either. A site and its
    neighbours, which are all of the other colour, stay next to each other.
    """

    shape: tuple[int, ...]

    @property
    def folded(self) -> tuple[int, ...]:
        return (self.shape[0] // 2, *self.shape[1:])

    def split(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(..., d) as two (..., d / 2), colour 0 first."""
        pairs = x.reshape(*x.shape[:-1], self.shape[0] // 2, 2, -1)
        first, second = self._exchanged(pairs[..., 0, :], pairs[..., 1, :])
        return first.reshape(*x.shape[:-1], -1), second.reshape(*x.shape[:-1], -1)

    def join(self, first: jax.Array, second: jax.Array) -> jax.Array:
        """What was split."""
        rows = (half.reshape(*half.shape[:-1], self.shape[0] // 2, -1) for half in (first, second))
        return jnp.stack(self._exchanged(*rows), axis=-2).reshape(*first.shape[:-1], -1)

    def _exchanged(self, even: jax.Array, odd: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Every other site of two rows."""
        here = np.indices((1, *self.shape[1:])).sum(axis=0).ravel() % 2 == 1
        return jnp.where(here, odd, even), jnp.where(here, even, odd)

    def half(self, x: jax.Array, colour: int) -> jax.Array:
        """The sites of one colour of x (..., d); what all sites share stays as it is."""
        return self.split(x)[colour] if x.ndim and x.shape[-1] == math.prod(self.shape) else x

    def pull(self, coupling: jax.Array, s: jax.Array, colour: int) -> jax.Array:
        """sum_j J_ij s_j for every site of one colour; s (..., d / 2) are the sites of the other."""
        shifts = Shifts(self.folded, s)
        first_of_two = shifts.index[1:].sum(axis=0) % 2 == colour
        beyond = jnp.where(first_of_two, shifts.by(-shifts.row), shifts.by(shifts.row))
        rows = {0: shifts.by(0) + beyond if self.shape[0] > 2 else shifts.by(0)}
        near = weighted(coupling, rows | {axis: shifts.along(axis) for axis in range(1, len(self.shape))})
        return pulled(coupling, near)


def weighted(coupling: jax.Array, per_axis: dict[int, jax.Array]) -> jax.Array:
    """Sums of neighbours along each axis, put together: times the coupling of the axis, where there is one for each."""
    if coupling.ndim:
        per_axis = {axis: coupling[axis] * x.astype(coupling.dtype) for axis, x in per_axis.items()}
    return functools.reduce(operator.add, per_axis.values())


def pulled(coupling: jax.Array, near: jax.Array) -> jax.Array:
    """sum_j J_ij s_j from what `weighted` has put together."""
    return near if coupling.ndim else coupling * near.astype(coupling.dtype)


@dataclass(frozen=True)
class TwoColours:
    r"""f(s) = sum over edges J_ij s_i s_j + sum_i h_i s_i, colour by colour: every edge joins two colours.

    spread: codes as s, (..., d), in small integers. field: h from the params, as something that adds to (..., d).
    packed: the pull on sites, J s + h, as a table as the space's form of Moves has it.
    A sweep as in `saltus.sweeps`, in which either colour depends on the other only: no site is computed in vain.
    """

    board: Checkerboard
    spread: Callable[[jax.Array], jax.Array]
    field: Callable[[Any], jax.Array]
    packed: Callable[[jax.Array], jax.Array]

    def begin(self, codes: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The codes of either colour: kept apart from step to step."""
        return self.board.split(codes)

    def sweep(self, key: jax.Array, target: Any, x: Any) -> tuple[jax.Array, jax.Array, Any, Any]:
        space, codes = target.space, list(x.kept)
        units = random.num_units(space.num_values)
        u = random.unit(key, (units * space.num_sites,))
        for colour, own in enumerate(jnp.split(u, 2)):
            pull = target.tempering(self.pull(target.params, codes[1 - colour], colour))
            choose = lambda codes, pull, u: space.form.chosen(codes, self.packed(pull), u)  # noqa: E731
            codes[colour] = stored(choose, codes[colour], pull, own.reshape(units, -1))
        f = stored(partial(self._value, target), *codes, pull).astype(default_float())
        travelled = jax.tree.map(jnp.add, *map(space.travel, x.kept, codes))  # x.codes are not read, nor copied for it
        return stored(self.board.join, *codes), f, tuple(codes), travelled

    def _value(self, target: Any, first: jax.Array, second: jax.Array, pull: jax.Array) -> jax.Array:
        """f, given the codes of either colour and the pull on the second."""
        alone, rest = (self.spread(codes).astype(pull.dtype) for codes in (first, second))
        each = alone * target.tempering(self._field(target.params, 0)) + rest * pull
        return total(over_values(jnp.add, each) if each.ndim > 1 else each)

    def pull(self, params: Any, codes: jax.Array, colour: int) -> jax.Array:
        """On the sites of one colour, given the codes of the other."""
        return self.board.pull(params["coupling"], self.spread(codes), colour) + self._field(params, colour)

    def _field(self, params: Any, colour: int) -> jax.Array:
        return self.board.half(self.field(params), colour)
