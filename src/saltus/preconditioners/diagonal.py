"""A diagonal matrix."""

from __future__ import annotations

from typing import Any

import jax

from .._record import fill, record
from .base import Preconditioner, negative_part, root, vector


@record
class Diagonal(Preconditioner):
    """Σ = diag(t), t of any sign.  d_i = max(0, -γ t_i) + 2/ε.

    entries: t, one number for each entry of s, or one for all.
    """

    linear_in = ("entries",)

    entries: jax.Array

    def __init__(self, entries: Any):
        fill(self, entries=vector(entries, "entries"))

    @property
    def size(self) -> int:
        return self.entries.shape[-1]

    def matvec(self, v: jax.Array) -> jax.Array:
        return self.entries * v

    def shift(self, scale: jax.Array, slack: jax.Array) -> jax.Array:
        return negative_part(scale * self.entries) + slack

    def colour(self, normals: jax.Array, scale: jax.Array, slack: jax.Array) -> jax.Array:
        return root(scale * self.entries + self.shift(scale, slack)) * normals
