"""A boundary that XLA:CPU does not fuse across."""

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ._record import is_concrete


def total(x: jax.Array) -> jax.Array:
    """sum_i x_i as a product with ones: of many chains at once a matrix product, several times as fast as XLA:CPU's own sums.

    A product adds up term by term, and of 10^6 terms in a row five digits would be left: long vectors are folded first.
    """
    x = folded(operator.add, x, 16 if len(x) > 1024 else 8, 0) if len(x) >= 256 else x
    return jnp.dot(x, jnp.ones_like(x), precision="highest") if len(x) <= 1024 else jnp.sum(x)


def folded(combine: Callable[[jax.Array, jax.Array], jax.Array], x: jax.Array, most: int, nothing: float) -> jax.Array:
    """x cut into up to `most` equal pieces, which are combined into one; padded with `nothing` where its length has no divisor."""
    num = max(n for n in range(1, most + 1) if len(x) % n == 0)
    if 2 * num < most:
        num, x = most, jnp.pad(x, (0, -len(x) % most), constant_values=nothing)
    pieces = jnp.split(x, num)
    while len(pieces) > 1:
        pieces = [*map(combine, pieces[0:-1:2], pieces[1::2]), *pieces[len(pieces) // 2 * 2 :]]
    return pieces[0]


def stored(compute: Callable[..., jax.Array], *arrays: Any) -> jax.Array:
    """`compute(*arrays)`, computed once, on its own, and stored.

    Left to itself, XLA:CPU fuses cheap-looking operations into every place that uses them: random numbers are then computed
    several times, and a stencil's shifts (one branch per element) make whatever they are fused into run one element at a
    time. It drops `optimization_barrier` before it fuses, but fuses nothing into or out of a branch, and drops the barrier
    too late to see which branch is taken.
    """
    if jax.default_backend() != "cpu" or is_concrete(arrays):  # nothing is fused outside jit
        return compute(*arrays)
    traced_once = jax.jit(compute)
    # zeros_like(compute(...)) is plain zeros, of the type that shard_map expects of both branches
    return lax.cond(lax.optimization_barrier(True), traced_once, lambda *a: jnp.zeros_like(traced_once(*a)), *arrays)
