"""Training in a process of its own, for tests that kill it: python killable_training.py FOLDER UPDATES.

With a callback, a log, data from a function of the update, and, for the second half, another optimiser and K.
"""

import sys
from pathlib import Path

import numpy as np
import optax

import saltus
from saltus import training

OPTIMISER = optax.adam(optax.exponential_decay(1e-2, 500, 0.9))
OTHER = optax.sgd(1e-3, momentum=0.9)
STATES = np.random.default_rng(0).choice([-1, 1], size=(60, 6))


def data(update):
    return STATES[np.random.default_rng([1, update]).integers(60, size=8)]


class Loader:
    """Batches in order, pass after pass."""

    def __iter__(self):
        return iter(np.random.default_rng(2).permutation(STATES)[:56].reshape(7, 8, 6))


def look(moment):
    assert len(moment.history["loss"]) == moment.update
    assert np.isfinite(moment.params["coupling"]).all()


def run(folder, updates, *, data=data, **settings):
    """All updates in two calls, the second with another optimiser and K; where the first has been made, it is not made again."""
    given = dict(batch_size=8, buffer_size=37, seed=settings.pop("seed", 5), progress=False, callback=look, report_every=500)
    given |= dict(reinitialise=0.1, average=0.99, retune=True, visits="random")
    given |= dict(penalty=training.L1(0.001, of=_coupling, symmetric=True, learning_rate=1e-2))
    folder = Path(folder)
    given |= dict(checkpoint=folder / "train.ckpt", checkpoint_every=0.02, log=folder / "log.jsonl")
    model = training.models.ising(saltus.Spin(6))
    changed = folder / "changed"
    if not changed.exists():
        half = dict(optimiser=OPTIMISER, num_updates=updates // 2, num_steps=2)
        training.pcd(model, data, saltus.NCG(1.0), **{**given, **half})
        changed.touch()
    whole = dict(optimiser=OTHER, num_updates=updates, num_steps=3, change=("optimiser", "num_steps"))
    return training.pcd(model, data, saltus.NCG(1.0), **{**given, **whole, **settings})


def _coupling(params):
    return params["coupling"]


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]))
    print("finished")
