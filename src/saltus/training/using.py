"""A trained model put to use: new states in one call, and states filled in where some sites are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._compiling import program
from .._record import as_array, as_size, record, static
from ..engine.arguments import read_seed
from ..engine.keys import TRAINING, chain_key, seed_words
from ..engine.loop import step_chains
from ..engine.recording import kept_codes, stepped
from ..engine.samplers import check_kernel_fits
from ..errors import KernelError, TrainingError
from ..kernels import Kernel, begin
from ..spaces import Space
from ..target import Target
from .choice import read_kernel
from .codes import read_codes
from .models.hidden import hidden_of, observed_log_prob, observed_space

_FIRST = 2**30  # of the chains' numbers: beyond those of training


def draw(target: Target, kernel: Kernel, buffer: Any, num: Any, num_steps: Any, seed: Any) -> Any:
    """`num` states of the model, as a person reads them, each `num_steps` steps from a chain of the buffer."""
    num, steps, seed = as_size(num, "num", TrainingError), _steps(num_steps), read_seed(seed)
    codes = read_codes(target.space, buffer, "buffer")
    rows = np.random.default_rng([seed, 3]).integers(len(codes), size=num)
    return target.space.show(_run(kernel, target, jnp.asarray(codes[rows]), jnp.asarray(seed_words(seed)), steps))


def _steps(num_steps: Any) -> np.int32:
    return np.int32(as_size(num_steps, "num_steps", TrainingError, most=2**31 - 1))


@program()
def _run(kernel: Kernel, target: Target, codes: jax.Array, words: jax.Array, num_steps: Any) -> jax.Array:
    keys = jax.vmap(lambda c: chain_key(words, TRAINING, c))(_FIRST + jnp.arange(len(codes)))
    states = jax.vmap(lambda c, key: begin(kernel, target, c, key))(codes.astype(target.space.code_dtype), keys)
    step = lambda t, states: step_chains(kernel, target, keys, t, states)[0]  # noqa: E731
    return kept_codes(kernel, target, jax.lax.fori_loop(0, num_steps, step, states))


def infill(target: Target, kernel: Kernel, states: Any, known: Any, num_steps: Any, seed: Any) -> np.ndarray:
    """`states`, with every site that is not known drawn from the model given those that are."""
    space, steps = observed_space(target), _steps(num_steps)
    codes = read_codes(space, states, "states")
    given = np.asarray(as_array(known, "known", TrainingError, "True where a site is known, one for each site"))
    if given.dtype != bool or given.shape != (space.num_sites,):
        raise TrainingError(
            "`known` does not say which sites are known.",
            expected=f"True or False for each of {space.num_sites} sites",
            found=f"{given.dtype} of shape {given.shape}",
            hint="the same sites are known in all states: call it once for each pattern",
        )
    if given.all():
        return space.show(codes)
    words = jnp.asarray(seed_words(read_seed(seed)))
    if hidden_of(target):  # whose sites are all drawn at once, given the hidden units: those that are known are put back
        return space.show(_refill(kernel, target, jnp.asarray(codes), jnp.asarray(given), words, steps))
    free = _Free(space, tuple(np.flatnonzero(~given).tolist()))
    rest = Target(
        Filled(observed_log_prob(target), free),
        free.space(),
        {"model": target.params, "states": space.embed(codes[0])},
        structure=None,
    )
    try:
        check_kernel_fits(kernel, rest)
    except KernelError:  # made for all sites, such as a preconditioner
        kernel = read_kernel("auto", rest, codes[:, ~given])[0]
    found = codes.copy()
    found[:, ~given] = _fill(kernel, rest, jnp.asarray(codes), words, steps)
    return space.show(found)


@dataclass(frozen=True)
class _Free:
    """The sites of a space that are not known."""

    whole: Space
    sites: tuple[int, ...]

    def space(self) -> Space:
        return Space(len(self.sites), self.whole.values, self.whole.labels, f"{len(self.sites)} sites of {self.whole}")


@record
class Filled:
    """f of the sites that are not known, the others being as in params["states"]."""

    log_prob: Any = static()
    free: _Free = static()

    def __call__(self, params: dict, s: jax.Array) -> jax.Array:
        whole = params["states"].at[np.array(self.free.sites)].set(s)
        f: jax.Array = self.log_prob(params["model"], whole)
        return f


@program()
def _fill(kernel: Kernel, target: Target, codes: jax.Array, words: jax.Array, num_steps: Any) -> jax.Array:
    """(rows, free sites) codes; each row has a target of its own. They begin at random."""
    free: _Free = target.log_prob.free  # type: ignore[attr-defined]

    def one(row: jax.Array, number: jax.Array) -> jax.Array:
        key, own = chain_key(words, TRAINING, number), {**target.params, "states": free.whole.embed(row)}
        model = target.replace(params=own)
        state = begin(kernel, model, target.space.random(key).astype(target.space.code_dtype), key)
        step = lambda t, state: stepped(kernel, random.fold_in(key, t), model, state)[0]  # noqa: E731
        return kernel.draw(jax.lax.fori_loop(0, num_steps, step, state))

    return jax.vmap(one)(codes.astype(free.whole.code_dtype), _FIRST + jnp.arange(len(codes)))


@program()
def _refill(kernel: Kernel, target: Target, codes: jax.Array, known: jax.Array, words: jax.Array, num_steps: Any) -> jax.Array:
    space, hidden = observed_space(target), target.space.num_sites - codes.shape[1]
    given = codes.astype(target.space.code_dtype)

    def one(row: jax.Array, number: jax.Array) -> jax.Array:
        key = chain_key(words, TRAINING, number)
        first = jnp.where(known, row, space.random(key).astype(row.dtype))

        def step(t: jax.Array, visible: jax.Array) -> jax.Array:
            state = begin(kernel, target, jnp.pad(visible, (0, hidden)), key)
            drawn = kernel.draw(stepped(kernel, random.fold_in(key, t), target, state)[0])
            return jnp.where(known, row, drawn[: len(row)])

        return jax.lax.fori_loop(0, num_steps, step, first)

    return jax.vmap(one)(given, _FIRST + jnp.arange(len(codes)))
