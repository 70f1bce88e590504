"""Block-Gibbs PCD of an RBM: saltus beside a lean JAX script that does the same and nothing else.

python -m benchmarks.rbm                      784 x 500, K = 1, batches of 100: milliseconds an update, in turn
python -m benchmarks.rbm 256 200 --updates 50 another size
python -m benchmarks.rbm 256 200 --usps benchmarks/results/rbm --seconds 120 --seeds 3
    both trained on USPS for so many processor seconds, and the log-likelihood of its test images under either; what is in the
    folder is not run again. Needs SALTUS_DATA.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
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


def compare(hidden: int, folder: Path, seconds: float, seeds: int) -> None:
    """Test log-likelihoods after equal processor time, seed by seed."""
    folder.mkdir(parents=True, exist_ok=True)
    usps: Any = saltus.datasets.load("usps")
    for seed in range(seeds):
        for who, train in (("saltus", train_saltus), ("lean", train_lean)):
            file = folder / f"{who}-{hidden}-{seconds:g}s-seed{seed}.json"
            if not file.exists():
                target, chains, updates, spent = train(usps.train, hidden, seconds, seed)
                found = training.log_likelihood(target, usps.test, base=usps.train, samples=chains, seed=seed)
                told = dict(who=who, seed=seed, updates=updates, processor_seconds=spent, mean=found.mean, error=found.error)
                told |= dict(apart=found.apart, trusted=found.trusted, told=repr(found))
                file.write_text(json.dumps(told, indent=1))
            print(file.stem, _line(json.loads(file.read_text())), flush=True)
    found = {
        who: [json.loads((folder / f"{who}-{hidden}-{seconds:g}s-seed{seed}.json").read_text())["mean"] for seed in range(seeds)]
        for who in ("saltus", "lean")
    }
    means = {who: float(np.mean(each)) for who, each in found.items()}
    print(
        f"mean of {seeds} seeds: saltus {means['saltus']:.2f}, lean {means['lean']:.2f}, gap {means['saltus'] - means['lean']:+.2f}"
    )


def _line(told: dict[str, Any]) -> str:
    rate = 1e3 * told["processor_seconds"] / told["updates"]
    return f"{told['mean']:.2f} ± {told['error']:.2f} nats, {told['updates']} updates, {rate:.2f} ms each; {told['told']}"


def train_saltus(data: np.ndarray, hidden: int, seconds: float, seed: int) -> tuple[saltus.Target, np.ndarray, int, float]:
    """(model, its chains, updates, processor seconds); compiled before the clock starts, as the lean one is."""
    model = training.models.rbm(saltus.Binary(data.shape[1]), hidden, hidden="sampled", data=data, seed=seed)
    settings = dict(optimiser=optax.adam(1e-3), num_steps=1, batch_size=BATCH, buffer_size=CHAINS, progress=False, seed=seed)
    settings |= dict(buffer="marginals")
    training.pcd(model, data, num_updates=1, **settings)
    began = time.process_time()
    late = lambda moment: time.process_time() - began > seconds  # noqa: E731
    found = training.pcd(model, data, num_updates=10**8, callback=late, report_every=_CHUNK, **settings)
    return found.target, found.buffer["v"], found.num_updates, time.process_time() - began


def train_lean(data: np.ndarray, hidden: int, seconds: float, seed: int) -> tuple[saltus.Target, np.ndarray, int, float]:
    rng, optimiser, visible = np.random.default_rng(seed), optax.adam(1e-3), data.shape[1]
    model = training.models.rbm(saltus.Binary(visible), hidden, data=data, seed=seed)
    params = dict(zip(("W", "b", "c"), (model.params[name] for name in ("weights", "visible", "hidden")), strict=True))
    chains = jnp.asarray(rng.random((CHAINS, visible)) < data.mean(0), jnp.uint8)
    carry, rows, updates = (params, optimiser.init(params), chains), jnp.asarray(data, jnp.uint8), 0
    jax.block_until_ready(lean(optimiser, *carry, rows, jax.random.key(0), _CHUNK))
    began = time.process_time()
    while time.process_time() - began < seconds:
        carry = jax.block_until_ready(lean(optimiser, *carry, rows, jax.random.fold_in(jax.random.key(seed), updates), _CHUNK))
        updates += _CHUNK
    params = dict(weights=carry[0]["W"], visible=carry[0]["b"], hidden=carry[0]["c"])
    return model.replace(params=params), np.asarray(carry[2]), updates, time.process_time() - began


_CHUNK = 200  # updates of a call of the lean script, and between two looks at the clock


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m benchmarks.rbm")
    parser.add_argument("sizes", nargs="*", type=int, default=[784, 500])
    parser.add_argument("--updates", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--usps", type=Path)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    if given.usps:
        compare(given.sizes[1], given.usps, given.seconds, given.seeds)
    else:
        measure(*given.sizes, given.updates, given.rounds)
