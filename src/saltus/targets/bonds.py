"""Which sites of a lattice are neighbours: pairs of sites, direction by direction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._record import as_sequence, as_size, shown
from ..errors import TargetError

TRIANGULAR = ((1, 0), (0, 1), (1, 1))  # a row on, a column on, and both


def read_shape(shape: Any) -> tuple[int, ...]:
    """Sides of a lattice, one or more; TargetError otherwise."""
    sides = [shape] if isinstance(shape, (int, np.integer)) else as_sequence(shape, "shape", TargetError, "sides such as (10, 10)")
    if not sides:
        raise TargetError("A lattice needs at least one side.", expected="sides such as (10, 10)", found=shown(shape))
    return tuple(as_size(n, "shape", TargetError) for n in sides)


def read_periodic(periodic: Any, num_axes: int) -> tuple[bool, ...]:
    """One word for each axis."""
    each = [periodic] * num_axes if isinstance(periodic, (bool, np.bool_)) else None
    expected = f"True, False, or one of them for each of {num_axes} axes"
    each = as_sequence(periodic, "periodic", TargetError, expected) if each is None else each
    if len(each) != num_axes or not all(isinstance(word, (bool, np.bool_)) for word in each):
        raise TargetError("`periodic` is not usable.", expected=expected, found=shown(periodic))
    return tuple(map(bool, each))


def axis_steps(num_axes: int) -> tuple[tuple[int, ...], ...]:
    """The directions of a square or cubic lattice: one site on along each axis."""
    return tuple(tuple(int(i == axis) for i in range(num_axes)) for axis in range(num_axes))


def bonds(shape: tuple[int, ...], steps: Sequence[Sequence[int]], periodic: tuple[bool, ...]) -> list[np.ndarray]:
    """For each direction its bonds (m, 2), from a site to the one a step on, in order of the first.

    Each pair of sites comes once: where a periodic side is so short that two bonds join the same pair, the first is taken.
    """
    index = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    found = [_along(index, step, periodic) for step in steps]
    if min(shape) > 2:
        return found
    every = np.concatenate(found)
    low, high = np.minimum(every[:, 0], every[:, 1]).astype(np.int64), np.maximum(every[:, 0], every[:, 1])
    _, first = np.unique(low * index.size + high, return_index=True)
    kept = np.zeros(len(every), bool)
    kept[first] = True
    kept &= low != high  # a periodic side of one site
    ends = np.cumsum([len(each) for each in found])
    return [each[mask] for each, mask in zip(found, np.split(kept, ends[:-1]), strict=True)]


def _along(index: np.ndarray, step: Sequence[int], periodic: tuple[bool, ...]) -> np.ndarray:
    here = tuple(slice(None) if wraps or not n else slice(0, -n) for n, wraps in zip(step, periodic, strict=True))
    other = index
    for axis, n in enumerate(step):
        other = np.roll(other, -n, axis=axis) if n else other
    return np.stack([index[here].ravel(), other[here].ravel()], axis=1)


def lattice_colours(shape: tuple[int, ...], steps: Sequence[Sequence[int]], periodic: tuple[bool, ...]) -> np.ndarray | None:
    """(d,) colours of the sites from sums of numbers along the axes: two, or three; None where such sums are no colouring.

    Along an odd periodic side the numbers are 0, 1, 0, 1, ..., 2: neighbours then differ modulo 3. Triangles need sides of 3 n.
    """
    wraps = [periodic[axis] and n > 1 for axis, n in enumerate(shape)]
    if any(sum(step) > 1 for step in steps):
        if any(n % 3 for n, round_ in zip(shape, wraps, strict=True) if round_):
            return None
        num, along = 3, [np.arange(n, dtype=np.int32) for n in shape]
    else:
        odd = [n % 2 == 1 and round_ for n, round_ in zip(shape, wraps, strict=True)]
        num, along = 3 if any(odd) else 2, [np.arange(n, dtype=np.int32) % 2 for n in shape]
        for numbers, is_odd in zip(along, odd, strict=True):
            numbers[-1] = 2 if is_odd else numbers[-1]
    each = [numbers.reshape(-1, *[1] * (len(shape) - 1 - axis)) for axis, numbers in enumerate(along)]
    return (sum(each[1:], each[0]) % num).astype(np.int32).ravel()
