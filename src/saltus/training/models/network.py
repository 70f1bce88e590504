"""Any equinox module as a target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ...errors import TrainingError
from ...spaces import Space
from ...target import Target


def network(module: Callable, space: Space, **options: Any) -> Target:
    """f(s) = module(s), for an equinox module: its arrays are the params, the rest (activations, sizes) stays as it is.

    The result may have shape () or (1,). `module_of(target)` gives the module back, with the params as they are now.
    options: of `saltus.Target`, such as differences="exact".
    module: called with one state. space: where states live.
    """
    if not callable(module) or not any(map(_is_float, jax.tree.leaves(module))):
        raise TrainingError("`module` has no parameters.", expected="an equinox module with arrays", found=repr(module)[:100])
    params = jax.tree.map(lambda leaf: leaf if _is_float(leaf) else None, module)
    rest = jax.tree.map(lambda leaf: None if _is_float(leaf) else leaf, module)
    return Target(_Module(rest), space, params, **options)


def module_of(target: Target) -> Any:
    """The equinox module of a target made by `network`."""
    if not isinstance(target.log_prob, _Module):
        raise TrainingError("This target is no network.", expected="one made by saltus.training.models.network", found=repr(target))
    return target.log_prob.filled(target.params)


def _is_float(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating)


class _Module:
    """A module without its arrays; two are equal where all else of them is, so that their targets share what was compiled."""

    def __init__(self, rest: Any):
        self.rest = rest
        leaves, tree = jax.tree.flatten(rest)
        self._identity = (tree, tuple(leaves)) if _hashable((tree, *leaves)) else (id(self),)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Module) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def filled(self, params: Any) -> Any:
        return jax.tree.map(lambda a, b: b if a is None else a, params, self.rest, is_leaf=lambda x: x is None)

    def __call__(self, params: Any, s: jax.Array) -> jax.Array:
        f = self.filled(params)(s)
        return f[0] if jnp.shape(f) == (1,) else f


def _hashable(parts: tuple) -> bool:
    try:
        hash(parts)
    except TypeError:
        return False
    return True
