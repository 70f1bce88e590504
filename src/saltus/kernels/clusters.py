"""Pairs of sites that attract, and the clusters that bonds between them make."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import default_float, is_concrete, record
from ..neighbours import Incidence
from ..preconditioners import Preconditioner, Sparse
from ..spaces import Space


@record
class Pairs:
    r"""The pairwise part of f. Two values, x = ±1: Σ J_e x_i x_j + Σ h_i x_i; one-hot: Σ J_e [c_i = c_j] + Σ h_i(c_i).

    J (m,) of each edge; fields (d, k): h_i x_i or h_i(c_i) for each value.
    """

    incidence: Incidence
    J: jax.Array
    fields: jax.Array

    def attraction(self, codes: jax.Array) -> jax.Array:
        """(m,) how much of f a pair has because it is as it is, over its other states: 2 J x_i x_j, or J [c_i = c_j]; else <= 0."""
        first, second = (_named(codes, self.incidence.edges[:, end]) for end in (0, 1))
        if self.fields.shape[1] == 2:
            return jnp.where(first == second, 2 * self.J, -2 * self.J)
        return jnp.where(first == second, self.J, 0)

    def rest(self, codes: jax.Array) -> jax.Array:
        """What of the pairs bonds cannot express: states that repel each other, of which there are more than two."""
        if self.fields.shape[1] == 2:
            return jnp.zeros((), default_float())
        return jnp.sum(jnp.minimum(self.attraction(codes), 0))

    def handled(self, codes: jax.Array) -> jax.Array:
        """The part of f that bonds and clusters take care of."""
        pairs = self.attraction(codes)
        each = jnp.take_along_axis(self.fields, codes[:, None].astype(jnp.int32), axis=1)
        return jnp.sum(jnp.maximum(pairs, 0) if self.fields.shape[1] > 2 else pairs / 2) + jnp.sum(each)


def fits_pairs(space: Space, coupling: Preconditioner) -> bool:
    """Whether ½ sᵀHs is a sum over pairs of two-valued numbers, or of equal categories."""
    if not hasattr(space, "values"):
        return False
    if space.num_values == 2 and space.numeric:
        return getattr(coupling, "copies", 1) == 1
    return bool(space.one_hot) and isinstance(coupling, Sparse) and coupling.copies == space.num_values


def frustrated(space: Space, coupling: Sparse) -> bool:
    """Whether no state pleases all pairs; of weights that are not numbers yet, and of more than two values, whether some repel."""
    weights, edges = coupling.weights, coupling.edges.edges
    if not is_concrete((weights, edges)):
        return True
    repel, d = np.asarray(weights) < 0, space.num_sites
    if space.num_values > 2:
        return bool(repel.any())
    from scipy.sparse import coo_array  # here: importing it takes longer than asking
    from scipy.sparse.csgraph import connected_components

    # Two copies of every site, one for each value: a pair that repels joins unlike copies. A ring that is frustrated joins both.
    (i, j), turn = np.asarray(edges).T, d * repel
    ends = np.concatenate([i, i + d]), np.concatenate([j + turn, j + d - turn])
    label = connected_components(coo_array((np.ones(2 * len(i)), ends), shape=(2 * d, 2 * d)), directed=False)[1]
    return bool((label[:d] == label[d:]).any())


def pairs_of(space: Space, coupling: Preconditioner, potentials: Any) -> Pairs:
    """Of f = Σ φ_i(s_i) + ½ sᵀHs; potentials φ (d, k), or 0."""
    incidence, weights = _edges(coupling)
    potentials = jnp.broadcast_to(jnp.asarray(potentials, default_float()), (space.num_sites, space.num_values))
    if not space.numeric:
        if space.num_values > 2:
            return Pairs(incidence, weights, potentials)
        even = jnp.mean(potentials, axis=1, keepdims=True)
        return Pairs(incidence, weights / 2, potentials - even)  # [c_i = c_j] = (1 + x_i x_j) / 2
    # s = middle + half x turns ½ sᵀHs into pairs and fields of x.
    middle, half = float(space.values.mean()), float(space.values[1] - space.values[0]) / 2
    pull = incidence.sum(lambda edge, other, sign: weights[edge]) * (middle * half)
    field = (potentials[:, 1] - potentials[:, 0]) / 2 + pull
    return Pairs(incidence, weights * half**2, jnp.stack([-field, field], axis=1))


def _edges(coupling: Preconditioner) -> tuple[Incidence, jax.Array]:
    """(edges, a weight for each); of a matrix that is written out, all pairs."""
    if isinstance(coupling, Sparse):
        return coupling.edges, coupling.weights
    first, second = np.triu_indices(coupling.size, 1)
    return Incidence(np.stack([first, second], axis=1), coupling.size), coupling.matrix()[first, second]


def components(incidence: Incidence, bonds: jax.Array) -> jax.Array:
    """(d,) the smallest site of the cluster of each site; bonds (m,): which edges count.

    FastSV (Zhang, Azad & Hu 2020): every site names a parent. In a round a site looks at the grandparents of the sites it is
    bonded to; it and its parent take the smallest of them where that is smaller. Whole trees are hung below others, so that
    rounds grow with the logarithm of a cluster's extent, not with its length.
    """
    start = jnp.arange(incidence.num_sites, dtype=jnp.int32)
    if not incidence.num_edges:
        return start
    near = _bonded(incidence, bonds)

    def again(carry: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        parent, grand, _ = carry
        lowest = jnp.minimum(_lowest(incidence, near, grand), grand)
        parent = jnp.minimum(parent.at[parent].min(lowest, mode="promise_in_bounds"), lowest)
        after = _named(parent, parent)
        return parent, after, jnp.any(after != grand)

    return jax.lax.while_loop(lambda carry: carry[2], again, (start, start, jnp.ones((), bool)))[1]


def _bonded(incidence: Incidence, bonds: jax.Array) -> list[list[jax.Array]]:
    """Per group of degrees, the sites at the other ends of each site's first, second, ... edge: of one without a bond, itself."""
    sites = np.arange(incidence.num_sites, dtype=np.int32)
    order = sites if incidence.position is None else jnp.argsort(incidence.position).astype(jnp.int32)
    tables, first = [], 0
    for edge, other, _, real in incidence.buckets:
        own = order[first : first + len(edge)]
        linked = real & _named(bonds, edge)
        tables.append([jnp.where(linked[:, j], other[:, j], own) for j in range(edge.shape[1])])
        first += len(edge)
    return tables


def _lowest(incidence: Incidence, near: list[list[jax.Array]], label: jax.Array) -> jax.Array:
    """(d,) the smallest label of the sites at the bonds of each."""
    groups = [functools.reduce(jnp.minimum, [_named(label, column) for column in columns]) for columns in near]
    stacked = jnp.concatenate(groups) if len(groups) > 1 else groups[0]
    return stacked if incidence.position is None else _named(stacked, incidence.position)


def _named(x: jax.Array, index: jax.Array) -> jax.Array:
    """x[index], where every index is one of x: without looking, twice as fast."""
    return x.at[index].get(mode="promise_in_bounds")
