"""One compiled trial: candidates of one sampler, each with its own copy of the tuning chains, all stepped at once."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._compiling import program
from .._record import changed, default_float, record
from ..kernels import Kernel
from ..run.loop import TUNING, chain_key, seed_words
from ..target import Target

CANDIDATES = 18  # of every trial: orders of magnitude, or two decades of deciles; one shape, one compilation
_MOST_NUMBERS = 2**22  # candidates * chains * sites * values held at once


@record
class Outcome:
    """Per candidate: mean L1 jump and acceptance over the second half of the steps, f and codes at the end."""

    jump: jax.Array  # (candidates,)
    acceptance: jax.Array
    log_prob: jax.Array  # (candidates, chains)
    codes: jax.Array  # (candidates, chains, d)


@dataclass
class Chains:
    """The tuning chains: a fixed set of their own. `steps` counts every step so far, so that no key is used twice."""

    codes: np.ndarray  # (chains, d)
    seed: int
    steps: int = 0
    evaluations: int = 0  # of f, by all candidates and chains so far
    effort: float = 1.0  # a factor of the length of every trial
    log_prob: np.ndarray | None = None  # (chains,) f where they are, once a trial has told
    deadline: float = float("inf")  # of time.monotonic: no round begins after it

    @property
    def late(self) -> bool:
        return time.monotonic() > self.deadline

    def length(self, steps: int) -> int:
        return max(round(self.effort * steps), 8)

    def move_to(self, found: Any, candidate: int) -> None:
        """Go on from where this candidate of a trial ended."""
        self.codes, self.log_prob = found.codes[candidate], found.log_prob[candidate]

    def try_out(self, kernel: Kernel, target: Target, settings: dict[str, np.ndarray], steps: int) -> Any:
        """The Outcome of stepping every candidate from these chains: candidate i has `settings[name][i]` for each name."""
        given = {name: _padded(values, getattr(kernel, name)) for name, values in settings.items()}
        clock = (seed_words(self.seed), np.int32(self.steps), np.int32(steps))
        found = _trial(kernel, target, given, self.codes, clock)
        self.steps += steps
        num = len(next(iter(settings.values())))
        self.evaluations += CANDIDATES * len(self.codes) * steps * kernel.evaluations(target)
        return jax.tree.map(lambda x: np.asarray(x)[:num], found)


def _padded(values: np.ndarray, like: Any) -> np.ndarray:
    """CANDIDATES of them, the last repeated, in the dtype of the field."""
    values = np.asarray(values, like.dtype)
    return np.concatenate([values, np.repeat(values[-1:], CANDIDATES - len(values))])


def num_tuning_chains(target: Target) -> int:
    """16, or fewer where states are so large that all candidates' chains would not fit."""
    size = CANDIDATES * target.space.num_sites * target.space.num_values
    return int(np.clip(_MOST_NUMBERS // size, 2, 16))


@program()
def _trial(kernel: Kernel, target: Target, settings: dict[str, jax.Array], codes: jax.Array, clock: Any) -> Outcome:
    words, first, steps = clock
    keys = jax.vmap(lambda c: chain_key(words, TUNING, c))(jnp.arange(codes.shape[0], dtype=jnp.int32))

    def candidate(values: dict[str, jax.Array]) -> Outcome:
        own = changed(kernel, **values)
        points = jax.vmap(lambda c: own.init(target, c))(codes)
        zero = jnp.zeros((), default_float())

        def step(t: jax.Array, carry: Any) -> Any:
            points, jump, acceptance = carry
            points, info = jax.vmap(lambda k, x: own.step(random.fold_in(k, first + t), target, x))(keys, points)
            counts = jnp.where(2 * t >= steps, 1, 0).astype(zero.dtype)
            return points, jump + counts * jnp.mean(info.jump), acceptance + counts * jnp.mean(info.acceptance_rate)

        points, jump, acceptance = jax.lax.fori_loop(0, steps, step, (points, zero, zero))
        half = jnp.maximum(steps - (steps + 1) // 2, 1).astype(zero.dtype)
        return Outcome(jump / half, acceptance / half, points.log_prob, points.codes)

    return jax.vmap(candidate)(settings)


@program(static_argnums=5)
def record_chains(kernel: Kernel, target: Target, codes: jax.Array, words: jax.Array, first: Any, steps: int) -> Any:
    """(steps + 1, chains, d) codes, and (steps, chains) of y = f(s') - f(s) - D(s -> s'), what the local model missed."""
    keys = jax.vmap(lambda c: chain_key(words, TUNING, c))(jnp.arange(codes.shape[0], dtype=jnp.int32))
    points = jax.vmap(lambda c: kernel.init(target, c))(codes)

    def one(key: jax.Array, x: Any, t: jax.Array) -> Any:
        y, _ = kernel.step(random.fold_in(key, first + t), target, x)
        return y, (y.codes, y.log_prob - x.log_prob - target.moves(x).at(y.codes))

    def step(points: Any, t: jax.Array) -> Any:
        return jax.vmap(one, (0, 0, None))(keys, points, t)

    _, (seen, missed) = jax.lax.scan(step, points, jnp.arange(steps, dtype=jnp.int32))
    return jnp.concatenate([codes[None], seen]), missed
