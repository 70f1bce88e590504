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
from ..engine.loop import TUNING, chain_key, seed_words, step_chains
from ..kernels import Kernel, begin
from ..target import Point, Target

CANDIDATES = 18  # of every trial: orders of magnitude, or two decades of deciles; one shape, one compilation
_MOST_NUMBERS = 2**22  # candidates * chains * sites * values held at once
_FEWEST_STEPS = 8  # of a trial


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
    deadline: float = float("inf")  # of time.monotonic: no trial begins that would end after it
    pace: float = 0.0  # seconds of a step of all candidates, by the last trial or by `guess_pace`
    cut: bool = False  # whether a search ended for want of time

    def late(self) -> bool:
        """Whether even the shortest trial would end after the deadline; `cut` remembers it."""
        late = time.monotonic() + (_FEWEST_STEPS + 1) * self.pace > self.deadline
        self.cut = self.cut or late
        return late

    def length(self, steps: int) -> int:
        """Steps of a trial: so many, or as many as there is time for."""
        wanted = max(round(self.effort * steps), _FEWEST_STEPS)
        if not self.pace or self.deadline == float("inf"):
            return wanted
        return min(wanted, max(int((self.deadline - time.monotonic()) / self.pace) - 1, _FEWEST_STEPS))

    def guess_pace(self, kernel: Kernel, target: Target) -> None:
        """Before there was a trial: by the time that f takes at the chains."""
        value = jax.jit(jax.vmap(target.value)).lower(self.codes).compile()
        began = time.monotonic()
        jax.block_until_ready(value(self.codes))
        self.pace = CANDIDATES * kernel.evaluations(target) * (time.monotonic() - began)

    def move_to(self, found: Any, candidate: int) -> None:
        """Go on from where this candidate of a trial ended."""
        self.codes, self.log_prob = found.codes[candidate], found.log_prob[candidate]

    def try_out(self, kernel: Kernel, target: Target, settings: dict[str, np.ndarray], steps: int) -> Any:
        """The Outcome of stepping every candidate from these chains: candidate i has `settings[name][i]` for each name."""
        given = {name: _padded(values, getattr(kernel, name)) for name, values in settings.items()}
        clock, began = (seed_words(self.seed), np.int32(self.steps), np.int32(steps)), time.monotonic()
        found = jax.tree.map(np.asarray, _trial(kernel, target, given, self.codes, clock))
        self.pace = (time.monotonic() - began) / steps
        self.steps += steps
        num = len(next(iter(settings.values())))
        self.evaluations += CANDIDATES * len(self.codes) * steps * kernel.evaluations(target)
        return jax.tree.map(lambda x: x[:num], found)


def _padded(values: np.ndarray, like: Any) -> np.ndarray:
    """CANDIDATES of them, the last repeated, in the dtype of the field."""
    values = np.asarray(values, jnp.result_type(like))
    return np.concatenate([values, np.repeat(values[-1:], CANDIDATES - len(values))])


def with_values(kernel: Any, **values: Any) -> Any:
    """The kernel with these numbers, in the dtypes of its fields."""
    return changed(kernel, **{name: jnp.asarray(x, jnp.result_type(getattr(kernel, name))) for name, x in values.items()})


def start_states(kernel: Kernel, target: Target, codes: jax.Array, words: Any, first: Any) -> tuple[Any, jax.Array]:
    """(states at these codes, keys of the chains). first: steps so far; steps have the keys from there on, starts those below 0."""
    keys = jax.vmap(lambda c: chain_key(words, TUNING, c))(jnp.arange(codes.shape[0], dtype=jnp.int32))
    own = codes.astype(target.space.code_dtype)
    return jax.vmap(lambda k, c: begin(kernel, target, c, random.fold_in(k, ~first)))(keys, own), keys


def num_tuning_chains(target: Target) -> int:
    """16, or fewer where states are so large that all candidates' chains would not fit."""
    size = CANDIDATES * target.space.num_sites * target.space.num_values
    return int(np.clip(_MOST_NUMBERS // size, 2, 16))


@program()
def _trial(kernel: Kernel, target: Target, settings: dict[str, jax.Array], codes: jax.Array, clock: Any) -> Outcome:
    words, first, steps = clock

    def candidate(values: dict[str, jax.Array]) -> Outcome:
        own = changed(kernel, **values)
        states, keys = start_states(own, target, codes, words, first)
        zero = jnp.zeros((), default_float())

        def step(t: jax.Array, carry: Any) -> Any:
            states, jump, acceptance = carry
            states, info = step_chains(own, target, keys, first + t, states)
            counts = jnp.where(2 * t >= steps, 1, 0).astype(zero.dtype)
            return states, jump + counts * jnp.mean(info.jump), acceptance + counts * jnp.mean(info.acceptance_rate)

        states, jump, acceptance = jax.lax.fori_loop(0, steps, step, (states, zero, zero))
        half = jnp.maximum(steps - (steps + 1) // 2, 1).astype(zero.dtype)
        kept = jax.vmap(own.draw)(states)
        return Outcome(jump / half, acceptance / half, _log_prob(target, states, kept), kept)

    return jax.vmap(candidate)(settings)


def _log_prob(target: Target, states: Any, codes: jax.Array) -> jax.Array:
    """(chains,) f of what is kept; states of several replicas have several numbers."""
    return states.log_prob if states.log_prob.ndim == 1 else jax.vmap(target.value)(codes)


@program(static_argnums=5)
def record_chains(kernel: Kernel, target: Target, codes: jax.Array, words: jax.Array, first: Any, steps: int) -> Any:
    """(steps + 1, chains, d) codes, and (steps, chains) of y = f(s') - f(s) - D(s -> s'), what the local model missed."""
    states, keys = start_states(kernel, target, codes, words, first)

    def point(x: Any) -> Point:
        return x if isinstance(x, Point) and x.local is not None else target.point(kernel.draw(x))

    def seen(x: Any, y: Any) -> Any:
        before, after = point(x), point(y)
        return after.codes, after.log_prob - before.log_prob - target.moves(before).at(after.codes)

    def step(states: Any, t: jax.Array) -> Any:
        new, _ = step_chains(kernel, target, keys, first + t, states)
        return new, jax.vmap(seen)(states, new)

    _, (visited, missed) = jax.lax.scan(step, states, jnp.arange(steps, dtype=jnp.int32))
    return jnp.concatenate([codes[None].astype(visited.dtype), visited]), missed
