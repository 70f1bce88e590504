r"""NCG as one would first write it in JAX: `jax.random`, a Gumbel draw per value, log_softmax, tables for every space."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from saltus import Target

from .loops import Loop, start


def textbook_ncg(target: Target, step_size: float, num_chains: int) -> Loop:
    """value and gradient are kept from step to step, as in saltus: what differs is all the rest."""
    values = jnp.asarray(target.space.values.reshape(target.space.num_values, -1), jnp.float32)  # (k, m)
    gradient = jax.value_and_grad(lambda s: target.log_prob_of(s.reshape(target.space.shape)))

    def log_proposal(s: jax.Array, g: jax.Array) -> jax.Array:
        away = values[None] - s[:, None]
        return jax.nn.log_softmax(0.5 * jnp.sum(g[:, None] * away, -1) - jnp.sum(away**2, -1) / (2 * step_size))

    def step(key: jax.Array, state: tuple) -> tuple:
        codes, s, f, g = state
        move_key, accept_key = jax.random.split(key)
        forward = log_proposal(s, g)
        new = jax.random.categorical(move_key, forward)
        s_new = values[new]
        f_new, g_new = gradient(s_new)
        backward = log_proposal(s_new, g_new)
        each = jnp.take_along_axis(backward, codes[:, None], 1) - jnp.take_along_axis(forward, new[:, None], 1)
        accept = jnp.log(jax.random.uniform(accept_key)) < f_new - f + jnp.sum(each)
        return jax.tree.map(lambda a, b: jnp.where(accept, a, b), (new, s_new, f_new, g_new), state)

    def body(_: Any, t: jax.Array, state: Any) -> Any:
        keys, chains = state
        return keys, jax.vmap(lambda key, x: step(jax.random.fold_in(key, t), x))(keys, chains)

    codes = start(target, num_chains).astype(jnp.int32)
    s = values[codes]
    f, g = jax.vmap(gradient)(s)
    return Loop(body, (jax.random.split(jax.random.key(1), num_chains), (codes, s, f, g)))
