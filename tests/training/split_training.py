"""Training in a process of its own, in two shares an update; prints a digest of what was made."""

import hashlib
import json

import jax
import numpy as np
import optax

import saltus
from saltus import training
from saltus.training import split

split._LEAST = 0.0


def made(found):
    """A digest of all numbers."""
    tree = (found.params, found.average_params, found.kernel, found.buffer, dict(sorted(found.history.items())))
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    model = training.models.conv_ebm(width=1)
    data = np.random.default_rng(0).integers(2, size=(100, 256))
    given = dict(optimiser=optax.adam(1e-3), num_updates=6, num_steps=3, batch_size=16, buffer_size=64, average=0.9)
    found = training.pcd(model, data, saltus.NCG(0.2), retune=True, progress=False, **given)
    print(json.dumps({"devices": jax.device_count(), "made": made(found)}))
