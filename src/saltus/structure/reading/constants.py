"""Constants of a log_prob, followed in numpy as far as they are certain.

They serve two ends: an index says which element is meant, and a zero removes what it multiplies. A program that XLA has
optimised rounds in other ways than numpy does, so a float that has been computed (`exact` False) is never compared, rounded
or used as an index, and a sum is only zero where both its terms are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import indexing

LARGEST = 4_000_000  # numbers of a constant: beyond, nothing is known of it


@dataclass(frozen=True)
class Known:
    """A constant whose value is known."""

    value: np.ndarray
    exact: bool = True  # bit for bit; otherwise up to rounding, but its zeros are zeros and no others are


class Unknown:
    """A constant of which nothing is known: params, and what is computed in ways that are not followed."""


UNKNOWN = Unknown()


def _is_float(x: np.ndarray) -> bool:
    return x.dtype.kind not in "biu"


_EXACT: dict[str, Callable[..., Any]] = {  # of exact numbers they give exact ones
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "max": np.maximum,
    "min": np.minimum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "stop_gradient": np.asarray,
}
_ROUNDS: dict[str, Callable[..., Any]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}  # exact for integers


def evaluate(eqn: Any, inputs: list[Known | Unknown]) -> list[Known | Unknown]:
    """The outputs of an equation whose inputs are all constant."""
    unknown: list[Known | Unknown] = [UNKNOWN for _ in eqn.outvars]
    if len(eqn.outvars) != 1 or eqn.outvars[0].aval.size > LARGEST:
        return unknown
    known = [x for x in inputs if isinstance(x, Known)]
    if len(known) != len(inputs):
        return unknown
    with np.errstate(all="ignore"):
        found = _one(eqn, known)
    if found is None:
        return unknown
    aval = eqn.outvars[0].aval
    return [Known(np.asarray(found.value, aval.dtype).reshape(aval.shape), found.exact)]


def _one(eqn: Any, known: list[Known]) -> Known | None:
    name, values, exact = eqn.primitive.name, [x.value for x in known], all(x.exact for x in known)
    if name in _ROUNDS:
        return _rounded(name, values, exact)
    if name in _EXACT:
        return Known(_EXACT[name](*values), exact) if exact or name in ("neg", "abs", "stop_gradient") else None
    if name in indexing.ONE_OPERAND:
        return Known(values[0].ravel()[indexing.ONE_OPERAND[name](values[0].shape, eqn.params)], exact)
    if name == "convert_element_type":
        narrows = _is_float(values[0]) and np.dtype(eqn.params["new_dtype"]).kind in "biu"
        return None if narrows and not exact else Known(values[0].astype(eqn.params["new_dtype"]), exact)
    if name == "iota":
        shape, along = eqn.params["shape"], eqn.params["dimension"]
        steps = np.arange(shape[along]).reshape([-1 if axis == along else 1 for axis in range(len(shape))])
        return Known(np.broadcast_to(steps, shape))
    if name == "concatenate":
        return Known(np.concatenate(values, eqn.params["dimension"]), exact)
    if name == "select_n" and known[0].exact:
        which = np.broadcast_to(values[0].astype(int), values[1].shape)
        return Known(np.select([which == case for case in range(len(values) - 1)], values[1:]), exact)
    if name in ("scatter", "scatter-add") and known[1].exact:
        return _scattered(name, eqn, values, exact)
    return None


def _rounded(name: str, values: list[np.ndarray], exact: bool) -> Known | None:
    result = _ROUNDS[name](*values)
    if not _is_float(result):
        return Known(result) if exact else None
    if name != "mul":  # terms that cancel may not do so in another order
        result = np.where((result == 0) & ((values[0] != 0) | (values[1] != 0)), 1, result)
    else:  # a product may be too small for numpy, or for XLA: neither is sure to be zero
        result = np.where((result == 0) & (values[0] != 0) & (values[1] != 0), 1, result)
    return Known(result, exact=False)


def _scattered(name: str, eqn: Any, values: list[np.ndarray], exact: bool) -> Known | None:
    operand, indices, updates = values
    places = indexing.scattered(operand.shape, indices, updates.shape, eqn.params).ravel()
    result, inside = operand.ravel().copy(), places >= 0
    if name == "scatter":
        if len(np.unique(places[inside])) < inside.sum():
            return None  # which of two is written last is not said
        result[places[inside]] = updates.ravel()[inside]
        return Known(result, exact)
    if not _is_float(result):
        np.add.at(result, places[inside], updates.ravel()[inside])
        return Known(result) if exact else None
    touched = np.abs(result)  # zero only where all terms are
    np.add.at(touched, places[inside], np.abs(updates.ravel()[inside]))
    return Known(touched, exact=False)
