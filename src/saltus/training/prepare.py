"""From the arguments of `pcd` and `cd` to what the compiled update needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from .._record import default_float
from ..engine.arguments import read_flag
from ..engine.keys import seed_words
from ..kernels import Kernel
from ..target import Target
from .buffer import Visits, fresh_chains
from .checkpoint import Asked
from .choice import read_kernel
from .data import Source, read_source
from .loss import mask, partition
from .models.hidden import observed_space
from .optimiser import read_optimiser
from .penalty import read_penalties
from .retune import read_retune
from .settings import TrainingSettings, check_defined, check_rows, read_model, read_settings
from .update import Recipe, State, first_chains
from .watch import watch

_BUFFER = 1  # the stream of row numbers; 0 is that of the data


@dataclass
class Job:
    """Everything that is needed for any number of updates."""

    settings: TrainingSettings
    recipe: Recipe
    target: Target
    source: Source
    state: State
    visits: Visits  # of the buffer
    asked: Asked  # for the checkpoint

    @property
    def kernel(self) -> Kernel:
        return self.recipe.kernel


def prepare(
    method: str, target: Any, data: Any, sampler: Any, optimiser: Any, sizes: dict, start: dict, choices: dict[str, Any]
) -> Job:
    target = read_model(target)
    numbers = {name: start[name] for name in ("reinitialise", "average", "seed")}
    settings = read_settings(method, **sizes, **numbers)
    source = read_source(observed_space(target), data, settings.batch_size, settings.seed)
    check_rows("data", source.rows(), settings.batch_size)
    rows = source.sample
    kernel, tuned = read_kernel(sampler, target, rows)
    retune = tuned if isinstance(choices["retune"], str) and choices["retune"] == "auto" else choices["retune"]
    tuner = read_retune(retune, kernel, target.space)
    flags = mask(target.params, choices["trainable"])
    trained = partition(target.params, flags)[0]
    optimiser, opening = read_optimiser(optimiser, trained)
    penalties = read_penalties(choices["penalty"], target.params)
    check_defined(target, rows)

    words, persistent = jnp.asarray(seed_words(settings.seed)), method == "pcd"
    fresh = fresh_chains(target, start["buffer"], rows)
    recipe = Recipe(
        num_steps=jnp.asarray(settings.num_steps, jnp.int32),
        reinitialise=jnp.asarray(settings.reinitialise, default_float()),
        decay=jnp.asarray(settings.average or 0.0, default_float()),
        patience=jnp.asarray(2 * settings.buffer_size // settings.batch_size, jnp.int32),
        stop=jnp.asarray(read_flag(choices["stop"], "stop_on_divergence")),
        words=words,
        kernel=kernel,
        fresh=fresh,
        penalties=penalties,
        optimiser=optimiser,
        trained=flags,
        persistent=persistent,
    )
    chains = first_chains(fresh, settings.buffer_size, target.space.num_values, words)
    average = trained if settings.average is not None else None
    state = State(trained, average, opening, chains, tuner, watch(observed_space(target).num_values_per_site))
    visits = Visits(settings.visits, settings.buffer_size, settings.batch_size, settings.seed, _BUFFER)
    other = dict(penalty=_marks(penalties, target.params), trained=flags, retune=retune)
    other |= dict(buffer=start["buffer"] if isinstance(start["buffer"], str) else "states")
    asked = Asked(settings, target, source.mark, kernel, optimiser, trained, other)
    return Job(settings, recipe, target, source, state, visits, asked)


def _marks(penalties: tuple, params: Any) -> str | None:
    """What tells these penalties from others; of one, as files of before have it."""
    return ", ".join(penalty.mark(params) for penalty in penalties) or None
