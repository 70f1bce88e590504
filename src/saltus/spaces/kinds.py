"""The spaces people name: two values, an ordered grid, categories, directions."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from .._record import as_array, as_size
from ..errors import SpaceError
from .base import Space

_MOST_CATEGORIES, _MOST_DIRECTIONS = 2**14, 2**20  # a table of k^2 numbers, and one of 2 k


def _indices(k: int) -> np.ndarray:
    """0..k-1 in the smallest signed integer type, so that differences of what is shown do not wrap around."""
    return np.arange(k, dtype=np.min_scalar_type(-k))


class Binary(Space):
    """d sites in {0, 1}."""

    def __init__(self, d: int):
        super().__init__(d, [0, 1], np.array([0, 1], np.int8), f"Binary({d})")


class Spin(Space):
    """d sites in {-1, +1}; code 1 is +1."""

    def __init__(self, d: int):
        super().__init__(d, [-1, 1], np.array([-1, 1], np.int8), f"Spin({d})")


class Ordinal(Space):
    """d sites on an increasing grid of at least two values, of any spacing; one hop is one grid step."""

    def __init__(self, d: int, values: Any):
        values = np.asarray(as_array(values, "values", SpaceError, "at least two numbers, shape (k,)"), dtype=np.float64)
        if values.ndim != 1 or len(values) < 2:
            raise SpaceError("`values` is not a grid.", expected="at least two numbers, shape (k,)", found=f"shape {values.shape}")
        wrong = ~np.isfinite(values)
        wrong[1:] |= ~(np.diff(values) > 0)
        if wrong.any():
            i = int(np.argmax(wrong))
            found = f"{values[i]:g} at position {i}" + (f" after {values[i - 1]:g}" if i else "")
            raise SpaceError("`values` must increase.", expected="finite numbers, each larger than the one before", found=found)
        super().__init__(d, values, values.astype(np.float32), f"Ordinal({d}, {len(values)} values {values[0]:g}..{values[-1]:g})")

    def hops(self, a: Any, b: Any) -> Any:
        return abs(a - b)


class Categorical(Space):
    """d sites, each one of k categories: s is one-hot (d, k), shown as the category index; all categories one hop apart."""

    def __init__(self, d: int, k: int):
        k = as_size(k, "k", SpaceError, least=2, most=_MOST_CATEGORIES)
        super().__init__(d, np.eye(k), _indices(k), f"Categorical({d}, {k})")


class Clock(Space):
    """d sites on a circle of k directions: s is (d, 2), (cos, sin); one hop is one step round the circle."""

    def __init__(self, d: int, k: int):
        k = as_size(k, "k", SpaceError, least=3, most=_MOST_DIRECTIONS)
        angle = 2 * np.pi * np.arange(k) / k
        super().__init__(d, np.stack([np.cos(angle), np.sin(angle)], axis=1), _indices(k), f"Clock({d}, {k})")

    def hops(self, a: Any, b: Any) -> Any:
        around = abs(a - b)
        return jnp.minimum(around, self.num_values - around)
