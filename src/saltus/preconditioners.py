r"""Preconditioners: a symmetric n x n matrix Σ, never more of it than its form needs.

With a scale γ and a slack 2/ε, PAVG draws u ~ N(0, γΣ + diag(d)), where the shift d is the least that makes γΣ + diag(d)
positive semi-definite in this form, plus the slack. Each form offers

    matvec(v)                        Σ v
    shift(scale, slack)              d: a number, or one per coordinate
    colour(normals, scale, slack)    u = Aᵀ normals with AᵀA = γΣ + diag(d)         (`num_normals` of them)

Numbers are leaves: another Σ of the same shape, another γ or ε never recompiles.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import random
from ._record import as_float, default_float, fill, is_concrete, record, static
from .errors import KernelError, SaltusError
from .neighbours import Incidence


def _negative_part(x: jax.Array) -> jax.Array:
    return jnp.maximum(-x, 0)


def _root(x: jax.Array) -> jax.Array:
    """Square root of what is >= 0 up to rounding."""
    return jnp.sqrt(jnp.maximum(x, 0))


@record
class Preconditioner:
    """A symmetric matrix in some form."""

    @property
    def size(self) -> int:
        raise NotImplementedError

    @property
    def num_normals(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size})"

    def matvec(self, v: jax.Array) -> jax.Array:
        raise NotImplementedError

    def shift(self, scale: jax.Array, slack: jax.Array) -> jax.Array:
        raise NotImplementedError

    def colour(self, normals: jax.Array, scale: jax.Array, slack: jax.Array) -> jax.Array:
        raise NotImplementedError

    def noise(self, key: jax.Array, scale: jax.Array, slack: jax.Array) -> jax.Array:
        """u ~ N(0, γΣ + diag(d))."""
        return self.colour(random.gauss(key, (self.num_normals,)), scale, slack)

    def matrix(self) -> jax.Array:
        """Σ written out, (n, n): for tests and small problems."""
        return jax.vmap(self.matvec)(jnp.eye(self.size, dtype=default_float())).T


@record
class Dense(Preconditioner):
    """Any symmetric (n, n) array; the eigenbasis is kept, so a new γ or ε is free.  d = max(0, -λ_min(γΣ)) + 2/ε."""

    array: jax.Array
    basis: jax.Array
    eigenvalues: jax.Array

    def __init__(self, array: Any):
        array = symmetric(array)
        if is_concrete(array):  # in float64 whatever the default: done once, used for ever
            eigenvalues, basis = np.linalg.eigh(np.asarray(array, np.float64))
        else:
            eigenvalues, basis = jnp.linalg.eigh(array)
        dtype = default_float()
        fill(self, array=array, basis=jnp.asarray(basis, dtype), eigenvalues=jnp.asarray(eigenvalues, dtype))

    @property
    def size(self) -> int:
        return self.array.shape[-1]

    def matvec(self, v: jax.Array) -> jax.Array:
        return jnp.matmul(self.array, v, precision="highest")

    def shift(self, scale: jax.Array, slack: jax.Array) -> jax.Array:
        return jnp.max(_negative_part(scale * self.eigenvalues)) + slack

    def colour(self, normals: jax.Array, scale: jax.Array, slack: jax.Array) -> jax.Array:
        spectrum = scale * self.eigenvalues + self.shift(scale, slack)
        return jnp.matmul(self.basis, _root(spectrum) * normals, precision="highest")


@record
class Diagonal(Preconditioner):
    """Σ = diag(t), t of any sign.  d_i = max(0, -γ t_i) + 2/ε."""

    entries: jax.Array

    def __init__(self, entries: Any):
        fill(self, entries=_vector(entries, "entries"))

    @property
    def size(self) -> int:
        return self.entries.shape[-1]

    def matvec(self, v: jax.Array) -> jax.Array:
        return self.entries * v

    def shift(self, scale: jax.Array, slack: jax.Array) -> jax.Array:
        return _negative_part(scale * self.entries) + slack

    def colour(self, normals: jax.Array, scale: jax.Array, slack: jax.Array) -> jax.Array:
        return _root(scale * self.entries + self.shift(scale, slack)) * normals


@record
class LowRank(Preconditioner):
    r"""Σ = diag(t) + F diag(w) Fᵀ, t and w of any sign; O(n r) per use (PAPER_NOTES 1.14).

    F is (n, r). Kept as V diag(e) Vᵀ with orthonormal V.  d_i = max(0, -γ t_i) + μ,  μ = max(0, -min γe) + 2/ε.
    """

    diagonal: jax.Array
    basis: jax.Array
    rows: jax.Array  # (r, n) the basis once more: along them V x is several times as fast, for Vᵀx columns are
    eigenvalues: jax.Array

    def __init__(self, diagonal: Any, factor: Any, weights: Any = None):
        diagonal = _vector(diagonal, "diagonal")
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
        return _negative_part(scale * self.diagonal) + self._floor(scale, slack)

    def _floor(self, scale: jax.Array, slack: jax.Array) -> jax.Array:
        return jnp.max(_negative_part(scale * self.eigenvalues)) + slack

    def colour(self, normals: jax.Array, scale: jax.Array, slack: jax.Array) -> jax.Array:
        return self._coloured(normals[: self.size], normals[self.size :], scale, slack)

    def _coloured(self, m: jax.Array, n: jax.Array, scale: jax.Array, slack: jax.Array) -> jax.Array:
        mu = self._floor(scale, slack)
        stretch = _root(mu + scale * self.eigenvalues) - _root(mu)
        return _root(scale * self.diagonal) * m + _root(mu) * n + self._within(stretch, n)


@record
class Sparse(Preconditioner):
    r"""Σ from a list of edges i<j with weights Σ_ij, and a diagonal; nothing n x n (PAPER_NOTES 1.13).

    Σ + diag(d) is written as a sum of one rank-one term per edge, |w| a aᵀ with a = e_i + sign(w) e_j, and a diagonal:
    one normal per edge and per site.  d_i = max(0, |γ| r_i - γ Σ_ii) + 2/ε with r_i = sum_j |Σ_ij|, larger than Dense's:
    a different, equally exact kernel for the same Σ and ε. `copies=k` means Σ ⊗ I_k, as for one-hot sites that prefer
    to agree: edges join sites, weights couple equal categories.
    """

    weights: jax.Array
    diagonal: jax.Array
    edges: Incidence
    copies: int = static()

    def __init__(self, edges: Any, weights: Any, diagonal: Any = 0.0, size: int | None = None, copies: int = 1):
        diagonal = as_float(diagonal, "diagonal")
        if not isinstance(edges, Incidence):
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
        first = _root(jnp.abs(weights)) * normals[self.size :].reshape(-1, self.copies)
        second = jnp.sign(weights) * first
        ends = self._over_edges(lambda edge, other, sign: jnp.where(sign[..., None] > 0, first[edge], second[edge]))
        return _root(loose) * normals[: self.size] + ends.ravel()


def as_preconditioner(given: Any) -> Preconditioner:
    """A preconditioner as it is; an array becomes Dense."""
    return given if isinstance(given, Preconditioner) else Dense(given)


def _vector(given: Any, name: str) -> jax.Array:
    vector = as_float(given, name)
    if vector.ndim != 1:
        raise KernelError(f"`{name}` is not a vector.", expected="shape (n,)", found=f"shape {vector.shape}")
    return vector


def symmetric(given: Any, name: str = "The preconditioner", error: type[SaltusError] = KernelError) -> jax.Array:
    array = as_float(given, "preconditioner", error)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise error(f"{name} is not square.", expected="shape (n, n)", found=f"shape {array.shape}")
    if is_concrete(array):
        gap = np.abs(np.asarray(array) - np.asarray(array).T)
        allowed = 1e-5 * max(float(np.abs(array).max()), 1e-30)
        if gap.max() > allowed:
            i, j = np.unravel_index(int(gap.argmax()), gap.shape)
            raise error(
                f"{name} is not symmetric.",
                expected=f"Σ = Σᵀ to within {allowed:.1e}",
                found=f"a gap of {gap.max():.3g} between entries ({i}, {j}) and ({j}, {i})",
                hint="pass (S + S.T) / 2 if the difference is only rounding",
            )
    return (array + array.T) / 2
