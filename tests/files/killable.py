"""A run in a process of its own, for tests that kill it: python killable.py FOLDER [store]."""

import os
import sys
from pathlib import Path

import jax.numpy as jnp

import saltus

# Some seconds of steps, which take three times as long where `make test` compiles without optimising.
NUM_DRAWS, NUM_WARMUP = 300_000 if os.environ.get("SALTUS_QUICK_COMPILATION") == "1" else 1_000_000, 5_000


def target():
    return saltus.Target(lambda s: 0.5 * jnp.sum(s[1:] * s[:-1]) - 0.1 * jnp.sum(s), saltus.Spin(6))


def run(folder, **settings):
    given = dict(num_draws=NUM_DRAWS, num_warmup=NUM_WARMUP, num_chains=2, seed=5, keep_warmup=True, progress=False)
    checkpoint = dict(checkpoint=Path(folder) / "run.ckpt", checkpoint_every=0.02) if folder else {}
    return saltus.sample(target(), saltus.UniformMH(2), **{**given, **checkpoint, **settings})


def raced(folder, **settings):
    """The same by a race: what it chooses is frozen in the checkpoint, together with the states the chains begin at."""
    given = dict(num_draws=100_000, num_warmup=2_000, num_chains=2, seed=5, progress=False)
    checkpoint = dict(checkpoint=Path(folder) / "run.ckpt", checkpoint_every=0.02) if folder else {}
    return saltus.sample(target(), **{**given, **checkpoint, **settings})


if __name__ == "__main__":
    store = {"store": Path(sys.argv[1]) / "run.zarr"} if "store" in sys.argv else {}
    (raced if "raced" in sys.argv else run)(sys.argv[1], **store)
    print("finished")
