"""Derivatives where a probability is 0: `where(y, log(p), log1p(-p))` has the derivative of the branch that is chosen.

JAX multiplies the derivative of the other branch, infinite at p = 0, by zero: NaN. Here the derivative of log at 0 is 0; where that
branch is chosen log_prob is -inf, and the state is refused whatever its derivative is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .._convolutions import rewritten


def _slope(x: jax.Array) -> jax.Array:
    """1 / x; 0 at 0."""
    return jnp.where(x == 0, 0, 1 / jnp.where(x == 0, 1, x))


@jax.custom_jvp
def _log(x: jax.Array) -> jax.Array:
    return jnp.log(x)


@jax.custom_jvp
def _log1p(x: jax.Array) -> jax.Array:
    return jnp.log1p(x)


_log.defjvp(lambda x, t: (_log(*x), t[0] * _slope(x[0])))
_log1p.defjvp(lambda x, t: (_log1p(*x), t[0] * _slope(1 + x[0])))
_OURS = {"log": _log, "log1p": _log1p}


def finite_slopes(function: Callable, *args: Any) -> jax.Array:
    """`function(*args)`, a scalar, with derivatives as above."""
    return rewritten(lambda eqn: _OURS.get(eqn.primitive.name), function, *args)[0]
