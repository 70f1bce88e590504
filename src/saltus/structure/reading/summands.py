r"""A log_prob that ends in a sum, taken apart: the terms before they are summed.

$$ f(s) = c + \sum_t a_t(s) $$

Its jaxpr is evaluated, and from the result we go back through what only adds up: sums, differences, factors that are constant,
changes of shape. Whatever else is met is a term, or an array of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ..._convolutions import bound
from .calls import CALLS

_SAME_ELEMENTS = {"reshape", "squeeze", "expand_dims", "transpose", "rev", "copy", "copy_p", "reduce_sum", "optimization_barrier"}


@dataclass(frozen=True)
class _Node:
    """A value, and the equation that made it."""

    value: Any
    depends: bool  # on s
    name: str = ""
    inputs: tuple[_Node, ...] = ()


def terms_of(log_prob: Callable, params: Any, s: Any, with_params: bool) -> jax.Array:
    """(T,) terms whose sum is f(s) up to a constant; those that do not depend on s are left out."""
    given = (params, s) if with_params else (s,)
    closed = jax.make_jaxpr(log_prob)(*given)
    leaves, own = jax.tree.leaves(given), len(jax.tree.leaves(s))
    inputs = [_Node(leaf, i >= len(leaves) - own) for i, leaf in enumerate(leaves)]
    (out,) = _run(closed.jaxpr, closed.consts, inputs)
    found = [jnp.ravel(factor * value) for factor, value in _summands(out, 1)]
    return jnp.concatenate(found) if found else jnp.zeros(0)


def _run(jaxpr: Any, constants: Any, inputs: list[_Node]) -> list[_Node]:
    made = {var: _Node(c, False) for var, c in zip(jaxpr.constvars, constants, strict=True)}
    made |= dict(zip(jaxpr.invars, inputs, strict=True))

    def node(atom: Any) -> _Node:
        return _Node(atom.val, False) if hasattr(atom, "val") else made[atom]

    for eqn in jaxpr.eqns:
        made.update(zip(eqn.outvars, _equation(eqn, [node(atom) for atom in eqn.invars]), strict=True))
    return [node(atom) for atom in jaxpr.outvars]


def _equation(eqn: Any, inputs: list[_Node]) -> list[_Node]:
    name = eqn.primitive.name
    if name in CALLS and CALLS[name][0] in eqn.params:
        inner = eqn.params[CALLS[name][0]]
        closed = hasattr(inner, "consts")
        return _run(inner.jaxpr if closed else inner, inner.consts if closed else (), inputs)
    depends = any(x.depends for x in inputs)
    return [_Node(value, depends, name, tuple(inputs)) for value in bound(eqn, [x.value for x in inputs])]


def _summands(node: _Node, factor: Any) -> list[tuple[Any, Any]]:
    """(factor, array) of which the sums of all elements add up to that of this node, times the factor."""
    if not node.depends:
        return []
    if not _precise(node):  # sums of such numbers round, or wrap round: the whole is one term
        return [(factor, node.value)]
    name, inputs = node.name, node.inputs
    alike = all(jnp.shape(x.value) == jnp.shape(node.value) for x in inputs)
    if name in ("add", "add_any", "sub") and alike:
        return _summands(inputs[0], factor) + _summands(inputs[1], -factor if name == "sub" else factor)
    if name == "neg":
        return _summands(inputs[0], -factor)
    if name in ("mul", "div"):
        return _scaled(node, factor)
    if name in _SAME_ELEMENTS:
        return _summands(inputs[0], factor)
    if name == "concatenate":
        return [each for x in inputs for each in _summands(x, factor)]
    if name == "convert_element_type" and _precise(inputs[0]) and _width(inputs[0]) <= _width(node):
        return _summands(inputs[0], factor)
    if name == "dot_general" and all(jnp.ndim(x.value) == 1 for x in inputs):
        return [(factor, inputs[0].value * inputs[1].value)]
    return [(factor, node.value)]


def _precise(node: _Node) -> bool:
    return jnp.result_type(node.value) in (jnp.float32, jnp.float64)


def _width(node: _Node) -> int:
    return jnp.result_type(node.value).itemsize


def _scaled(node: _Node, factor: Any) -> list[tuple[Any, Any]]:
    """A product with, or a quotient by, one number that is constant."""
    one, other = node.inputs
    if not other.depends and jnp.ndim(other.value) == 0:
        return _summands(one, factor * other.value if node.name == "mul" else factor / other.value)
    if node.name == "mul" and not one.depends and jnp.ndim(one.value) == 0:
        return _summands(other, factor * one.value)
    return [(factor, node.value)]
