r"""Annealed importance sampling: the normaliser of a model, from below and from above.

Along f_β = β f, β from 0 (uniform) to 1, with any kernel K_β that leaves exp(f_β) invariant:

    forward   s ~ uniform; for t = 1..T:  log w += (β_t - β_{t-1}) f(s),  s <- K_{β_t}(s)       E w = Z / |S|
    reverse   s ~ p;       for t = T..1:  s <- K_{β_t}(s),  log w += (β_t - β_{t-1}) f(s)       E 1/w = |S| / Z

By Jensen's inequality the mean of log w is below log Z - log |S| forward, and above it in reverse.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from .. import random
from .._compiling import program
from .._record import as_size, default_float, shown
from ..engine.arguments import read_seconds, read_seed, read_target
from ..engine.keys import ANNEALING, chain_key, seed_words
from ..engine.loop import step_chains
from ..engine.samplers import check_kernel_fits
from ..engine.starts import read_states
from ..engine.states import kept_codes
from ..errors import KernelError, TrainingError
from ..kernels import Kernel, begin
from ..target import Target

_TRIED = 4  # temperatures, to see how long one takes
_START = 2**31 - 1  # of the key of a state's other parts


@dataclass(frozen=True)
class LogZ:
    """log_z: the estimate. bound: below log Z in expectation (forward) or above it (reverse), with its standard error."""

    log_z: float
    standard_error: float
    bound: float
    bound_error: float
    log_weights: np.ndarray  # one a chain, log |S| included
    direction: str
    cut: str = ""  # what a time limit left out, in words

    def __repr__(self) -> str:
        side = "lower" if self.direction == "forward" else "upper"
        return f"log Z = {self.log_z:.6g} ± {self.standard_error:.2g} ({side} bound {self.bound:.6g} ± {self.bound_error:.2g})"


def tempered(target: Target, beta: Any) -> Target:
    """The target whose log_prob is β times this one's: `target.tempered(beta)`, which says more."""
    return read_target(target).tempered(beta)


def ais(
    target: Target,
    kernel: Kernel,
    *,
    num_temperatures: int = 500,
    num_chains: int = 1000,
    seed: int = 0,
    samples: Any = None,
    time_limit: float | None = None,
) -> LogZ:
    """log Z of a target, Z = Σ_s exp f(s), by annealing.

    samples: None anneals from uniform states and bounds log Z from below; states drawn from the model anneal back from them
    and bound it from above. The two runs bracket log Z as far as the samples are the model's.
    kernel: one step at each temperature; it must be reversible for the reverse run.
    time_limit: seconds from the call. Where they are not enough for all temperatures there are fewer, at least one; a warning
        and the result's `cut` say so.
    """
    deadline = time.monotonic() + (read_seconds(time_limit, "time_limit") or np.inf)
    target, seed = read_target(target), read_seed(seed)
    num = as_size(num_temperatures, "num_temperatures", TrainingError)
    num_chains = as_size(num_chains, "num_chains", TrainingError)
    if not isinstance(kernel, Kernel):
        raise KernelError("`kernel` is not a kernel.", expected="such as saltus.NCG(0.5)", found=shown(kernel))
    check_kernel_fits(kernel, target)
    numbers, words = jnp.arange(num_chains), jnp.asarray(seed_words(seed))
    log_states = float(np.log(target.space.num_values_per_site).sum())
    if samples is None:
        log_w, cut = _in_time(lambda betas, stop: _forward(kernel, target, betas, words, numbers, stop), num, deadline)
        return _summary(log_w + log_states, 1, "forward", cut)
    if not getattr(kernel, "reversible", True):
        raise KernelError(
            "The reverse run needs a reversible kernel.", expected="one step of which is reversible", found=repr(kernel)
        )
    codes = np.resize(read_states(target.space, samples, "samples"), (num_chains, target.space.num_sites))
    first = jnp.asarray(codes, target.space.code_dtype)
    log_w, cut = _in_time(lambda betas, stop: _reverse(kernel, target, betas, words, numbers, first, stop), num, deadline)
    return _summary(log_w + log_states, -1, "reverse", cut)


