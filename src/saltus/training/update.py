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
from .loss import Energies, combine, gradient, partition
from .models.hidden import observed_space
from .optimiser import Optimiser
from .retune import Fixed, Told
from .watch import HEALTHY, Watch

_START = 2**31 - 1  # of the key of a state's other parts: beyond every step


@record
class Recipe:
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
def advance(recipe: Recipe, target: Target, data: jax.Array, state: State, visits: Any, first: Any, count: Any) -> tuple:
    """`count` updates from number `first` on: (state, rows of history, updates made).

    visits: rows of the data and of the buffer, (rows, batch) each, of which the first `count` are used.
    """
    rows = {name: jnp.zeros(len(visits[0]), default_float()) for name in history_names(state.tuner)}

    def going(carry: Any) -> jax.Array:
        n, state, _ = carry
        return (n < count) & ~(recipe.stop & (state.watch.verdict != HEALTHY))

    def update(carry: Any) -> Any:
        n, state, rows = carry
        state, row = _update(recipe, target, data, state, (visits[0][n], visits[1][n]), first + n)
        return n + 1, state, {name: rows[name].at[n].set(row[name].astype(rows[name].dtype)) for name in rows}

    made, state, rows = jax.lax.while_loop(going, update, (jnp.zeros((), jnp.int32), state, rows))
    return state, rows, made


@record
class Share:
    """What chains of an update begin with, and as many rows of data; a group has its share."""

    data: jax.Array  # (rows, d) codes of the observed part
    codes: jax.Array  # (chains, d); where they are more than rows, the last are copies, and their samples are not used
    keys: jax.Array
    settings: dict[str, jax.Array]  # {name: value}, or (chains,) values where each chain has its own

    def split(self, num: int) -> list[Share]:
        """In `num` equal shares."""
        parts = jax.tree.map(lambda x: x.reshape(num, -1, *x.shape[1:]) if x.ndim else jnp.stack([x] * num), self)
        return [jax.tree.map(lambda x, n=n: x[n], parts) for n in range(num)]


@record
class Part:
    """What came of a share: its chains after K steps, what these told, and f, the loss and its gradient at both batches."""

    codes: jax.Array
    rate: jax.Array  # (chains,)
    jump: jax.Array
    far: jax.Array  # between where a chain began and where it is
    of_data: jax.Array  # (rows,)
    of_samples: jax.Array
    loss: jax.Array
    grad: Any


def _update(recipe: Recipe, target: Target, data: jax.Array, state: State, visit: Any, update: jax.Array) -> tuple:
    share = share_of(recipe, target, data, state, visit, update)
    return closed(recipe, target, state, visit[1], update, [stepped_share(recipe, target, state.trained, share)])


