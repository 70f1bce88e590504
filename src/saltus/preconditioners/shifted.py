r"""The couplings H of a quadratic target, factorised once for their smallest positive shift.

Training changes H at every update, so this has to be cheap. `eigh` of a hundred sites is many small products that LAPACK
hands to its own threads, which wait for each other; a Cholesky factorisation of that size stays on one, so a dozen of them
cost less, and give the same numbers however many threads there are.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import default_float, fill, is_concrete, record
from .base import Preconditioner, symmetric

TOLERANCE = 2.0**-8  # how much larger than -λ_min the least shift of a traced H may be, as a part of it


@record
class Shifted(Preconditioner):
    r"""Any symmetric (n, n) array with H + d I = L diag(p) Lᵀ, L unit lower triangular; γ >= 0.

    The shift is γd + slack and the root has two parts, AᵀA = L diag(γp) Lᵀ + slack I: no slack, no second part.
    d is max(0, -λ_min) up to rounding where H is concrete, and at most `TOLERANCE` more where it is traced.
    """

    linear_in = ("array", "least", "pivots")

    array: jax.Array
    least: jax.Array
    factor: jax.Array
    pivots: jax.Array

    def __init__(self, array: Any):
        array = symmetric(array)
        least, root = _in_float64(np.asarray(array, np.float64)) if is_concrete(array) else _by_bisection(array)
        diagonal, dtype = root.diagonal(), default_float()
        fill(self, array=array, least=jnp.asarray(least, dtype))
        fill(self, factor=jnp.asarray(root / diagonal, dtype), pivots=jnp.asarray(diagonal**2, dtype))

    @property
    def size(self) -> int:
        return self.array.shape[-1]

    @property
    def num_normals(self) -> int:
        return 2 * self.size

    def matrix(self) -> jax.Array:
        return self.array

    def matvec(self, v: jax.Array) -> jax.Array:
        return jnp.matmul(self.array, v, precision="highest")

    def shift(self, scale: jax.Array, slack: jax.Array) -> jax.Array:
        return scale * self.least + slack

    def colour(self, normals: jax.Array, scale: jax.Array, slack: jax.Array) -> jax.Array:
        along, loose = normals[: self.size], normals[self.size :]
        return jnp.matmul(self.factor, jnp.sqrt(scale * self.pivots) * along, precision="highest") + jnp.sqrt(slack) * loose

    def noise(self, key: jax.Array, scale: jax.Array, slack: jax.Array) -> jax.Array:
        """The second half of the normals is drawn only where there is slack."""
        along, loose = random.split(key)
        draw = lambda key: random.gauss(key, (self.size,))  # noqa: E731
        second = jax.lax.cond(slack > 0, draw, lambda key: jnp.zeros_like(draw(key)), loose)
        return self.colour(jnp.concatenate([draw(along), second]), scale, slack)


def _rounding(array: Any, bound: Any) -> Any:
    """What a Cholesky factorisation may be off by, with room; > 0 even for H = 0."""
    limits = jnp.finfo(array.dtype)
    return 4 * len(array) * float(limits.eps) * bound + float(limits.tiny)


def _bound(array: Any) -> Any:
    """max_i sum_j |H_ij| >= -λ_min (Gershgorin)."""
    return abs(array).sum(axis=1).max()


def _in_float64(array: np.ndarray) -> tuple[Any, np.ndarray]:
    """(d, lower root of H + dI): done once, used for ever."""
    least = max(0.0, -np.linalg.eigvalsh(array)[0]) + _rounding(array, _bound(array))
    return least, np.linalg.cholesky(array + least * np.eye(len(array)))


def _by_bisection(array: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(d, lower root of H + dI) within jit: d is the smallest found for which the factorisation succeeds.

    The root kept is the one that succeeded: so near to singular, another factorisation with another rounding might not.
    """
    bound = _bound(array)
    rounding = _rounding(array, bound)

    def root(shift: jax.Array) -> jax.Array:
        return jnp.linalg.cholesky(array + shift * jnp.eye(len(array), dtype=array.dtype), symmetrize_input=False)

    def wide(state: tuple) -> jax.Array:
        low, high, _ = state
        return high - low > TOLERANCE * low + rounding

    def halve(state: tuple) -> tuple:
        low, high, kept = state
        middle = (low + high) / 2
        tried = root(middle)
        succeeded = jnp.isfinite(tried[0, 0])
        return jnp.where(succeeded, low, middle), jnp.where(succeeded, middle, high), jnp.where(succeeded, tried, kept)

    high = bound + rounding
    _, least, kept = jax.lax.while_loop(wide, halve, (jnp.zeros_like(high), high, root(high)))
    return least, kept
