"""A boundary that XLA:CPU does not fuse across."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ._record import is_concrete


def total(x: jax.Array) -> jax.Array:
    """sum_i x_i as a product with ones: of many chains at once a matrix product, several times as fast as XLA:CPU's own sums."""
    return jnp.dot(x, jnp.ones_like(x), precision="highest")


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