def _in_time(anneal: Callable[[jax.Array, Any], jax.Array], num: int, deadline: float) -> tuple[np.ndarray, str]:
    """(log weights, what was cut) of `num` temperatures, or of as many as there is time for."""

    def at(some: int) -> np.ndarray:
        """With `some` temperatures; the table of inverse temperatures has one length, so nothing is compiled again."""
        betas = jnp.linspace(0, 1, some + 1, dtype=default_float())
        padded = jnp.concatenate([betas, jnp.ones(num - some, betas.dtype)]) if some < num else betas
        return np.asarray(anneal(padded, np.int32(some)), np.float64)

    if deadline == np.inf:
        return at(num), ""
    log_w, some = at(1), 1  # and compile
    began = time.monotonic()
    if num > 1 and began < deadline:
        at(min(_TRIED, num))
        per_step = (time.monotonic() - began) / min(_TRIED, num)
        some = max(min(num, int((deadline - time.monotonic()) / max(per_step, 1e-9))), 1)
        log_w = at(some) if some > 1 else log_w
    cut = "" if some == num else f"the temperatures ({some} of {num} were used)"
    if cut:
        warnings.warn(f"`time_limit` left no time for all of {cut}: the bound is looser.", stacklevel=3)
    return log_w, cut


def _summary(log_w: np.ndarray, sign: int, direction: str, cut: str = "") -> LogZ:
    if not np.isfinite(log_w).all():
        raise TrainingError("f is not finite along the path.", expected="finite weights", found=f"{log_w[~np.isfinite(log_w)][0]}")
    n = len(log_w)
    log_z = sign * (logsumexp(sign * log_w) - np.log(n))
    w = np.exp(sign * (log_w - log_z))
    errors = float(w.std() / np.sqrt(n)), float(log_w.std() / np.sqrt(n))
    return LogZ(float(log_z), errors[0], float(log_w.mean()), errors[1], log_w, direction, cut)


@program()
def _forward(kernel: Kernel, target: Target, betas: jax.Array, words: jax.Array, chains: jax.Array, num: Any) -> jax.Array:
    keys = jax.vmap(lambda c: chain_key(words, ANNEALING, c))(chains)
    codes = jax.vmap(lambda key: target.space.random(random.fold_in(key, 0)).astype(target.space.code_dtype))(keys)

    def anneal(t: jax.Array, carry: Any) -> Any:
        codes, f, log_w = carry
        log_w = log_w + (betas[t] - betas[t - 1]) * f
        codes, f = _moved(kernel, target, betas[t], keys, codes, t)
        return codes, f, log_w

    f = jax.vmap(target.value)(codes)
    return jax.lax.fori_loop(1, num + 1, anneal, (codes, f, jnp.zeros_like(f)))[2]


@program()
def _reverse(
    kernel: Kernel, target: Target, betas: jax.Array, words: jax.Array, chains: jax.Array, codes: jax.Array, num: Any
) -> jax.Array:
    keys = jax.vmap(lambda c: chain_key(words, ANNEALING, c))(chains)

    def anneal(i: jax.Array, carry: Any) -> Any:
        codes, log_w = carry
        t = num - i
        codes, f = _moved(kernel, target, betas[t], keys, codes, t)
        return codes, log_w + (betas[t] - betas[t - 1]) * f

    return jax.lax.fori_loop(0, num, anneal, (codes, jnp.zeros(len(codes), default_float())))[1]


def _moved(kernel: Kernel, target: Target, beta: jax.Array, keys: jax.Array, codes: jax.Array, t: jax.Array) -> tuple:
    """One step at this temperature, and f (at β = 1) where it ends.

    The target is another one at every temperature, so the states are begun anew at their codes.
    """
    hot = target.tempered(beta)
    starts = jax.vmap(lambda key: random.fold_in(random.fold_in(key, t), _START))(keys)
    states = jax.vmap(lambda c, key: begin(kernel, hot, c, key))(codes, starts)
    states, _ = step_chains(kernel, hot, keys, t, states)
    codes = kept_codes(kernel, target, states)
    return codes, jax.vmap(target.value)(codes)
