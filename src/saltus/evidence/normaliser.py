r"""log Z of a target from replicas on a ladder of temperatures, with an error from independent ladders.

Between neighbours, Bennett's ratio: c = log Z_{i+1} / Z_i solves, with u = (β_{i+1} - β_i) f and σ the logistic function,

    Σ_{s ~ β_i} σ(u(s) - c) = Σ_{s ~ β_{i+1}} σ(c - u(s)),        log Z = log |S| + Σ_i c_i

Where the ladder begins at given marginals p_0, f - log p_0 takes the place of f, and 0 that of log |S|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import scipy.stats

from .. import random
from .._compiling import program
from .._record import as_real, as_size
from ..diagnostics import ess_of_chains
from ..engine.arguments import read_seed, read_target
from ..engine.keys import ANNEALING, chain_key, seed_words
from ..engine.loop import step_chains
from ..engine.samplers import AUTO, check_kernel_fits
from ..engine.starts import start_codes
from ..errors import RunError
from ..kernels import Kernel, Tempered, begin
from ..target import Target
from ..tuning import find_ladder, kernel_for

_ENUMERATED = 2**16  # states: fewer are all looked at
_START = 2**31 - 1  # of the key of a chain's start


@dataclass(frozen=True)
class Normaliser:
    """log_z: the estimate. error: its standard error, over independent ladders; 0 where all states were enumerated.

    ess: the smallest effective sample size of f on a rung, all ladders together. round_trips: of all replicas of all ladders.
    ladders: (num,) the estimate of each. how: "enumeration" or "tempering".
    """

    log_z: float
    error: float
    ess: float
    round_trips: int
    ladders: np.ndarray
    how: str

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Student's interval with this probability, with one degree of freedom fewer than there are ladders."""
        if not 0 < as_real(level, "level", RunError, "a number between 0 and 1") < 1:
            raise RunError("`level` is not a probability.", expected="a number between 0 and 1", found=str(level))
        if self.how == "enumeration":
            return self.log_z, self.log_z
        half = self.error * float(scipy.stats.t.ppf((1 + level) / 2, len(self.ladders) - 1))
        return self.log_z - half, self.log_z + half

    def __repr__(self) -> str:
        if self.how == "enumeration":
            return f"log Z = {self.log_z:.10g}, exactly: every state was enumerated."
        low, high = self.interval()
        told = f"log Z = {self.log_z:.8g} ± {self.error:.2g} (90 % interval {low:.8g} to {high:.8g})"
        told += f", from {len(self.ladders)} independent ladders with {self.round_trips} round trips, ESS {self.ess:.0f}."
        few = self.round_trips < 2 * len(self.ladders)
        return told + (" Too few round trips: the ladders may have missed modes, and the error may be too small." if few else "")


