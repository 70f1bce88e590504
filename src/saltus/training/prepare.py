"""From the arguments of `pcd` and `cd` to what the compiled update needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import default_float
from ..engine.arguments import read_flag
from ..engine.keys import seed_words
from ..errors import TrainingError
from ..kernels import Kernel
from ..target import Target
from .buffer import Visits, fresh_chains
from .checkpoint import asked
from .choice import read_kernel
from .loss import mask, partition
from .optimiser import read_optimiser
from .penalty import L1
from .retune import read_retune
from .settings import Settings, check_defined, read_data, read_model, read_settings
from .update import Plan, State, first_chains
from .watch import watch

_DATA, _BUFFER = 0, 1  # the streams of row numbers


@dataclass
class Job:
    """Everything that is needed for any number of updates."""

    settings: Settings
    plan: Plan
    target: Target
    data: jax.Array
    state: State
    visits: tuple[Visits, Visits]
    mark: tuple[dict[str, Any], dict[str, np.ndarray]]  # of the checkpoint

    @property
    def kernel(self) -> Kernel:
        return self.plan.kernel


def prepare(
    method: str, target: Any, data: Any, sampler: Any, optimiser: Any, sizes: dict, start: dict, choices: dict[str, Any]
) -> Job:
    target = read_model(target)
    rows = read_data(target.space, data)
    numbers = {name: start[name] for name in ("reinitialise", "average", "seed")}
    settings = read_settings(method, rows, **sizes, **numbers)
    kernel, tuned = read_kernel(sampler, target, rows)
    retune = tuned if isinstance(choices["retune"], str) and choices["retune"] == "auto" else choices["retune"]
    tuner = read_retune(retune, kernel, target.space)
    flags = mask(target.params, choices["trainable"])
    trained = partition(target.params, flags)[0]
    opening = read_optimiser(optimiser, trained)
    penalty = _read_penalty(choices["penalty"], target.params)
    check_defined(target, rows)

    words, persistent = jnp.asarray(seed_words(settings.seed)), method == "pcd"
    fresh = fresh_chains(target.space, start["buffer"], rows)
    plan = Plan(
        num_steps=jnp.asarray(settings.num_steps, jnp.int32),
        reinitialise=jnp.asarray(settings.reinitialise, default_float()),
        decay=jnp.asarray(settings.average or 0.0, default_float()),
        patience=jnp.asarray(2 * settings.buffer_size // settings.batch_size, jnp.int32),
        stop=jnp.asarray(read_flag(choices["stop"], "stop_on_divergence")),
        words=words,
        kernel=kernel,
        fresh=fresh,
        penalty=penalty,
        optimiser=optimiser,
        trained=flags,
        persistent=persistent,
    )
    chains = first_chains(fresh, settings.buffer_size, target.space.num_values, words)
    average = trained if settings.average is not None else None
    state = State(trained, average, opening, chains, tuner, watch())
    visits = (
        Visits("slices", len(rows), settings.batch_size, settings.seed, _DATA),
        Visits(settings.visits, settings.buffer_size, settings.batch_size, settings.seed, _BUFFER),
    )
    other = dict(penalty=penalty.mark(target.params) if penalty else None, trained=flags, retune=retune)
    other |= dict(buffer=start["buffer"] if isinstance(start["buffer"], str) else "states")
    mark = asked(settings, target, rows, kernel, optimiser, trained, other)
    return Job(settings, plan, target, jnp.asarray(rows), state, visits, mark)


def _read_penalty(penalty: Any, params: Any) -> L1 | None:
    if penalty is None:
        return None
    if not isinstance(penalty, L1):
        hint = "other penalties can be part of f, or of the optimiser (optax.add_decayed_weights)"
        raise TrainingError(
            "`penalty` is not known.", expected="saltus.training.L1(weight, of=...)", found=repr(penalty), hint=hint
        )
    penalty.chosen(params)
    return penalty
