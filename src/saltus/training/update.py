r"""The compiled part of training: updates of the parameters, each after K steps of the chains it visits.

One executable serves every K, every length and every value of the parameters: all of them are dynamic. The random numbers
of an update depend on (seed, update, chain of the batch, step) only.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from .. import random
from .._compiling import program
from .._record import changed, default_float, record, static
from ..engine.keys import TRAINING, chain_key
from ..engine.loop import step_chains
from ..engine.recording import kept_codes, label_dtype
from ..kernels import Kernel, begin
from ..target import Target
from .buffer import Fresh
from .loss import combine, gradient, partition
from .models.hidden import observed_space
from .optimiser import Optimiser
from .retune import Fixed, Told
from .watch import HEALTHY, Watch

_START = 2**31 - 1  # of the key of a state's other parts: beyond every step


@record
class Plan:
    """What an update does, apart from the target and the data: numbers are leaves, functions and choices are not."""

    num_steps: jax.Array  # K
    reinitialise: jax.Array  # the probability that a visited chain begins anew
    decay: jax.Array  # of the average of the parameters
    patience: jax.Array  # of the watch
    stop: jax.Array  # whether to end where the watch says so
    words: jax.Array  # of the seed
    kernel: Kernel
    fresh: Fresh
    penalties: tuple
    optimiser: Optimiser = static()
    trained: tuple[bool, ...] = static()  # one a leaf of the parameters
    persistent: bool = static()  # False: chains begin at the data (CD)


@record
class State:
    """Everything that training carries on: a checkpoint holds it, and nothing else."""

    trained: Any
    average: Any  # of `trained`; None where none is kept
    optimiser: Any
    buffer: jax.Array  # (chains, d) codes in the smallest integer type; of CD, the last samples
    tuner: Fixed
    watch: Watch


def history_names(tuner: Fixed) -> tuple[str, ...]:
    return ("loss", "data_energy", "model_energy", "acceptance", "jump", *tuner.centre())


@program()
def advance(plan: Plan, target: Target, data: jax.Array, state: State, visits: Any, first: Any, count: Any) -> tuple:
    """`count` updates from number `first` on: (state, rows of history, updates made).

    visits: rows of the data and of the buffer, (rows, batch) each, of which the first `count` are used.
    """
    rows = {name: jnp.zeros(len(visits[0]), default_float()) for name in history_names(state.tuner)}
    frozen = partition(target.params, plan.trained)[1]

    def going(carry: Any) -> jax.Array:
        n, state, _ = carry
        return (n < count) & ~(plan.stop & (state.watch.verdict != HEALTHY))

    def update(carry: Any) -> Any:
        n, state, rows = carry
        state, row = _update(plan, target, frozen, data, state, (visits[0][n], visits[1][n]), first + n)
        return n + 1, state, {name: rows[name].at[n].set(row[name].astype(rows[name].dtype)) for name in rows}

    made, state, rows = jax.lax.while_loop(going, update, (jnp.zeros((), jnp.int32), state, rows))
    return state, rows, made


def _update(plan: Plan, target: Target, frozen: Any, data: jax.Array, state: State, visit: Any, update: jax.Array) -> tuple:
    fresh_key, tune_key, chains_key = random.split(
        random.fold_in(chain_key(plan.words, TRAINING, jnp.zeros((), jnp.int32)), update), 3
    )
    model = target.replace(params=combine(state.trained, frozen))
    positive = data[visit[0]].astype(target.space.code_dtype)
    if plan.persistent:
        start = _begin(fresh_key, plan, state.buffer[visit[1]].astype(positive.dtype))
    else:
        start = jax.vmap(plan.fresh.whole)(positive)
    samples, told = _grouped_steps(chains_key, plan, model, start, state.tuner.settings(tune_key), state.tuner.groups)

    seen = samples[:, : observed_space(target).num_sites]
    grad, energies = gradient(target, state.trained, frozen, positive, seen, plan.penalties)
    finite = _finite((grad, energies))
    changes, optimiser = plan.optimiser.update(grad, state.optimiser, state.trained)
    trained = jax.tree.map(lambda p, u: jnp.asarray(p + u, p.dtype), state.trained, changes)
    for penalty in plan.penalties:
        trained = partition(penalty.shrunk(combine(trained, frozen), update), plan.trained)[0]
    trained, optimiser = _if(finite, (trained, optimiser), (state.trained, state.optimiser))
    kept, rate, jump = samples.astype(state.buffer.dtype), jnp.mean(told.rate), jnp.mean(told.jump)
    new = State(
        trained,
        None if state.average is None else _mixed(state.average, trained, plan.decay),
        optimiser,
        state.buffer.at[visit[1]].set(kept) if plan.persistent else kept,
        state.tuner.learn(tune_key, told, plan.num_steps),
        state.watch.look(finite, energies, rate, jump, plan.patience),
    )
    row = dict(loss=energies.loss, data_energy=energies.data, model_energy=energies.model, acceptance=rate, jump=jump)
    return new, {**row, **state.tuner.centre()}


def _begin(key: jax.Array, plan: Plan, codes: jax.Array) -> jax.Array:
    """The chains as they are, some of them begun anew."""

    def anew() -> jax.Array:
        which, draws = random.split(key)
        begins = random.unit(which, (len(codes), 1)) < plan.reinitialise
        return jnp.where(begins, jax.vmap(plan.fresh.draw)(random.split(draws, len(codes))).astype(codes.dtype), codes)

    return jax.lax.cond(plan.reinitialise > 0, anew, lambda: codes)


def _grouped_steps(key: jax.Array, plan: Plan, model: Target, codes: jax.Array, settings: dict, groups: int) -> tuple:
    """(codes after K steps, what they told); each group of chains has settings of its own."""
    num = len(codes)
    keys = jax.vmap(lambda c: random.fold_in(key, c))(jnp.arange(num))
    if groups > 1:
        size = -(-num // groups)
        rows = jnp.arange(groups * size) % num  # a group that is short repeats the first chains
        keys, codes = keys[rows], codes[rows]
        settings = {name: jnp.repeat(values, size) for name, values in settings.items()}
    after, rate, jump = _steps(keys, plan, model, codes, settings, None if groups == 1 else 0)
    far = jump if groups == 1 else jax.vmap(lambda a, b: model.space.travel(a, b)[0])(codes, after)
    means = [jnp.mean(x.reshape(groups, -1), axis=1) for x in (jump, rate, far)]
    return after[:num], Told(*means)


def _steps(keys: jax.Array, plan: Plan, model: Target, codes: jax.Array, settings: dict[str, jax.Array], own: int | None) -> tuple:
    """(codes, acceptance rate, jump), of every chain; own: 0 where each has settings of its own.

    The model has changed since the last visit, so every state is begun anew at its codes: f and the local model are those of
    this model, and what else a state holds, such as a momentum, is drawn anew.
    """
    none = jnp.zeros(len(codes), default_float())
    kernel_of = lambda values: changed(plan.kernel, **values)  # noqa: E731
    one = lambda values, k, c: begin(kernel_of(values), model, c, random.fold_in(k, _START))  # noqa: E731
    states = jax.vmap(one, (own, 0, 0))(settings, keys, codes)

    def step(t: jax.Array, carry: Any) -> Any:
        states, rate, jump = carry
        each, kernel = ({}, kernel_of(settings)) if own is None else (settings, plan.kernel)
        states, info = step_chains(kernel, model, keys, t, states, each)
        return states, rate + info.acceptance_rate, jump + info.jump

    states, rate, jump = jax.lax.fori_loop(0, plan.num_steps, step, (states, none, none))
    return kept_codes(plan.kernel, model, states), rate / plan.num_steps, jump / plan.num_steps


def _finite(tree: Any) -> jax.Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


def _if(which: jax.Array, a: Any, b: Any) -> Any:
    return jax.tree.map(lambda x, y: jnp.where(which, x, y), a, b)


def _mixed(average: Any, new: Any, decay: jax.Array) -> Any:
    return jax.tree.map(lambda a, p: (decay * a + (1 - decay) * p).astype(a.dtype), average, new)


@partial(jax.jit, static_argnums=(1, 2))
def first_chains(fresh: Fresh, num: int, num_values: int, words: jax.Array) -> jax.Array:
    """(num, d) the chains of a new buffer."""
    keys = jax.vmap(lambda c: chain_key(words, TRAINING, c))(1 + jnp.arange(num))
    return jax.vmap(fresh.draw)(keys).astype(label_dtype(num_values))
