"""What every form of a symmetric matrix offers, and the checks its numbers pass."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import as_float, changed, default_float, is_concrete, record
from ..errors import KernelError, SaltusError


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

    written_out: ClassVar[int] = 2**11  # entries up to which `matrix` is cheap enough for every step

    linear_in: ClassVar[tuple[str, ...]] = ()  # the fields that are proportional to Σ; the others do not change with its scale

    def scaled(self, beta: Any) -> Any:
        """β Σ, β >= 0, in the same form."""
        return changed(self, **{name: beta * getattr(self, name) for name in self.linear_in})

    def form(self, s: np.ndarray) -> np.ndarray:
        """½ sᵀΣs for each row of s, in numpy's float64: for tests of what was found."""
        return 0.5 * np.sum(s * (s @ np.asarray(self.matrix(), np.float64)), axis=-1)

    def matrix(self) -> jax.Array:
        """Σ written out, (n, n): for tests and small problems."""
        return jax.vmap(self.matvec)(jnp.eye(self.size, dtype=default_float())).T


def negative_part(x: jax.Array) -> jax.Array:
    return jnp.maximum(-x, 0)


def root(x: jax.Array) -> jax.Array:
    """Square root of what is >= 0 up to rounding."""
    return jnp.sqrt(jnp.maximum(x, 0))


def vector(given: Any, name: str) -> jax.Array:
    array = as_float(given, name)
    if array.ndim != 1:
        raise KernelError(f"`{name}` is not a vector.", expected="shape (n,)", found=f"shape {array.shape}")
    return array


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
