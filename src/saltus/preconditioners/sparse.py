"""A list of edges with weights, and a diagonal."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_float, as_size, fill, record, static
from ..errors import KernelError
from ..neighbours import Incidence, read_edges
from .base import Preconditioner, root


@record
class Sparse(Preconditioner):
    r"""Σ from a list of edges i<j with weights Σ_ij, and a diagonal; nothing n x n.

    Σ + diag(d) is written as a sum of one rank-one term per edge, |w| a aᵀ with a = e_i + sign(w) e_j, and a diagonal:
    one normal per edge and per site.  d_i = max(0, |γ| r_i - γ Σ_ii) + 2/ε with r_i = sum_j |Σ_ij|, larger than Dense's:
    a different, equally exact kernel for the same Σ and ε. `copies=k` means Σ ⊗ I_k, as for one-hot sites that prefer
    to agree: edges join sites, weights couple equal categories.

    edges: (m, 2) pairs of sites. weights: (m,). diagonal: (n,) or one number. size: n, the number of sites.
    """

    linear_in: ClassVar[tuple[str, ...]] = ("weights", "diagonal")
    written_out = 2**9

    weights: jax.Array
    diagonal: jax.Array
    edges: Incidence
    copies: int = static()

    def __init__(self, edges: Any, weights: Any, diagonal: Any = 0.0, size: int | None = None, copies: int = 1):
        diagonal, copies = as_float(diagonal, "diagonal"), as_size(copies, "copies", KernelError)
        size = None if size is None else as_size(size, "size", KernelError)
        if not isinstance(edges, Incidence):
            edges = read_edges(edges)
            highest = int(np.max(edges, initial=0)) + 1
            edges = Incidence(edges, size // copies if size else max(highest, diagonal.size // copies if diagonal.ndim else 1))
        weights = as_float(weights, "weights")
        if weights.shape not in ((), (edges.num_edges,)):
            raise KernelError(
                "`weights` does not fit `edges`.", expected=f"shape ({edges.num_edges},)", found=f"shape {weights.shape}"
            )
        if diagonal.shape == (edges.num_sites,):
            diagonal = jnp.repeat(diagonal, copies)
        if diagonal.shape not in ((), (edges.num_sites * copies,)):
            raise KernelError(
                "`diagonal` does not fit.", expected=f"a number, or shape ({edges.num_sites},)", found=f"shape {diagonal.shape}"
            )
        diagonal = jnp.broadcast_to(diagonal, (edges.num_sites * copies,)).reshape(-1, copies)
        fill(self, weights=jnp.broadcast_to(weights, (edges.num_edges,)), diagonal=diagonal, edges=edges, copies=copies)

    @property
    def size(self) -> int:
        return self.diagonal.shape[-2] * self.copies

    @property
    def num_normals(self) -> int:
        return self.size + self.edges.num_edges * self.copies

    def matvec(self, v: jax.Array) -> jax.Array:
        v = v.reshape(-1, self.copies)
        return (self.diagonal * v + self._over_edges(lambda edge, other, sign: self.weights[edge][..., None] * v[other])).ravel()

    def matrix(self) -> jax.Array:
        if self.copies != 1:
            return super().matrix()
        i, j = self.edges.edges.T
        return jnp.diag(self.diagonal[:, 0]).at[i, j].set(self.weights).at[j, i].set(self.weights)

    def form(self, s: np.ndarray) -> np.ndarray:
        s = s.reshape(len(s), -1, self.copies)
        i, j = np.asarray(self.edges.edges).T
        diagonal, weights = (np.asarray(x, np.float64) for x in (self.diagonal, self.weights))
        return 0.5 * np.sum(diagonal * s**2, axis=(1, 2)) + np.sum(weights[:, None] * s[:, i] * s[:, j], axis=(1, 2))

    def _over_edges(self, term: Any) -> jax.Array:
        return self.edges.sum(term, (self.copies,))

    def _row_sums(self) -> jax.Array:
        """r_i, (d, 1)."""
        return self.edges.sum(lambda edge, other, sign: jnp.abs(self.weights)[edge][..., None], (1,))

    def shift(self, scale: jax.Array, slack: jax.Array) -> jax.Array:
        return jnp.maximum(jnp.abs(scale) * self._row_sums() - scale * self.diagonal, 0).ravel() + slack

    def colour(self, normals: jax.Array, scale: jax.Array, slack: jax.Array) -> jax.Array:
        weights = (scale * self.weights)[:, None]
        loose = jnp.maximum(scale * self.diagonal - jnp.abs(scale) * self._row_sums(), 0).ravel() + slack
        first = root(jnp.abs(weights)) * normals[self.size :].reshape(-1, self.copies)
        second = jnp.sign(weights) * first
        ends = self._over_edges(lambda edge, other, sign: jnp.where(sign[..., None] > 0, first[edge], second[edge]))
        return root(loose) * normals[: self.size] + ends.ravel()