def _keys(recipe: Recipe, update: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """For chains that begin anew, for tuning, for the steps."""
    fresh, tune, chains = random.split(random.fold_in(chain_key(recipe.words, TRAINING, jnp.zeros((), jnp.int32)), update), 3)
    return fresh, tune, chains


def share_of(recipe: Recipe, target: Target, data: jax.Array, state: State, visit: Any, update: jax.Array) -> Share:
    """All that an update visits."""
    fresh_key, tune_key, key = _keys(recipe, update)
    positive = data[visit[0]].astype(target.space.code_dtype)
    if recipe.persistent:
        codes = _begin(fresh_key, recipe, state.buffer[visit[1]].astype(positive.dtype))
    else:
        codes = jax.vmap(recipe.fresh.whole)(positive)
    num, groups, settings = len(codes), state.tuner.groups, state.tuner.settings(tune_key)
    keys = jax.vmap(lambda c: random.fold_in(key, c))(jnp.arange(num))
    if groups > 1:
        size = -(-num // groups)
        rows = jnp.arange(groups * size) % num  # a group that is short repeats the first chains
        keys, codes = keys[rows], codes[rows]
        settings = {name: jnp.repeat(values, size) for name, values in settings.items()}
    return Share(positive, codes, keys, settings)


def stepped_share(recipe: Recipe, target: Target, trained: Any, share: Share) -> Part:
    """K steps of its chains on the model as it is now, then the gradient at its samples and data."""
    frozen = partition(target.params, recipe.trained)[1]
    model = target.replace(params=combine(trained, frozen))
    codes, rate, jump = _steps(recipe, model, share)
    far = jax.vmap(lambda a, b: model.space.travel(a, b)[0])(share.codes, codes)
    seen = codes[: len(share.data), : observed_space(target).num_sites]
    grad, loss, of_data, of_samples = gradient(target, trained, frozen, share.data, seen, recipe.penalties)
    return Part(codes, rate, jump, far, of_data, of_samples, loss, grad)


def closed(recipe: Recipe, target: Target, state: State, chains: jax.Array, update: jax.Array, parts: list[Part]) -> tuple:
    """(state, row of history) after an update whose shares came to `parts`, of equal size, which are added in their order."""
    frozen = partition(target.params, recipe.trained)[1]
    grad, loss = (_mean([getattr(part, name) for part in parts]) for name in ("grad", "loss"))
    codes, each_rate, each_jump, far, of_data, of_samples = (
        jnp.concatenate([getattr(part, name) for part in parts])
        for name in ("codes", "rate", "jump", "far", "of_data", "of_samples")
    )
    energies = Energies(-jnp.mean(of_data), -jnp.mean(of_samples), jnp.std(of_data), loss)
    groups = state.tuner.groups
    told = Told(*(jnp.mean(x.reshape(groups, -1), axis=1) for x in (each_jump, each_rate, far)))
    finite = _finite((grad, energies))
    changes, optimiser = recipe.optimiser.update(grad, state.optimiser, state.trained)
    trained = jax.tree.map(lambda p, u: jnp.asarray(p + u, p.dtype), state.trained, changes)
    for penalty in recipe.penalties:
        trained = partition(penalty.shrunk(combine(trained, frozen), update), recipe.trained)[0]
    trained, optimiser = _if(finite, (trained, optimiser), (state.trained, state.optimiser))
    kept, rate, jump = codes[: len(chains)].astype(state.buffer.dtype), jnp.mean(told.rate), jnp.mean(told.jump)
    new = State(
        trained,
        None if state.average is None else _mixed(state.average, trained, recipe.decay),
        optimiser,
        state.buffer.at[chains].set(kept) if recipe.persistent else kept,
        state.tuner.learn(_keys(recipe, update)[1], told, recipe.num_steps),
        state.watch.look(finite, energies, rate, jump, recipe.patience),
    )
    row = dict(loss=loss, data_energy=energies.data, model_energy=energies.model, acceptance=rate, jump=jump)
    return new, {**row, **state.tuner.centre()}


def _mean(trees: list[Any]) -> Any:
    """Added in order; one is as it is."""
    total = trees[0]
    for tree in trees[1:]:
        total = jax.tree.map(jnp.add, total, tree)
    return total if len(trees) == 1 else jax.tree.map(lambda x: x / len(trees), total)


def _begin(key: jax.Array, recipe: Recipe, codes: jax.Array) -> jax.Array:
    """The chains as they are, some of them begun anew."""

    def anew() -> jax.Array:
        which, draws = random.split(key)
        begins = random.unit(which, (len(codes), 1)) < recipe.reinitialise
        return jnp.where(begins, jax.vmap(recipe.fresh.draw)(random.split(draws, len(codes))).astype(codes.dtype), codes)

    return jax.lax.cond(recipe.reinitialise > 0, anew, lambda: codes)


def _steps(recipe: Recipe, model: Target, share: Share) -> tuple:
    """(codes, acceptance rate, jump), of every chain.

    The model has changed since the last visit, so every state is begun anew at its codes: f and the local model are those of
    this model, and what else a state holds, such as a momentum, is drawn anew.
    """
    codes, keys, settings = share.codes, share.keys, share.settings
    own = 0 if any(values.ndim for values in settings.values()) else None
    none = jnp.zeros(len(codes), default_float())
    kernel_of = lambda values: changed(recipe.kernel, **values)  # noqa: E731
    one = lambda values, k, c: begin(kernel_of(values), model, c, random.fold_in(k, _START))  # noqa: E731
    states = jax.vmap(one, (own, 0, 0))(settings, keys, codes)

    def step(t: jax.Array, carry: Any) -> Any:
        states, rate, jump = carry
        each, kernel = ({}, kernel_of(settings)) if own is None else (settings, recipe.kernel)
        states, info = step_chains(kernel, model, keys, t, states, each)
        return states, rate + info.acceptance_rate, jump + info.jump

    states, rate, jump = jax.lax.fori_loop(0, recipe.num_steps, step, (states, none, none))
    return kept_codes(recipe.kernel, model, states), rate / recipe.num_steps, jump / recipe.num_steps


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
