"""Where the elements of an array come from: slices, gathers and the like, as flat indices in numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Places = np.ndarray  # per element of a result: the flat index of the element it is a copy of, -1 where it is none


def _flat(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(math.prod(shape)).reshape(shape)


def broadcast_in_dim(shape: tuple[int, ...], params: dict[str, Any]) -> Places:
    new, where = params["shape"], params["broadcast_dimensions"]
    spread = [1] * len(new)
    for size, axis in zip(shape, where, strict=True):
        spread[axis] = size
    return np.broadcast_to(_flat(shape).reshape(spread), new)


def transpose(shape: tuple[int, ...], params: dict[str, Any]) -> Places:
    return _flat(shape).transpose(params["permutation"])


def rev(shape: tuple[int, ...], params: dict[str, Any]) -> Places:
    return np.flip(_flat(shape), params["dimensions"])


def sliced(shape: tuple[int, ...], params: dict[str, Any]) -> Places:
    strides = params["strides"] or (1,) * len(shape)
    limits = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return _flat(shape)[tuple(slice(*each) for each in limits)]


def unchanged(shape: tuple[int, ...], params: dict[str, Any]) -> Places:
    return _flat(shape)


ONE_OPERAND = {
    "broadcast_in_dim": broadcast_in_dim,
    "transpose": transpose,
    "rev": rev,
    "slice": sliced,
    "reshape": unchanged,
    "squeeze": unchanged,
    "expand_dims": unchanged,
    "copy": unchanged,
    "copy_p": unchanged,
}
IN_ORDER = {"reshape", "squeeze", "expand_dims", "copy", "copy_p"}  # of these only the shape changes


def padded(shape: tuple[int, ...], config: Any, new: tuple[int, ...]) -> Places:
    """-1 where there is padding."""
    places, source = np.full(new, -1), _flat(shape)
    kept, put = [], []
    for size, (low, _, inner), limit in zip(shape, config, new, strict=True):
        at = low + np.arange(size) * (1 + inner)
        inside = (at >= 0) & (at < limit)
        kept.append(np.flatnonzero(inside))
        put.append(at[inside])
    places[np.ix_(*put)] = source[np.ix_(*kept)]
    return places


def dynamic_sliced(shape: tuple[int, ...], starts: list[int], sizes: tuple[int, ...]) -> Places:
    bounds = [min(max(int(start), 0), full - size) for start, full, size in zip(starts, shape, sizes, strict=True)]
    return _flat(shape)[tuple(slice(low, low + size) for low, size in zip(bounds, sizes, strict=True))]


def windows(
    shape: tuple[int, ...],
    indices: np.ndarray,
    offset_dims: tuple[int, ...],
    inside: list[int],
    index_map: tuple[int, ...],
    batching: tuple[tuple[int, int], ...],
    sizes: tuple[int, ...],
    out_ndim: int,
    drops: bool,
) -> Places:
    """The element of an array of `shape` that each element of a gather reads, or of a scatter's updates writes.

    offset_dims: axes of the result that run along a window; inside: the axes of the array they run along. index_map: the axes
    that an index vector addresses. batching: (axis of the array, axis of the indices) that go together. sizes: of a window.
    drops: windows that leave the array are -1, not moved back into it.
    """
    batch = indices.shape[:-1]
    starts = np.zeros((*batch, len(shape)), np.int64)
    for position, axis in enumerate(index_map):
        starts[..., axis] = indices[..., position]
    for axis, along in batching:
        starts[..., axis] = np.arange(batch[along]).reshape([-1 if a == along else 1 for a in range(len(batch))])
    most = np.asarray(shape, np.int64) - np.asarray(sizes, np.int64)
    outside = ((starts < 0) | (starts > most)).any(-1) & drops
    starts = np.clip(starts, 0, most)
    strides = np.array([math.prod(shape[axis + 1 :]) for axis in range(len(shape))], np.int64)
    window = np.zeros((), np.int64)
    for axis in inside:
        window = window[..., None] + np.arange(sizes[axis]) * strides[axis]
    base = np.where(outside, -1, starts @ strides)
    whole = base.reshape(base.shape + (1,) * window.ndim)
    whole = np.where(whole < 0, -1, whole + window)
    batch_axes = [axis for axis in range(out_ndim) if axis not in offset_dims]
    order = np.argsort([*batch_axes, *offset_dims])
    return whole.transpose(order)


def gathered(shape: tuple[int, ...], indices: np.ndarray, params: dict[str, Any], out_ndim: int) -> Places:
    """What `gather` reads."""
    names, sizes = params["dimension_numbers"], params["slice_sizes"]
    left_out = {*names.collapsed_slice_dims, *names.operand_batching_dims}
    inside = [axis for axis in range(len(shape)) if axis not in left_out]
    batching = tuple(zip(names.operand_batching_dims, names.start_indices_batching_dims, strict=True))
    drops = "FILL" in str(params["mode"])
    return windows(shape, indices, names.offset_dims, inside, names.start_index_map, batching, sizes, out_ndim, drops)


def scattered(shape: tuple[int, ...], indices: np.ndarray, updates: tuple[int, ...], params: dict[str, Any]) -> Places:
    """What `scatter` and `scatter-add` write, for each element of the updates."""
    names = params["dimension_numbers"]
    left_out = {*names.inserted_window_dims, *names.operand_batching_dims}
    inside = [axis for axis in range(len(shape)) if axis not in left_out]
    sizes = [1] * len(shape)
    for axis, along in zip(inside, names.update_window_dims, strict=True):
        sizes[axis] = updates[along]
    batching = tuple(zip(names.operand_batching_dims, names.scatter_indices_batching_dims, strict=True))
    drops, map_ = "CLIP" not in str(params["mode"]), names.scatter_dims_to_operand_dims
    return windows(shape, indices, names.update_window_dims, inside, map_, batching, tuple(sizes), len(updates), drops)
