"""Pairs of sites that attract, and the clusters that bonds between them make."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import default_float, record
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
        first, second = codes[self.incidence.edges[:, 0]], codes[self.incidence.edges[:, 1]]
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

    Every site takes the smallest label of its bonded neighbours and then, twice, the label of the site that it names, until
    nothing changes: labels fall by whole clusters at a time.
    """
    d = incidence.num_sites
    linked = [real & bonds[edge] for edge, _, _, real in incidence.buckets] if incidence.num_edges else []

    def lowest(label: jax.Array) -> jax.Array:
        near = [
            jnp.min(jnp.where(link, label[other], d), axis=1)
            for link, (_, other, _, _) in zip(linked, incidence.buckets, strict=True)
        ]
        stacked = jnp.concatenate(near) if len(near) > 1 else near[0]
        return jnp.minimum(label, stacked if incidence.position is None else stacked[incidence.position])

    def again(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        label = lowest(carry[0])
        label = label[label]
        label = label[label]
        return label, jnp.any(label != carry[0])

    start = jnp.arange(d, dtype=jnp.int32)
    if not linked:
        return start
    return jax.lax.while_loop(lambda carry: carry[1], again, (start, jnp.ones((), bool)))[0]
