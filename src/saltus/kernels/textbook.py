"""Naive pieces for `log_definition`: straight from the definitions, sharing nothing with `Moves` or the local models."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..local import Differences, ExactDifferences, HessianDiag
from ..target import Target


def states(target: Target, *codes: jax.Array) -> tuple[jax.Array, ...]:
    """Ravelled real states."""
    values = jnp.asarray(target.space.values)
    return tuple(values[c].ravel() for c in codes)


def differences(target: Target, codes: jax.Array, new: jax.Array) -> jax.Array:
    """D(s -> s') = sum_i D_i(s'_i; s), the target's own local model evaluated the slow way."""
    values = jnp.asarray(target.space.values)
    s, s_new = values[codes], values[new]
    model = target.differences
    if isinstance(model, Differences):
        table = model.fn(target.params, s, codes)
        table = table if table.ndim == 2 else table[:, None] * jnp.arange(2, dtype=table.dtype)
        sites = jnp.arange(len(codes))
        return jnp.sum(table[sites, new] - table[sites, codes])
    if isinstance(model, ExactDifferences):
        f = target.log_prob_of
        one_site = lambda i: f(values[codes.at[i].set(new[i])]) - f(s)  # noqa: E731
        return jnp.sum(jax.vmap(one_site)(jnp.arange(len(codes))))
    linear = jnp.sum(jax.grad(target.log_prob_of)(s) * (s_new - s))
    if isinstance(model, HessianDiag):
        return linear + 0.5 * jnp.sum(jnp.diag(jax.hessian(target.log_prob_of)(s)) * (s_new - s) ** 2)
    return linear
