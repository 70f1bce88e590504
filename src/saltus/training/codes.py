"""States as people have them, read as codes: quickly where they are whole numbers, else as the space reads them."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from ..engine.recording import label_dtype
from ..engine.starts import read_states
from ..errors import SpaceError
from ..spaces import Space

_AT_ONCE = 2**22  # numbers


def read_codes(space: Space, states: Any, name: str) -> np.ndarray:
    """(rows, d) codes in the smallest integer type; SpaceError where they are not states of this space, one a row.

    Of a product of spaces states are a dict, {part: states of the part}.
    """
    if isinstance(states, dict) or not hasattr(space, "values"):
        codes = space.encode(states, name)
        if codes.ndim != 2 or not len(codes):
            raise SpaceError(f"`{name}` is not a table of states.", expected="one state a row", found=f"shape {codes.shape}")
        return codes.astype(label_dtype(space.num_values))
    quick = _whole_numbers(space, states)
    if quick is not None:
        return quick
    try:
        return read_states(space, states, name)
    except SpaceError as error:
        hint = "" if "\n  hint " in str(error) else _way_out(space, states, name)
        raise SpaceError(str(error), hint=hint) from None


def _way_out(space: Space, states: Any, name: str) -> str:
    """What those who have something else than states usually want."""
    if isinstance(states, (str, os.PathLike)):
        return 'numpy.load reads a file, saltus.datasets.load("usps") those that it knows'
    if isinstance(states, (tuple, list)) and len(states) == 2 and all(hasattr(part, "shape") for part in states):
        return "states and labels? Pass the states alone"
    if not isinstance(states, np.ndarray) or states.dtype.kind not in "biuf" or not states.size:
        return ""
    if states.ndim > 2 and math.prod(states.shape[1:]) == space.num_sites:
        return f"a state is one row: {name}.reshape(len({name}), -1)"
    top = float(states.max())
    if space.num_values == 2 and states.min() >= 0 and (top <= 1 or 2 < top <= 255):
        return f"these look like grey levels: pass ({name} > {0.5 if top <= 1 else 127}).astype(int)"
    return ""


def _whole_numbers(space: Space, states: Any) -> np.ndarray | None:
    """Codes of whole numbers at even steps, in a few passes over them; None where that is not what they are."""
    table = space.values if space.values.ndim == 1 else space.labels
    if not isinstance(states, np.ndarray) or states.ndim != 2 or states.shape[1] != space.num_sites or not states.size:
        return None
    if states.dtype.kind not in "biuf" or table.ndim != 1 or table.dtype.kind not in "if":
        return None
    start, step = float(table[0]), float(table[1] - table[0])
    if not (start.is_integer() and step.is_integer() and np.array_equal(table, start + step * np.arange(len(table)))):
        return None
    dtype = label_dtype(space.num_values)
    if states.dtype == dtype and start == 0 and step == 1:
        return states if states.max() < space.num_values else None
    codes = np.empty(states.shape, dtype)
    rows = max(_AT_ONCE // space.num_sites, 1)
    for first in range(0, len(states), rows):
        some = states[first : first + rows]
        if some.dtype.kind == "f" and not np.isfinite(some).all():
            return None
        if some.min() < table[0] or some.max() > table[-1]:
            return None
        steps = (some.astype(np.int64 if some.dtype.itemsize > 2 else np.int32) - int(start)) // int(step)
        if not np.array_equal(steps * int(step) + int(start), some):
            return None
        codes[first : first + rows] = steps
    return codes
