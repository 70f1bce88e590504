"""Convolutions of a user's function as matrix products: XLA:CPU runs its own 10 to 60 times slower inside a loop than outside."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "remat2": "jaxpr", "checkpoint": "jaxpr", "closed_call": "call_jaxpr"}


Rule = Callable[[Any], Callable | None]  # equation -> what to compute in its place; None: itself


def convolves(jaxpr: Any) -> bool:
    """Whether there is a convolution in it that can be rewritten."""
    return _applies(_as_product, jaxpr)


def by_matrix_products(function: Callable, *args: Any) -> Any:
    """`function(*args)`, a scalar, with every convolution as one matrix product of patches with weights; on a CPU."""
    if jax.default_backend() != "cpu":
        return function(*args)
    return rewritten(_as_product, function, *args)[0]


def rewritten(rule: Rule, function: Callable, *args: Any) -> list[Any]:
    """The leaves of `function(*args)`, with other computations in the place of some of its equations."""
    closed = jax.make_jaxpr(function)(*args)
    return _run(rule, closed.jaxpr, closed.consts, jax.tree.leaves(args))


def bound(eqn: Any, values: list[Any]) -> list[Any]:
    """The outputs of an equation for these inputs."""
    told = eqn.primitive.get_bind_params(eqn.params)
    functions, params = told if isinstance(told, tuple) else ((), told)  # of JAX before and since 0.9
    out = eqn.primitive.bind(*functions, *values, **params)
    return list(out) if eqn.primitive.multiple_results else [out]


def _applies(rule: Rule, jaxpr: Any) -> bool:
    """Whether the rule rewrites any of its equations."""
    return any(rule(eqn) is not None or ((inner := _inner(eqn)) is not None and _applies(rule, inner[0])) for eqn in jaxpr.eqns)


def _run(rule: Rule, jaxpr: Any, constants: Any, inputs: list[Any]) -> list[Any]:
    known = dict(zip(jaxpr.constvars, constants, strict=True)) | dict(zip(jaxpr.invars, inputs, strict=True))
    value = lambda atom: atom.val if hasattr(atom, "val") else known[atom]  # noqa: E731
    for eqn in jaxpr.eqns:
        values, inner, own = [value(atom) for atom in eqn.invars], _inner(eqn), rule(eqn)
        if own is not None:
            out = [own(*values)]
        elif inner is not None and _applies(rule, inner[0]):
            out = _run(rule, *inner, values)
        else:
            out = bound(eqn, values)
        known.update(zip(eqn.outvars, out, strict=True))
    return [value(atom) for atom in jaxpr.outvars]


def _inner(eqn: Any) -> tuple[Any, Any] | None:
    """(jaxpr, constants) of a call whose derivative is its own."""
    found = eqn.params.get(_CALLS.get(eqn.primitive.name, ""))
    if found is None:
        return None
    return (found.jaxpr, found.consts) if hasattr(found, "consts") else (found, ())


_PARAMS = ("window_strides", "padding", "rhs_dilation", "dimension_numbers")


def _as_product(eqn: Any) -> Callable | None:
    return functools.partial(convolution, **{name: eqn.params[name] for name in _PARAMS}) if _rewritable(eqn) else None


def _rewritable(eqn: Any) -> bool:
    if eqn.primitive.name != "conv_general_dilated":
        return False
    p = eqn.params
    plain = p["feature_group_count"] == p["batch_group_count"] == 1 and set(p["lhs_dilation"]) <= {1}
    floats = all(jnp.issubdtype(v.aval.dtype, jnp.floating) for v in (*eqn.invars, *eqn.outvars))
    return plain and floats and len({v.aval.dtype for v in (*eqn.invars, *eqn.outvars)}) == 1 and min(map(min, p["padding"])) >= 0


def convolution(
    images: jax.Array, weights: jax.Array, *, window_strides: Any, padding: Any, rhs_dilation: Any, dimension_numbers: Any
) -> jax.Array:
    """As `lax.conv_general_dilated`: patches of all images, side by side, times weights.

    Steps of several pixels are undone first where the patch allows it: pixels 2i and 2i + 1 become channels of pixel i. So the
    gradient, too, is matrix products and shifted sums, and nothing is scattered.
    """
    spec = dimension_numbers
    x = jnp.transpose(images, (spec.lhs_spec[0], *spec.lhs_spec[2:], spec.lhs_spec[1]))  # images, pixels..., channels
    w = jnp.transpose(weights, (*spec.rhs_spec[2:], spec.rhs_spec[1], spec.rhs_spec[0]))  # pixels..., channels, outputs
    x = jnp.pad(x, ((0, 0), *padding, (0, 0)))
    sizes = w.shape[:-2]
    spans = [1 + (size - 1) * step for size, step in zip(sizes, rhs_dilation, strict=True)]
    out = [1 + (n - span) // step for n, span, step in zip(x.shape[1:-1], spans, window_strides, strict=True)]
    if set(rhs_dilation) == {1} and all(size % step == 0 for size, step in zip(sizes, window_strides, strict=True)):
        x, w = _without_steps(x, w, out, window_strides)
        window_strides = (1,) * len(out)
    patches = [_shifted(x, corner, out, window_strides, rhs_dilation) for corner in product(*map(range, w.shape[:-2]))]
    result = jnp.matmul(jnp.concatenate(patches, axis=-1), w.reshape(-1, w.shape[-1]))
    axes = (spec.out_spec[0], *spec.out_spec[2:], spec.out_spec[1])
    return jnp.transpose(result, tuple(axes.index(axis) for axis in range(len(axes))))


def _without_steps(x: jax.Array, w: jax.Array, out: list[int], steps: Any) -> tuple[jax.Array, jax.Array]:
    """A patch of k pixels in steps of t as one of k / t in steps of one, with t times as many channels along each axis."""
    if set(steps) == {1}:
        return x, w
    num, small = len(out), [size // step for size, step in zip(w.shape[:-2], steps, strict=True)]
    needed = [(n + k - 1) * step for n, k, step in zip(out, small, steps, strict=True)]
    x = lax.slice(x, (0,) * (num + 2), (x.shape[0], *needed, x.shape[-1]))
    order = (0, *range(1, 2 * num, 2), *range(2, 2 * num + 1, 2), 2 * num + 1)
    pairs = [each for n, step in zip(needed, steps, strict=True) for each in (n // step, step)]
    whole = jnp.transpose(x.reshape(x.shape[0], *pairs, x.shape[-1]), order)
    x = whole.reshape(*whole.shape[: num + 1], math.prod(steps) * x.shape[-1])
    pairs = [each for k, step in zip(small, steps, strict=True) for each in (k, step)]
    w = jnp.transpose(w.reshape(*pairs, *w.shape[-2:]), (*range(0, 2 * num, 2), *range(1, 2 * num, 2), 2 * num, 2 * num + 1))
    return x, w.reshape(*small, -1, w.shape[-1])


def _shifted(x: jax.Array, corner: Any, out: list[int], steps: Any, dilation: Any) -> jax.Array:
    """The pixel at this corner of every patch."""
    first = [at * step for at, step in zip(corner, dilation, strict=True)]
    last = [at + (n - 1) * step + 1 for at, n, step in zip(first, out, steps, strict=True)]
    return lax.slice(x, (0, *first, 0), (x.shape[0], *last, x.shape[-1]), (1, *steps, 1))
