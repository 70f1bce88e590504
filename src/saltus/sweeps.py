"""Sweeps in closed form, from exact differences that need no evaluation of f: every site of a colour at once, or in order.

A sweep offers `begin(codes)`, what a chain keeps for it from step to step, and `sweep(key, target, x)`, which returns
(codes, f, kept, travelled); travelled is `space.travel` of the step where it is known already, else None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import random
from ._fusion import stored
from .structure import BoundQuadratic, Graph, fields


@dataclass(frozen=True)
class ColourSweep:
    """Colour after colour by a closed form: nothing is gathered or scattered. Each site has its own uniforms."""

    closed: Any  # a local model that offers packed(target, codes) and evaluate

    def begin(self, codes: jax.Array) -> None:
        return None

    def sweep(self, key: jax.Array, target: Any, x: Any) -> tuple[jax.Array, jax.Array, Any, Any]:
        space, graph = target.space, target.find(Graph)
        u = random.unit(key, (random.num_units(space.num_values), space.num_sites))

        def update(colour: jax.Array, codes: jax.Array) -> jax.Array:
            # all bits or none: faster than a choice
            active = stored(lambda c: -(graph.colours == c).astype(codes.dtype), colour)
            return codes ^ ((space.form.chosen(codes, self.closed.packed(target, codes), u) ^ codes) & active)

        num = graph.blocks.shape[0]
        codes = jax.lax.fori_loop(0, num, update, x.codes, unroll=num <= 4)  # written out, few colours need no copies
        return codes, self.closed.evaluate(target, codes)[0], None, None


@dataclass(frozen=True)
class FieldSweep:
    """Colour after colour for a quadratic f, from the pull of all sites on each.

    Of two colours, every coupling joins one to the other: ½ sᵀHs is then the sum of s_i (Hs)_i over those drawn last.
    """

    def begin(self, codes: jax.Array) -> None:
        return None

    def sweep(self, key: jax.Array, target: Any, x: Any) -> tuple[jax.Array, jax.Array, Any, Any]:
        space, graph, quadratic = target.space, target.find(Graph), target.find(BoundQuadratic)
        u = random.unit(key, (random.num_units(space.num_values), space.num_sites))

        def update(colour: Any, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            codes, _ = state
            active = stored(lambda c: -(graph.colours == c).astype(codes.dtype), colour)
            pull = fields.pull(quadratic, space, codes)
            drawn = space.form.chosen(codes, fields.packed(space, quadratic.potentials, pull), u)
            return codes ^ ((drawn ^ codes) & active), pull

        num = graph.blocks.shape[0]
        start = (x.codes, jnp.zeros(space.size, u.dtype))
        codes, pull = jax.lax.fori_loop(0, num, update, start, unroll=num <= 4)
        if num != 2:
            return codes, Fields().value(target, codes), None, None
        twice = 2 * jnp.repeat(graph.colours == 1, space.size // space.num_sites).astype(pull.dtype) * pull
        return codes, quadratic.value(space, codes, twice), None, None


@dataclass(frozen=True)
class Fields:
    """Exact differences of a quadratic f, in closed form."""

    def packed(self, target: Any, codes: jax.Array) -> jax.Array:
        quadratic = target.find(BoundQuadratic)
        return fields.packed(target.space, quadratic.potentials, fields.pull(quadratic, target.space, codes))

    def value(self, target: Any, codes: jax.Array) -> jax.Array:
        """f, the quadratic's constant included."""
        quadratic = target.find(BoundQuadratic)
        return quadratic.value(target.space, codes, fields.pull(quadratic, target.space, codes))


_BLOCK = 16  # sites


def closed_sweep(target: Any, in_order: bool) -> Any:
    """The sweep of a target known to be quadratic, over colours or over sites in order; None where there is none."""
    quadratic = target.find(BoundQuadratic)
    if quadratic is None:
        return None
    if in_order:
        return SiteSweep() if quadratic.coupling.size <= quadratic.coupling.written_out else None
    return FieldSweep()


@dataclass(frozen=True)
class SiteSweep:
    """Site after site for a quadratic f, in blocks: one product gives the pull on all sites of a block, and every change
    within it adds one row of H to the pulls on the others. Pulls are computed anew for each block, so nothing drifts."""

    def begin(self, codes: jax.Array) -> None:
        return None

    def sweep(self, key: jax.Array, target: Any, x: Any) -> tuple[jax.Array, jax.Array, Any, Any]:
        space, quadratic = target.space, target.find(BoundQuadratic)
        matrix, potentials = quadratic.coupling.matrix(), quadratic.potentials
        d, k = potentials.shape
        m, num = space.size // d, -(-d // _BLOCK)
        u = random.unit(key, (random.num_units(k), d))
        starts = np.minimum(np.arange(num) * _BLOCK, max(d - _BLOCK, 0))  # the last block may overlap the one before
        done = np.arange(num) * _BLOCK - starts  # sites of it that have had their turn
        width = min(_BLOCK, d)

        def block(state: tuple[jax.Array, jax.Array], each: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
            codes, s = state
            start, first = each
            rows = jax.lax.dynamic_slice_in_dim(matrix, start * m, width * m)
            pulls = jnp.matmul(rows, s, precision="highest").reshape(width, m)
            inside = jax.lax.dynamic_slice_in_dim(rows, start * m, width * m, axis=1).reshape(width, m, width, m)
            own = jax.lax.dynamic_slice_in_dim(potentials, start, width)
            units = jax.lax.dynamic_slice_in_dim(u, start, width, axis=1)
            before = jax.lax.dynamic_slice_in_dim(codes, start, width)

            def site(i: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
                here, pulls = now
                take = lambda a, axis=0: jax.lax.dynamic_slice_in_dim(a, i, 1, axis)  # noqa: E731
                old = take(here)
                new = space.form.chosen(old, fields.packed(space, take(own), take(pulls)), take(units, 1))
                new = jnp.where(i < first, old, new)
                change = space.displacement(old, new)
                row = jax.lax.dynamic_index_in_dim(inside, i, keepdims=False)  # (m, width, m)
                pulls = pulls + jnp.tensordot(change, row, 1, precision="highest") if m > 1 else pulls + change * row[0]
                return jax.lax.dynamic_update_slice_in_dim(here, new, i, 0), pulls

            after, _ = jax.lax.fori_loop(0, width, site, (before, pulls))
            codes = jax.lax.dynamic_update_slice_in_dim(codes, after, start, 0)
            s = jax.lax.dynamic_update_slice_in_dim(s, space.embed(after).reshape(-1), start * m, 0)
            return (codes, s), None

        begin = (x.codes, space.ravel(space.embed(x.codes)))
        (codes, _), _ = jax.lax.scan(block, begin, (jnp.asarray(starts, jnp.int32), jnp.asarray(done, jnp.int32)))
        return codes, Fields().value(target, codes), None, None
