"""Block-Gibbs PCD of an RBM: saltus beside a lean JAX script that does the same and nothing else.

python -m benchmarks.rbm                      784 x 500, K = 1, batches of 100: milliseconds an update, in turn
python -m benchmarks.rbm 256 200 --updates 50 another size
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import saltus
from saltus import training

BATCH, CHAINS = 100, 1000


@partial(jax.jit, static_argnums=(0, 6))
def lean(optimiser: Any, params: Any, state: Any, buffer: Any, data: Any, key: Any, updates: int) -> Any:
    """`updates` updates by PCD-1, as one would write them for this model alone."""

    def update(carry: Any, key: Any) -> Any:
        params, state, buffer = carry
        which, rows, hidden, visible = jax.random.split(key, 4)
        chains = jax.random.randint(which, (BATCH,), 0, CHAINS)
        x = data[jax.random.randint(rows, (BATCH,), 0, len(data))].astype(jnp.float32)
        v = buffer[chains].astype(jnp.float32)
        h = jax.random.bernoulli(hidden, jax.nn.sigmoid(params["c"] + v @ params["W"])).astype(jnp.float32)
        v = jax.random.bernoulli(visible, jax.nn.sigmoid(params["b"] + h @ params["W"].T)).astype(jnp.float32)
        of_data, of_model = (jax.nn.sigmoid(params["c"] + s @ params["W"]) for s in (x, v))
        grad = {"W": (v.T @ of_model - x.T @ of_data) / BATCH, "b": (v - x).mean(0), "c": (of_model - of_data).mean(0)}
        changes, state = optimiser.update(grad, state, params)
        return (optax.apply_updates(params, changes), state, buffer.at[chains].set(v.astype(buffer.dtype))), None

    return jax.lax.scan(update, (params, state, buffer), jax.random.split(key, updates))[0]


def measure(visible: int, hidden: int, updates: int, rounds: int) -> None:
    """Milliseconds an update of either, the least of `rounds` measured in turn, and their ratio."""
    rng, optimiser = np.random.default_rng(0), optax.adam(1e-3)
    data = (rng.random((5000, visible)) < rng.random(visible)).astype(np.uint8)
    model = training.models.rbm(saltus.Binary(visible), hidden, hidden="sampled")
    params = dict(zip(("W", "b", "c"), (model.params[name] for name in ("weights", "visible", "hidden")), strict=True))
    carry = (params, optimiser.init(params), jnp.zeros((CHAINS, visible), jnp.uint8))
    settings = dict(optimiser=optimiser, num_updates=updates, num_steps=1, batch_size=BATCH, buffer_size=CHAINS, progress=False)
    rows, key, times = jnp.asarray(data), jax.random.key(0), []
    jax.block_until_ready(lean(optimiser, *carry, rows, key, updates))
    training.pcd(model, data, **settings)
    for _ in range(rounds):
        began = time.perf_counter()
        jax.block_until_ready(lean(optimiser, *carry, rows, key, updates))
        bare = time.perf_counter() - began
        times.append((bare / updates, training.pcd(model, data, **settings).seconds / updates))
        print(f"lean {1e3 * times[-1][0]:.2f} ms, saltus {1e3 * times[-1][1]:.2f} ms", flush=True)
    least = np.min(times, axis=0)
    print(f"{visible} x {hidden}: lean {1e3 * least[0]:.2f} ms, saltus {1e3 * least[1]:.2f} ms, ratio {least[1] / least[0]:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m benchmarks.rbm")
    parser.add_argument("sizes", nargs="*", type=int, default=[784, 500])
    parser.add_argument("--updates", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    measure(*given.sizes, given.updates, given.rounds)
