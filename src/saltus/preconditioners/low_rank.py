"""A diagonal and a matrix of low rank."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import as_float, fill, record
from ..errors import KernelError
from .base import Preconditioner, negative_part, root, vector


@record
class LowRank(Preconditioner):
    r"""Σ = diag(t) + F diag(w) Fᵀ, t and w of any sign; O(n r) per use.

    F is (n, r). Kept as V diag(e) Vᵀ with orthonormal V.  d_i = max(0, -γ t_i) + μ,  μ = max(0, -min γe) + 2/ε.

    diagonal: t, (n,) or one number.
    factor: F, (n, r).
    weights: w, (r,); 1 unless given.
    """

    linear_in = ("diagonal", "eigenvalues")

    diagonal: jax.Array
    basis: jax.Array
    rows: jax.Array  # (r, n) the basis once more: along them V x is several times as fast, for Vᵀx columns are
    eigenvalues: jax.Array

    def __init__(self, diagonal: Any, factor: Any, weights: Any = None):
        diagonal = vector(diagonal, "diagonal")
        factor = as_float(factor, "factor")
        n = diagonal.shape[0]
        if factor.ndim != 2 or factor.shape[0] != n or not 1 <= factor.shape[1] <= n:
            raise KernelError(
                "`factor` does not fit `diagonal`.", expected=f"shape ({n}, r) with 1 <= r <= {n}", found=f"shape {factor.shape}"
            )
        weights = as_float(np.ones(factor.shape[1]) if weights is None else weights, "weights")
        if weights.shape != factor.shape[1:]:
            raise KernelError(
                "`weights` does not fit `factor`.", expected=f"shape {factor.shape[1:]}", found=f"shape {weights.shape}"
            )
        Q, R = jnp.linalg.qr(factor)
        eigenvalues, W = jnp.linalg.eigh(jnp.matmul(R * weights, R.T, precision="highest"))
        basis = jnp.matmul(Q, W, precision="highest")
        fill(self, diagonal=diagonal, basis=basis, rows=basis.T, eigenvalues=eigenvalues)

    @property
    def size(self) -> int:
        return self.diagonal.shape[-1]

    @property
    def num_normals(self) -> int:
        return 2 * self.size

    def noise(self, key: jax.Array, scale: jax.Array, slack: jax.Array) -> jax.Array:
        """The first half of the normals is drawn only where the diagonal has a positive part."""
        key_m, key_n = random.split(key)
        draw = lambda key: random.gauss(key, (self.size,))  # noqa: E731
        m = jax.lax.cond(jnp.any(scale * self.diagonal > 0), draw, lambda key: jnp.zeros_like(draw(key)), key_m)
        return self._coloured(m, draw(key_n), scale, slack)

    def matvec(self, v: jax.Array) -> jax.Array:
        return self.diagonal * v + self._within(self.eigenvalues, v)

    def _within(self, weights: jax.Array, v: jax.Array) -> jax.Array:
        """V diag(weights) Vᵀv."""
        inner = jnp.matmul(self.basis.T, v, precision="highest")
        return jnp.matmul(weights * inner, self.rows, precision="highest")

    def shift(self, scale: jax.Array, slack: jax.Array) -> jax.Array:
        return negative_part(scale * self.diagonal) + self._floor(scale, slack)

    def _floor(self, scale: jax.Array, slack: jax.Array) -> jax.Array:
        return jnp.max(negative_part(scale * self.eigenvalues)) + slack

    def colour(self, normals: jax.Array, scale: jax.Array, slack: jax.Array) -> jax.Array:
        return self._coloured(normals[: self.size], normals[self.size :], scale, slack)

    def _coloured(self, m: jax.Array, n: jax.Array, scale: jax.Array, slack: jax.Array) -> jax.Array:
        mu = self._floor(scale, slack)
        stretch = root(mu + scale * self.eigenvalues) - root(mu)
        return root(scale * self.diagonal) * m + root(mu) * n + self._within(stretch, n)
