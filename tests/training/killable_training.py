"""Training in a process of its own, for tests that kill it: python killable_training.py FOLDER."""

import sys
from pathlib import Path

import numpy as np
import optax

import saltus
from saltus import training

NUM_UPDATES = 8_000
OPTIMISER = optax.adam(optax.exponential_decay(1e-2, 500, 0.9))


def data():
    return np.random.default_rng(0).choice([-1, 1], size=(60, 6))


def run(folder, **settings):
    checkpoint = dict(checkpoint=Path(folder) / "train.ckpt", checkpoint_every=0.02) if folder else {}
    given = dict(optimiser=OPTIMISER, num_updates=NUM_UPDATES, num_steps=2, batch_size=8, buffer_size=37, seed=5, progress=False)
    given |= dict(reinitialise=0.1, average=0.99, retune=True, visits="random")
    given |= dict(penalty=training.L1(0.001, of=_coupling, symmetric=True, learning_rate=1e-2))
    return training.pcd(training.models.ising(saltus.Spin(6)), data(), saltus.NCG(1.0), **{**given, **checkpoint, **settings})


def _coupling(params):
    return params["coupling"]


if __name__ == "__main__":
    run(sys.argv[1])
    print("finished")
