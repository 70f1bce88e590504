"""Any symmetric matrix, with its eigenbasis."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import default_float, fill, is_concrete, record
from .base import Preconditioner, negative_part, root, symmetric


@record
class Dense(Preconditioner):
    """Any symmetric (n, n) array; the eigenbasis is kept, so a new γ or ε is free.  d = max(0, -λ_min(γΣ)) + 2/ε."""

    linear_in = ("array", "eigenvalues")

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
        return jnp.max(negative_part(scale * self.eigenvalues)) + slack

    def colour(self, normals: jax.Array, scale: jax.Array, slack: jax.Array) -> jax.Array:
        spectrum = scale * self.eigenvalues + self.shift(scale, slack)
        return jnp.matmul(self.basis, root(spectrum) * normals, precision="highest")


def as_preconditioner(given: Any) -> Preconditioner:
    """A preconditioner as it is; an array becomes Dense."""
    return given if isinstance(given, Preconditioner) else Dense(given)