def log_z(target: Target, seed: int = 0, *, kernel: Any = None, num_ladders: int = 8, num_steps: int = 2000) -> Normaliser:
    """log of Z = Σ_s exp f(s): by enumeration where there are at most 65536 states, else by Bennett's ratio along a ladder.

    target: a `saltus.Target`.
    seed: an integer; the same one gives the same estimate.
    kernel: of the rungs: a kernel, a sampler's class or name, which is tuned at β = 1, or "auto", Gibbs, the default; on a ladder
        that is found first. Or a `saltus.Tempered` with its ladder.
    num_ladders: independent ones, at least 8, from which the error is computed.
    num_steps: of each ladder, after a fifth as many for burn-in.
    Returns a `Normaliser` with .log_z, .error, .ess, .round_trips and .interval(level); it prints a sentence.
    Raises RunError where a setting is not usable or f is not finite on the way, KernelError where the kernel does not fit.

        print(saltus.log_z(saltus.targets.ising((12, 12), coupling=0.3), seed=0))
    """
    target, seed = read_target(target), read_seed(seed)
    num, steps = as_size(num_ladders, "num_ladders", RunError, least=8), as_size(num_steps, "num_steps", RunError, least=50)
    log_states = float(np.sum(np.log(target.space.num_values_per_site.astype(np.float64))))
    if log_states <= math.log(_ENUMERATED) + 1e-9 and kernel is None:
        return _enumerated(target)
    if not isinstance(kernel, Tempered):
        kernel = find_ladder(target, kernel_for(target, AUTO if kernel is None else kernel, seed), seed).kernel
    check_kernel_fits(kernel, target)
    codes = start_codes(target, seed, None, num)
    states, f = _recorded(kernel, target, jnp.asarray(codes), jnp.asarray(seed_words(seed)), steps // 5, steps)
    f = np.asarray(f, np.float64)
    begun = log_states if kernel.reference is None else 0.0
    each = np.array([begun + log_ratios(f[:, c], np.asarray(kernel.ladder, np.float64)).sum() for c in range(num)])
    if not np.isfinite(each).all():
        raise RunError("f is not finite along the ladder.", expected="finite estimates", found=str(each[~np.isfinite(each)][0]))
    ess = float(np.min(ess_of_chains(np.moveaxis(f[:, :, 1:], 0, -1))))
    error = float(each.std(ddof=1) / np.sqrt(num))
    return Normaliser(float(each.mean()), error, ess, kernel.swaps(states).round_trips, each, "tempering")


def log_ratios(f: np.ndarray, betas: np.ndarray) -> np.ndarray:
    """(rungs - 1,) Bennett's log Z_{i+1} / Z_i of f (draws, rungs) at these β; by bisection, which always ends."""
    delta = np.diff(betas)
    with np.errstate(invalid="ignore"):
        below, above = delta * f[:, :-1], delta * f[:, 1:]
    low, high = above.min(axis=0), above.max(axis=0)
    finite = np.where(np.isfinite(below), below, np.nan)
    low, high = np.fmin(low, np.nanmin(finite, axis=0)) - 50, np.fmax(high, np.nanmax(finite, axis=0)) + 50
    for _ in range(60):
        c = (low + high) / 2
        more = scipy.special.expit(below - c).sum(axis=0) > scipy.special.expit(c - above).sum(axis=0)
        low, high = np.where(more, c, low), np.where(more, high, c)
    return (low + high) / 2


def _enumerated(target: Target) -> Normaliser:
    f = np.asarray(_values(target, target.space.enumerate().astype(target.space.code_dtype)), np.float64)
    if np.isnan(f).any() or (f == np.inf).any():
        raise RunError("f is undefined at some states.", expected="finite numbers or -inf", found=f"{f[~(f < np.inf)][0]}")
    return Normaliser(float(scipy.special.logsumexp(f)), 0.0, float(len(f)), 0, np.zeros(0), "enumeration")


@program()
def _values(target: Target, codes: jax.Array) -> jax.Array:
    return jax.lax.map(target.value, codes, batch_size=min(2**12, len(codes)))


@program(static_argnums=(4, 5))
def _recorded(
    kernel: Kernel, target: Target, codes: jax.Array, words: jax.Array, burn_in: int, steps: int
) -> tuple[Any, jax.Array]:
    """(the last states, f, or f - log p_0, of all replicas (steps, ladders, rungs))."""
    keys = jax.vmap(lambda c: chain_key(words, ANNEALING, c))(jnp.arange(codes.shape[0], dtype=jnp.int32))
    own = codes.astype(target.space.code_dtype)
    states = jax.vmap(lambda key, c: begin(kernel, target, c, random.fold_in(key, _START)))(keys, own)

    def step(states: Any, t: jax.Array) -> Any:
        states, _ = step_chains(kernel, target, keys, t, states)
        return states, states.values

    states, f = jax.lax.scan(step, states, jnp.arange(burn_in + steps, dtype=jnp.int32))
    return states, f[burn_in:]
