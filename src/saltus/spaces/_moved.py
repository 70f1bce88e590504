"""What 0.1 had on `Space` and is now on its form of `Moves`; each says what to type instead, and goes with 0.3."""

from __future__ import annotations

import warnings
from typing import Any

import jax


def _say(name: str, now: str) -> None:
    warnings.warn(f"space.{name} is now {now}", DeprecationWarning, stacklevel=3)


class Moved:
    """Deprecated methods of `Space`."""

    form: Any
    num_sites: int
    num_values: int

    def packed(self, table: jax.Array) -> jax.Array:
        """Deprecated: space.form.packed(space, table)."""
        _say("packed", "space.form.packed(space, table)")
        return self.form.packed(self, table)

    def unpacked(self, codes: jax.Array, packed: jax.Array) -> Any:
        """Deprecated: space.form.unpacked(codes, packed)."""
        _say("unpacked", "space.form.unpacked(codes, packed)")
        return self.form.unpacked(codes, packed)

    def rows(self, codes: jax.Array, packed: jax.Array) -> jax.Array:
        """Deprecated: space.form.rows(codes, packed)."""
        _say("rows", "space.form.rows(codes, packed)")
        return self.form.rows(codes, packed)

    def conditionals(self, codes: jax.Array, packed: jax.Array) -> Any:
        """Deprecated: space.form.conditionals(codes, packed)."""
        _say("conditionals", "space.form.conditionals(codes, packed)")
        return self.form.conditionals(codes, packed)

    def choose(self, codes: jax.Array, packed: jax.Array, u: jax.Array) -> jax.Array:
        """Deprecated: space.form.chosen(codes, packed, u)."""
        _say("choose", "space.form.chosen(codes, packed, u)")
        return self.form.chosen(codes, packed, u)

    @property
    def table_shapes(self) -> list[tuple[int, ...]]:
        """Deprecated: a table is (d, k), or (d,) where there are two values."""
        _say("table_shapes", "(d, k), or (d,) where there are two values")
        return [(self.num_sites, self.num_values), *([(self.num_sites,)] if self.num_values == 2 else [])]
