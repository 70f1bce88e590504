"""What is timed: steps of a sampler, and the bare gradient of the same log-probability, each in one compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from saltus import Kernel, Target, random

from ..internals import each_chain


def start(target: Target, num_chains: int) -> jax.Array:
    """(chains, d) codes, drawn uniformly; of the type that a run has."""
    codes = jax.vmap(target.space.random)(jax.random.split(jax.random.key(0), num_chains))
    return codes.astype(target.space.code_dtype)


class Loop:
    """`body(constants, t, state)` in one executable for any number of steps; the state goes on from call to call."""

    def __init__(self, body: Callable[[Any, jax.Array, Any], Any], state: Any, *constants: Any):
        @partial(jax.jit, donate_argnums=1)
        def steps(number: jax.Array, state: Any, constants: Any) -> Any:
            return jax.lax.fori_loop(0, number, lambda t, state: body(constants, t, state), state)

        self._steps, self._state, self._constants = steps.lower(1, state, constants).compile(), state, constants

    def __call__(self, number: int) -> None:
        """So many steps, and wait until they are done."""
        self._state = jax.block_until_ready(self._steps(number, self._state, self._constants))

    def bytes(self) -> int:
        """Memory of the whole loop: state, constants and everything in between."""
        used: Any = self._steps.memory_analysis()
        return used.argument_size_in_bytes + used.temp_size_in_bytes


def sampler_loop(kernel: Kernel, target: Target, num_chains: int) -> Loop:
    """Steps of all chains, with what a run sums up on the way."""
    points = jax.jit(jax.vmap(lambda target, codes: kernel.init(target, codes), (None, 0)))(target, start(target, num_chains))
    keys = random.split(jax.random.key(1), num_chains)

    def body(constants: Any, t: jax.Array, state: Any) -> Any:
        (kernel, target), (keys, points, rate, jump, undefined) = constants, state
        points, info = each_chain(kernel, target, lambda key, x: kernel.step(random.fold_in(key, t), target, x), keys, points)
        return keys, points, rate + info.acceptance_rate, jump + info.jump, undefined + info.undefined

    zero = jnp.zeros(num_chains)
    return Loop(body, (keys, points, zero, zero + 0, jnp.zeros(num_chains, jnp.int32)), kernel, target)


def bare_loop(target: Target, num_chains: int) -> Loop:
    """The value and gradient of log_prob, and nothing else: s goes where the gradient points, so nothing can be hoisted."""
    codes = start(target, num_chains)
    low, high = float(target.space.values.min()), float(target.space.values.max())

    def body(constants: Any, t: jax.Array, state: Any) -> Any:
        (target,), (s, total) = constants, state
        f, g = jax.vmap(jax.value_and_grad(target.log_prob_of))(s)
        return jnp.where(g > 0, high, low).astype(s.dtype), total + f

    return Loop(body, (target.space.embed(codes), jnp.zeros(num_chains)), target)
