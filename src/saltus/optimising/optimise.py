"""optimise: the state with the largest f, by annealing many chains again and again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._compiling import program
from .._record import as_size, default_float
from ..engine.arguments import read_seconds, read_seed, read_target
from ..engine.keys import OPTIMISING, chain_key, seed_words
from ..engine.loop import step_chains
from ..engine.recording import kept_codes
from ..engine.samplers import AUTO, check_kernel_fits
from ..engine.starts import start_codes
from ..errors import RunError
from ..kernels import Kernel, begin
from ..target import Target
from ..tuning import kernel_for
from .schedule import falling, temperatures

_CHUNK = 32  # steps between two looks at the clock
_FIRST = 96  # steps of the first anneal; each later one is twice as long, as far as there is time
_BEGIN = 2**31 - 1  # of the key of a state's other parts


@dataclass(frozen=True)
class Optimum:
    """state: the best one found, as a person reads it (`space.show`). value: f there.

    trace: (looks, 3) seconds since the call, steps of each chain so far, and the best f by then. steps: of each chain, in all.
    anneals: how many were finished. hits: how many chains of the last anneal ended at this value.
    """

    state: Any
    value: float
    trace: np.ndarray
    steps: int
    anneals: int
    hits: int
    num_chains: int

    def __repr__(self) -> str:
        told = (
            f"f = {self.value:.8g}, the best of {self.num_chains} chains in {self.anneals} anneals of {self.steps} steps in all, "
        )
        told += f"{self.trace[-1, 0]:.1f} s; last improved after {self.trace[self.trace[:, 2] >= self.value][0, 0]:.1f} s. "
        return (
            told + f"{self.hits} of {self.num_chains} chains of the last anneal reached it; nothing proves that it is the largest."
        )


def optimise(
    target: Target,
    seconds: float | None = None,
    seed: int = 0,
    *,
    steps: int | None = None,
    kernel: Any = AUTO,
    num_chains: int = 16,
    initial: Any = None,
) -> Optimum:
    r"""Search for the state with the largest log_prob f: simulated annealing of many chains, again and again, each time slower.

    A chain follows exp(β f) while β grows in equal ratios from where most single-site changes are accepted to where hardly any that
    makes f smaller is. Anneals begin at random states, or at `initial`, and are twice as long each time.

    target: a `saltus.Target`.
    seconds: how long to search, from the call; default 60 where `steps` is not given.
    seed: an integer. With `steps` the same seed gives the same state; with `seconds` it depends on the machine's speed as well.
    steps: of each chain, in place of `seconds`: one anneal with so many.
    kernel: a kernel, a sampler's class or name, which is tuned at β = 1, or "auto": Gibbs sweeps. `saltus.Exchange()` keeps sums.
    num_chains: that are annealed together.
    initial: states to begin at, as for `saltus.sample`.
    Returns an `Optimum` with .state, .value and .trace. Raises RunError where a setting is not usable, KernelError where the kernel
    does not fit.

        best = saltus.optimise(saltus.targets.edwards_anderson((8, 8)), steps=500, seed=0)
    """
    began = time.monotonic()
    target, seed = read_target(target), read_seed(seed)
    limit, num_chains = read_seconds(seconds, "seconds"), as_size(num_chains, "num_chains", RunError)
    if steps is not None and limit is not None:
        raise RunError("Both `seconds` and `steps` were given.", expected="one of them", found=f"{seconds} and {steps}")
    budget = None if steps is None else as_size(steps, "steps", RunError)
    kernel = kernel_for(target, kernel, seed)
    check_kernel_fits(kernel, target)
    codes = start_codes(target, seed, initial, num_chains)
    search = _Search(target, kernel, codes, seed, began, initial is not None or target.initial is not None)
    return search.of_steps(budget) if budget else search.until(began + (limit or 60.0))


class _Search:
    """The chains, the best state of each so far, and what was seen on the way."""

    def __init__(self, target: Target, kernel: Kernel, codes: np.ndarray, seed: int, began: float, given: bool):
        self.target, self.kernel, self.seed, self.began, self.given = target, kernel, seed, began, given
        self.first, self.last = temperatures(target, codes)
        self.start = self.codes = jnp.asarray(codes, target.space.code_dtype)
        self.best, self.best_f = self.codes, jnp.full(len(codes), -jnp.inf, default_float())
        self.now_f = self.best_f
        self.steps, self.anneals = 0, 0
        self.trace: list[tuple[float, int, float]] = []

    def of_steps(self, num: int) -> Optimum:
        self.anneal(num)
        return self.told()

    def until(self, deadline: float) -> Optimum:
        """Anneals of 96, 192, 384, ... steps; the last is as long as there is time for."""
        num = _FIRST
        while True:
            clock = time.monotonic()
            self.anneal(num, deadline)
            a_step = (time.monotonic() - clock) / num
            left = int((deadline - time.monotonic()) / max(a_step, 1e-9))
            if left < _FIRST:
                return self.told()
            num = 2 * num if left > 6 * num else left  # what would be left after one more is spent on this one
            self.again()

    def again(self) -> None:
        """New random states, or those that were given."""
        fresh = start_codes(self.target, self.seed + self.anneals, None, len(self.start)) if not self.given else self.start
        self.codes = jnp.asarray(fresh, self.target.space.code_dtype)

    def anneal(self, num: int, deadline: float = float("inf")) -> None:
        """So many steps; where time runs out first, the rest is skipped but for a last piece at the last temperature."""
        betas = falling(self.first, self.last, num)
        for begin_at in range(0, num, _CHUNK):
            late = time.monotonic() > deadline and bool(self.trace)
            some = np.full(_CHUNK, self.last) if late else betas[begin_at : begin_at + _CHUNK]
            self._advance(some)
            if late:
                break
        self.anneals += 1

    def _advance(self, betas: np.ndarray) -> None:
        padded = jnp.asarray(np.pad(betas, (0, _CHUNK - len(betas)), mode="edge"), default_float())
        state = (self.codes, self.best, self.best_f)
        words = jnp.asarray(seed_words(self.seed))
        found = _annealed(self.kernel, self.target, padded, words, state, np.int32(self.steps), np.int32(len(betas)))
        self.codes, self.now_f, self.best, self.best_f = found
        self.steps += len(betas)
        self.trace.append((time.monotonic() - self.began, self.steps, float(jnp.max(self.best_f))))

    def told(self) -> Optimum:
        top = int(np.argmax(np.asarray(self.best_f)))
        value = float(self.best_f[top])
        if not np.isfinite(value):
            raise RunError("No state with a finite f was found.", expected="f finite at some states", found=str(value))
        hits = int(np.sum(np.asarray(self.now_f) >= value - 1e-6 * max(abs(value), 1)))
        state = self.target.space.show(np.asarray(self.best[top]))
        return Optimum(state, value, np.array(self.trace), self.steps, self.anneals, hits, len(self.start))


@program()
def _annealed(kernel: Kernel, target: Target, betas: jax.Array, words: jax.Array, state: Any, first: Any, num: Any) -> Any:
    """(codes, f, best codes, best f) of all chains after `num` steps, one at each β."""
    codes, best, best_f = state
    keys = jax.vmap(lambda c: chain_key(words, OPTIMISING, c))(jnp.arange(codes.shape[0], dtype=jnp.int32))

    def step(t: jax.Array, carry: Any) -> Any:
        codes, _, best, best_f = carry
        cold = target.tempered(betas[t])
        starts = jax.vmap(lambda key: random.fold_in(random.fold_in(key, first + t), _BEGIN))(keys)
        states = jax.vmap(lambda c, key: begin(kernel, cold, c, key))(codes, starts)
        states, _ = step_chains(kernel, cold, keys, first + t, states)
        codes = kept_codes(kernel, target, states)
        f = jax.vmap(target.value)(codes)
        better = f > best_f
        return codes, f, jnp.where(better[:, None], codes, best), jnp.where(better, f, best_f)

    return jax.lax.fori_loop(0, num, step, (codes, best_f, best, best_f))
