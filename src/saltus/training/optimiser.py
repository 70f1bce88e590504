"""Does the optimiser fit the parameters? And when are two of them the same?"""

from __future__ import annotations

import functools
import math
import types
from typing import Any

import jax
import jax.numpy as jnp

from .._record import shown
from ..errors import TrainingError


class Optimiser:
    """An optimiser that equals another which was built alike, so that `optax.adam(1e-3)`, typed again, compiles nothing anew.

    Alike: the same code, with equal numbers and words in its closures. What cannot be compared is only equal to itself.
    """

    def __init__(self, given: Any):
        self.given = given
        self.init, self.update = given.init, given.update
        self._identity = (_identity(given.init), _identity(given.update))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Optimiser) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)


def _identity(part: Any, depth: int = 0) -> Any:
    """A hashable stand-in for a function and all that it closes over."""
    within = functools.partial(_identity, depth=depth + 1)
    if part is None or isinstance(part, (bool, int, float, str, bytes)):
        return (type(part), part)
    if depth > 20:
        return (id(part),)
    if isinstance(part, types.FunctionType):
        cells = tuple(within(cell.cell_contents) if _filled(cell) else () for cell in part.__closure__ or ())
        return ("function", part.__code__, cells, within(part.__defaults__), within(part.__kwdefaults__))
    if isinstance(part, functools.partial):
        return ("partial", within(part.func), within(part.args), within(part.keywords))
    if isinstance(part, (tuple, list)):
        return (type(part), *map(within, part))
    if isinstance(part, dict):
        return ("dict", *((within(key), within(value)) for key, value in part.items()))
    return (id(part),)


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def read_optimiser(optimiser: Any, trained: Any) -> tuple[Optimiser, Any]:
    """(the optimiser, the state it begins with for these parameters); TrainingError where it was made for others."""
    if not (callable(getattr(optimiser, "init", None)) and callable(getattr(optimiser, "update", None))):
        maker = getattr(optimiser, "__name__", "") if callable(optimiser) else ""
        hint = f"{maker} makes an optimiser when it is called with a learning rate: {maker}(1e-3)" if maker else ""
        raise TrainingError("`optimiser` is not an optimiser.", expected="e.g. optax.adam(1e-3)", found=shown(optimiser), hint=hint)
    shapes = lambda tree: jax.tree.map(lambda x: (jnp.shape(x), jnp.result_type(x).name), tree)  # noqa: E731
    try:
        state = optimiser.init(trained)
        changes, after = jax.eval_shape(optimiser.update, trained, state, trained)
        same = shapes(changes) == shapes(trained) and shapes(after) == shapes(state)
        found = "updates of other shapes"
    except Exception as cause:
        raise _other_params(f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}", trained) from cause
    if not same:
        raise _other_params(found, trained)
    return Optimiser(optimiser), jax.tree.map(_strong, state)


def _strong(leaf: Any) -> Any:
    """As the state looks after an update, so that the first one compiles for all."""
    return jnp.asarray(leaf) if not getattr(leaf, "weak_type", False) else jax.lax.convert_element_type(leaf, leaf.dtype)


def _other_params(found: str, trained: Any) -> TrainingError:
    leaves = jax.tree.leaves(trained)
    return TrainingError(
        "The optimiser does not fit the parameters.",
        expected=f"one that updates {len(leaves)} arrays, {sum(math.prod(leaf.shape) for leaf in leaves)} numbers in all",
        found=found,
        hint="masks and labels of an optimiser must follow the parameters that are trained (trainable=)",
    )
