"""A user's own convolutional network, of equinox, under pcd: an update over its bare gradients."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import jax
import numpy as np

import saltus

from .lines import Line

_SIDE, _WIDTH, _BATCH, _STEPS = 16, 16, 50, 5
_FEW, _MANY, _REPEATS = 4, 24, 5


def five_layers() -> Any:
    """Five convolutions and a linear layer, as one writes them with equinox."""
    import equinox as eqx

    class Network(eqx.Module):
        layers: list
        last: eqx.nn.Linear

        def __init__(self, key: jax.Array):
            keys = jax.random.split(key, 6)
            shapes = ((1, 1, 1), (1, 2, 2), (2, 2, 1), (2, 4, 2), (4, 4, 1))
            self.layers = [
                eqx.nn.Conv2d(1 if i == 0 else a * _WIDTH, b * _WIDTH, 3 if step == 1 else 4, step, 1, key=keys[i])
                for i, (a, b, step) in enumerate(shapes)
            ]
            self.last = eqx.nn.Linear(4 * _WIDTH * (_SIDE // 4) ** 2, 1, key=keys[5])

        def __call__(self, s: jax.Array) -> jax.Array:
            h = (2 * s - 1).reshape(1, _SIDE, _SIDE)
            for layer in self.layers:
                h = jax.nn.silu(layer(h))
            return self.last(h.ravel())[0]

    return Network(jax.random.key(0))


def user_network() -> list[Line]:
    """K = 5: seconds of an update / (K + 2) values and gradients of the batch, jitted outside a loop."""
    import optax

    module = five_layers()
    target = saltus.training.models.network(module, saltus.Binary(_SIDE**2))
    data = np.random.default_rng(0).integers(2, size=(500, _SIDE**2))
    optimiser = optax.adam(1e-4)
    asked = dict(num_steps=_STEPS, batch_size=_BATCH, buffer_size=500, retune=False, progress=False)
    train = partial(saltus.training.pcd, target, data, saltus.NCG(0.2), optimiser=optimiser, **asked)
    bare = jax.jit(jax.vmap(jax.value_and_grad(lambda s: module(s))))
    states = jax.numpy.asarray(data[:_BATCH], jax.numpy.float32)
    for number in (_FEW, _MANY):
        train(num_updates=number)
    jax.block_until_ready(bare(states))
    values = [_update_seconds(train) / ((_STEPS + 2) * _bare_seconds(bare, states)) for _ in range(_REPEATS)]
    return [Line("user's network in pcd: update / gradients", tuple(values), 3)]


def _update_seconds(train: Any) -> float:
    spent = []
    for number in (_FEW, _MANY):
        began = time.perf_counter()
        train(num_updates=number)
        spent.append(time.perf_counter() - began)
    return max(spent[1] - spent[0], 1e-9) / (_MANY - _FEW)


def _bare_seconds(bare: Any, states: jax.Array, num: int = 20) -> float:
    began = time.perf_counter()
    for _ in range(num):
        jax.block_until_ready(bare(states))
    return (time.perf_counter() - began) / num
