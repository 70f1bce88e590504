"""Does the optimiser fit the parameters?"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from ..errors import TrainingError


def read_optimiser(optimiser: Any, trained: Any) -> Any:
    """The state an optimiser begins with for these parameters; TrainingError where it was made for others."""
    if not (callable(getattr(optimiser, "init", None)) and callable(getattr(optimiser, "update", None))):
        raise TrainingError("`optimiser` is not an optimiser.", expected="e.g. optax.adam(1e-3)", found=repr(optimiser)[:100])
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
    return jax.tree.map(_strong, state)


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
