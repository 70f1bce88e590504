"""An equinox residual network trained on USPS with the defaults of `pcd`: is it stable, and do its samples look like digits?

python -m benchmarks.residual benchmarks/results/residual --updates 5000 --seconds 500

Needs SALTUS_DATA. Ends after so many seconds and goes on from its checkpoint when called again; writes samples.png and told.json.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax

import saltus
from saltus import training

SIDE, WIDTH = 16, 8


class Block(eqx.Module):
    first: eqx.nn.Conv2d
    second: eqx.nn.Conv2d

    def __init__(self, width: int, key: jax.Array):
        keys = jax.random.split(key)
        self.first, self.second = (eqx.nn.Conv2d(width, width, 3, 1, 1, key=k) for k in keys)

    def __call__(self, h: jax.Array) -> jax.Array:
        return h + self.second(jax.nn.silu(self.first(jax.nn.silu(h))))


class Residual(eqx.Module):
    """A convolution in steps of two, residual blocks on 8 x 8 places, and a linear layer."""

    first: eqx.nn.Conv2d
    blocks: list
    last: eqx.nn.Linear

    def __init__(self, key: jax.Array, width: int = WIDTH, blocks: int = 2):
        keys = jax.random.split(key, blocks + 2)
        self.first = eqx.nn.Conv2d(1, width, 4, 2, 1, key=keys[0])
        self.blocks = [Block(width, k) for k in keys[1:-1]]
        self.last = eqx.nn.Linear(width * (SIDE // 2) ** 2, "scalar", key=keys[-1])

    def __call__(self, s: jax.Array) -> jax.Array:
        h = self.first((2 * s - 1).reshape(1, SIDE, SIDE))
        for block in self.blocks:
            h = block(h)
        return self.last(jax.nn.silu(h).ravel())


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.residual")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--updates", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=500.0)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    usps: Any = saltus.datasets.load("usps")
    target = training.models.network(Residual(jax.random.key(0)), saltus.Binary(SIDE**2))
    kept = dict(checkpoint=given.folder / "checkpoint", log=given.folder / "log.jsonl", report_every=250)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = training.pcd(
            target,
            usps.train,
            optimiser=optax.adam(1e-3),
            num_updates=given.updates,
            time_limit=given.seconds,
            progress=False,
            **kept,
        )
    print(found, *(str(each.message) for each in told), sep="\n", flush=True)
    if not found.complete and not found.diverged:
        return
    chains = found.buffer[np.random.default_rng(0).choice(len(found.buffer), 60, replace=False)]
    images = np.concatenate([usps.test[:20], chains])
    training.picture(images, (SIDE, SIDE), given.folder / "samples.png", columns=20)
    distance = dict(
        samples=training.mmd(found.buffer[:1000], usps.test[:1000]), train=training.mmd(usps.train[:1000], usps.test[:1000])
    )
    numbers = dict(
        updates=found.num_updates, seconds=found.seconds, diverged=found.diverged, kernel=repr(found.kernel), mmd=distance
    )
    numbers["last 500"] = {name: float(np.mean(series[-500:])) for name, series in found.history.items()}
    (given.folder / "told.json").write_text(json.dumps(numbers, indent=1))
    print(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
