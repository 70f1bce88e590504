"""Persistent contrastive divergence, and plain contrastive divergence."""

from __future__ import annotations

import time
from typing import Any

from ..target import Target
from .prepare import prepare
from .result import Trained
from .train import train


def pcd(
    target: Target,
    data: Any,
    sampler: Any = "auto",
    *,
    optimiser: Any,
    num_updates: int,
    num_steps: int = 10,
    batch_size: int = 50,
    buffer_size: int = 5000,
    buffer: Any = "uniform",
    visits: str = "slices",
    reinitialise: float = 0.0,
    penalty: Any = None,
    average: float | None = None,
    trainable: Any = None,
    retune: Any = "auto",
    seed: int = 0,
    stop_on_divergence: bool = True,
    progress: bool = True,
    time_limit: float | None = None,
    checkpoint: Any = None,
    checkpoint_every: float = 10.0,
    overwrite: bool = False,
) -> Trained:
    r"""Fit f(params, s) to data by stochastic maximum likelihood: p(s) ∝ exp f(params, s).

    $$ \theta \leftarrow \text{optimiser}(\nabla_\theta [\text{mean}_{samples} f - \text{mean}_{data} f + \text{penalty}]) $$

    Samples come from a buffer of chains that go on, `num_steps` steps of the sampler at each visit, while the model changes.

    target: `saltus.Target(f, space, params)`; params are where training begins. data: states, one a row.
    sampler: a kernel as it is; a class or name at the paper's settings, retuned; "auto" is NCG, retuned.
    optimiser: of optax, with its learning-rate schedule. Pass the same object again to compile once.
    num_steps: K. batch_size: rows of data and chains of an update. buffer_size: chains.
    buffer: where chains begin: "uniform", "marginals" (each site as often as in the data), "data", or states.
    visits: "slices" of the buffer in a random order, another each pass, as the paper's code does, or "random" batches.
    reinitialise: probability that a visited chain begins anew. penalty: `saltus.training.L1`.
    average: decay of a running average of the parameters, e.g. 0.999. trainable: {"coupling": True, "field": False}.
    retune: True follows the model with step size and scale, False does not, names choose, "paper" is Algorithm 5 for PAVG's
        scale; "auto" does what `sampler` says.
    stop_on_divergence: end, and say why, where the loss is not finite, chains stand still, or data and samples drift apart.
    time_limit, checkpoint, checkpoint_every, overwrite: as for `saltus.sample`; the same call goes on, bit for bit, and with
        more `num_updates` makes the training longer.
    """
    began = time.monotonic()
    job = prepare(
        "pcd",
        target,
        data,
        sampler,
        optimiser,
        dict(num_steps=num_steps, batch_size=batch_size, buffer_size=buffer_size, visits=visits),
        dict(buffer=buffer, reinitialise=reinitialise, average=average, seed=seed),
        dict(penalty=penalty, trainable=trainable, retune=retune, stop=stop_on_divergence),
    )
    return train(job, num_updates, progress, time_limit, checkpoint, checkpoint_every, overwrite, began)


def cd(
    target: Target,
    data: Any,
    sampler: Any = "auto",
    *,
    optimiser: Any,
    num_updates: int,
    num_steps: int = 10,
    batch_size: int = 50,
    penalty: Any = None,
    average: float | None = None,
    trainable: Any = None,
    retune: Any = "auto",
    seed: int = 0,
    stop_on_divergence: bool = True,
    progress: bool = True,
    time_limit: float | None = None,
    checkpoint: Any = None,
    checkpoint_every: float = 10.0,
    overwrite: bool = False,
) -> Trained:
    """CD-K: as `pcd`, but the chains of every update begin at its batch of data. Biased; cheap; no chains to keep."""
    began = time.monotonic()
    job = prepare(
        "cd",
        target,
        data,
        sampler,
        optimiser,
        dict(num_steps=num_steps, batch_size=batch_size, buffer_size=batch_size, visits="slices"),
        dict(buffer="data", reinitialise=0.0, average=average, seed=seed),
        dict(penalty=penalty, trainable=trainable, retune=retune, stop=stop_on_divergence),
    )
    return train(job, num_updates, progress, time_limit, checkpoint, checkpoint_every, overwrite, began)
