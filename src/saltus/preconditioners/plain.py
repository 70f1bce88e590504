"""A matrix that is only multiplied by."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .._record import fill, record
from .base import Preconditioner


@record
class Plain(Preconditioner):
    """A symmetric (n, n) array without a factorisation: it has no noise, and costs nothing to make."""

    linear_in = ("array",)

    array: jax.Array

    def __init__(self, array: Any):
        fill(self, array=array)

    @property
    def size(self) -> int:
        return self.array.shape[-1]

    def matrix(self) -> jax.Array:
        return self.array

    def matvec(self, v: jax.Array) -> jax.Array:
        return jnp.matmul(self.array, v, precision="highest")
