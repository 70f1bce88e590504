r"""The gradient of contrastive divergence, and which parameters it moves.

$$ \text{loss}(\theta) = \text{mean}_b f_\theta(\text{sample}_b) - \text{mean}_b f_\theta(\text{data}_b) + \text{penalty}(\theta) $$

Samples are held fixed: the gradient of the loss is then a stochastic gradient of the negative log-likelihood.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .._record import record
from ..errors import TrainingError
from ..target import Target
from .models.hidden import observed_log_prob, observed_space


@record
class Energies:
    """Mean of -f over the data batch and over the samples, the standard deviation of f within the data batch, and the loss."""

    data: jax.Array
    model: jax.Array
    spread: jax.Array
    loss: jax.Array


def gradient(target: Target, trained: Any, frozen: Any, data: jax.Array, samples: jax.Array, penalties: tuple) -> tuple:
    """(gradient with respect to `trained`, loss, f of the data, f of the samples).

    data, samples: codes, (batch, d), of the observed part.
    """
    states, log_prob = observed_space(target).embed(jnp.concatenate([data, samples])), observed_log_prob(target)

    def loss(trained: Any) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        params = combine(trained, frozen)
        f = jax.vmap(lambda s: log_prob(params, s))(states)
        of_data, of_model = f[: len(data)], f[len(data) :]
        total = jnp.mean(of_model) - jnp.mean(of_data)
        for penalty in penalties:
            total = total + penalty.added(params, of_data, of_model)
        return total, (f, total)

    grad, (f, value) = jax.grad(loss, has_aux=True)(trained)
    return grad, value, f[: len(data)], f[len(data) :]


def mask(params: Any, trainable: Any) -> tuple[bool, ...]:
    """One bool a leaf: whether it is trained. `trainable` is a tree of bools or the upper part of one; None trains all floats."""
    leaves, tree = jax.tree.flatten(params)
    floats = [jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in leaves]
    if trainable is None:
        return tuple(floats)
    expected = 'True and False for parts of the parameters, e.g. {"coupling": True, "field": False}'
    try:
        wanted = jax.tree.broadcast(trainable, params)
    except ValueError as cause:
        raise TrainingError("`trainable` does not fit the parameters.", expected=expected, found=repr(trainable)) from cause
    flags = jax.tree.leaves(wanted)
    if len(flags) != len(leaves) or any(not isinstance(flag, bool) for flag in flags):
        raise TrainingError("`trainable` does not fit the parameters.", expected=expected, found=repr(trainable))
    if not any(flag and is_float for flag, is_float in zip(flags, floats, strict=True)):
        raise TrainingError("`trainable` leaves nothing to train.", expected="at least one True", found=f"{trainable!r} for {tree}")
    return tuple(flag and is_float for flag, is_float in zip(flags, floats, strict=True))


def partition(params: Any, mask: tuple[bool, ...]) -> tuple[Any, Any]:
    """(trained, frozen): two trees like `params`, with None where a leaf is in the other."""
    leaves, tree = jax.tree.flatten(params)
    pick = lambda wanted: [leaf if flag is wanted else None for leaf, flag in zip(leaves, mask, strict=True)]  # noqa: E731
    return jax.tree.unflatten(tree, pick(True)), jax.tree.unflatten(tree, pick(False))


def combine(trained: Any, frozen: Any) -> Any:
    """`partition` undone."""
    return jax.tree.map(lambda a, b: b if a is None else a, trained, frozen, is_leaf=lambda x: x is None)
