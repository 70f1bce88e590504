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
    change: Any = None,
    callback: Any = None,
    log: Any = None,
    report_every: int = 100,
) -> Trained:
    r"""Fit f(params, s) to data by stochastic maximum likelihood: p(s) ∝ exp f(params, s).

    $$ \theta \leftarrow \text{optimiser}(\nabla_\theta [\text{mean}_{samples} f - \text{mean}_{data} f + \text{penalty}]) $$

    Samples come from a buffer of chains that go on, `num_steps` steps of the sampler at each visit, while the model changes.

    target: `saltus.Target(f, space, params)`; params are where training begins.
    data: states, one a row: an array or, of a product, a dict of arrays; a `numpy.memmap`, of which batches are read as they come;
        an iterator or loader that gives batches of `batch_size` states; or a function of the update (0, 1, ...) that does.
        Where a checkpoint is gone on from, an iterator has to begin again at its first batch: it is advanced to where that stands.
    sampler: a kernel as it is; a class or name at the paper's settings, retuned; "auto" is NCG, retuned, and block Gibbs for
        `models.rbm(..., hidden="sampled")`.
    optimiser: of optax, with its learning-rate schedule.
    num_steps: K. batch_size: rows of data and chains of an update. buffer_size: chains.
    buffer: where chains begin: "uniform", "marginals" (each site as often as in the data), "data", or states.
    visits: "slices" of the buffer in a random order, another each pass, as the paper's code does, or "random" batches.
    reinitialise: probability that a visited chain begins anew.
    penalty: `saltus.training.L1`, `saltus.training.Energy`, a function of (params, f of the data, f of the samples), or a list of
        several.
    average: decay of a running average of the parameters, e.g. 0.999. trainable: {"coupling": True, "field": False}.
    retune: True follows the model with step size and scale, False does not, names choose, "paper" is Algorithm 5 for PAVG's
        scale; "auto" does what `sampler` says.
    stop_on_divergence: end, and say why, where the loss is not finite, f blows up, chains stand still, or data and samples drift
        apart.
    time_limit, checkpoint, checkpoint_every, overwrite: as for `saltus.sample`; the same call goes on, bit for bit, and with
        more `num_updates` makes the training longer.
    change: names of what differs from the checkpoint on purpose, such as "optimiser" (a new learning rate), "num_steps" or
        "sampler". Chains and parameters go on; the optimiser's state too, where the new one has the same.
    callback: called every `report_every` updates, and at the end, with a `saltus.training.Moment`: update, history, metrics,
        params, samples. Where it returns True training ends.
    log: path of a file of JSON lines, one for every `report_every` updates, with means over them.
    Returns `saltus.training.Trained`.
    Raises TrainingError where an argument is not usable, a batch is not, or the callback fails. What was made until then is saved
        first, and is in `error.trained`.

    seed: an integer; the same one trains the same model. progress: show a progress line on a terminal.
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
    options = dict(progress=progress, time_limit=time_limit, checkpoint=checkpoint, checkpoint_every=checkpoint_every)
    options |= dict(overwrite=overwrite, change=change, callback=callback, log=log, report_every=report_every)
    return train(job, num_updates, options, began)


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
    change: Any = None,
    callback: Any = None,
    log: Any = None,
    report_every: int = 100,
) -> Trained:
    """CD-K: as `pcd`, but the chains of every update begin at its batch of data. Biased; cheap; no chains to keep.

    target, data, sampler, optimiser, num_updates, num_steps, batch_size, penalty, average, trainable, retune, seed: as for `pcd`.
    stop_on_divergence, progress, time_limit, checkpoint, checkpoint_every, overwrite, change: as for `pcd`.
    callback, log, report_every: as for `pcd`.
    """
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
    options = dict(progress=progress, time_limit=time_limit, checkpoint=checkpoint, checkpoint_every=checkpoint_every)
    options |= dict(overwrite=overwrite, change=change, callback=callback, log=log, report_every=report_every)
    return train(job, num_updates, options, began)
