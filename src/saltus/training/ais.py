r"""Annealed importance sampling: the normaliser of a model, from below and from above.

Along f_β = β f, β from 0 (uniform) to 1, with any kernel K_β that leaves exp(f_β) invariant:

    forward   s ~ uniform; for t = 1..T:  log w += (β_t - β_{t-1}) f(s),  s <- K_{β_t}(s)       E w = Z / |S|
    reverse   s ~ p;       for t = T..1:  s <- K_{β_t}(s),  log w += (β_t - β_{t-1}) f(s)       E 1/w = |S| / Z

By Jensen's inequality the mean of log w is below log Z - log |S| forward, and above it in reverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from .. import random
from .._record import as_size, default_float
from ..errors import KernelError, TrainingError
from ..kernels import Kernel
from ..run.loop import chain_key, seed_words
from ..run.settings import check_kernel_fits, read_seed, read_target
from ..target import Target
from .buffer import read_states
from .tempering import tempered

_ANNEALING = 6  # the phase, beside those of `saltus.sample` and of training


@dataclass(frozen=True)
class LogZ:
    """log_z: the estimate. bound: below log Z in expectation (forward) or above it (reverse), with its standard error."""

    log_z: float
    standard_error: float
    bound: float
    bound_error: float
    log_weights: np.ndarray  # one a chain, log |S| included
    direction: str

    def __repr__(self) -> str:
        side = "lower" if self.direction == "forward" else "upper"
        return f"log Z = {self.log_z:.6g} ± {self.standard_error:.2g} ({side} bound {self.bound:.6g} ± {self.bound_error:.2g})"


def ais(
    target: Target, kernel: Kernel, *, num_temperatures: int = 500, num_chains: int = 1000, seed: int = 0, samples: Any = None
) -> LogZ:
    """log Z of a target, Z = Σ_s exp f(s), by annealing.

    samples: None anneals from uniform states and bounds log Z from below; states drawn from the model anneal back from them
    and bound it from above. The two runs bracket log Z as far as the samples are the model's.
    kernel: one step at each temperature; it must be reversible for the reverse run.
    """
    target, seed = read_target(target), read_seed(seed)
    num = as_size(num_temperatures, "num_temperatures", TrainingError)
    num_chains = as_size(num_chains, "num_chains", TrainingError)
    check_kernel_fits(kernel, target)
    betas = jnp.linspace(0, 1, num + 1, dtype=default_float())
    numbers, words = jnp.arange(num_chains), jnp.asarray(seed_words(seed))
    log_states = target.space.num_sites * np.log(target.space.num_values)
    if samples is None:
        log_w = _forward(kernel, target, betas, words, numbers)
        return _summary(np.asarray(log_w, np.float64) + log_states, 1, "forward")
    if not getattr(kernel, "reversible", True):
        raise KernelError(
            "The reverse run needs a reversible kernel.", expected="one step of which is reversible", found=repr(kernel)
        )
    codes = np.resize(read_states(target.space, samples, "samples"), (num_chains, target.space.num_sites))
    log_w = _reverse(kernel, target, betas, words, numbers, jnp.asarray(codes, jnp.int32))
    return _summary(np.asarray(log_w, np.float64) + log_states, -1, "reverse")


def _summary(log_w: np.ndarray, sign: int, direction: str) -> LogZ:
    if not np.isfinite(log_w).all():
        raise TrainingError("f is not finite along the path.", expected="finite weights", found=f"{log_w[~np.isfinite(log_w)][0]}")
    n = len(log_w)
    log_z = sign * (logsumexp(sign * log_w) - np.log(n))
    w = np.exp(sign * (log_w - log_z))
    return LogZ(float(log_z), float(w.std() / np.sqrt(n)), float(log_w.mean()), float(log_w.std() / np.sqrt(n)), log_w, direction)


@jax.jit
def _forward(kernel: Kernel, target: Target, betas: jax.Array, words: jax.Array, chains: jax.Array) -> jax.Array:
    keys = jax.vmap(lambda c: chain_key(words, _ANNEALING, c))(chains)
    codes = jax.vmap(lambda key: target.space.random(random.fold_in(key, 0)))(keys)

    def anneal(t: jax.Array, carry: Any) -> Any:
        codes, f, log_w = carry
        log_w = log_w + (betas[t] - betas[t - 1]) * f
        codes, f = _moved(kernel, target, betas[t], keys, codes, t)
        return codes, f, log_w

    f = jax.vmap(target.value)(codes)
    return jax.lax.fori_loop(1, len(betas), anneal, (codes, f, jnp.zeros_like(f)))[2]


@jax.jit
def _reverse(kernel: Kernel, target: Target, betas: jax.Array, words: jax.Array, chains: jax.Array, codes: jax.Array) -> jax.Array:
    keys = jax.vmap(lambda c: chain_key(words, _ANNEALING, c))(chains)
    last = len(betas) - 1

    def anneal(i: jax.Array, carry: Any) -> Any:
        codes, log_w = carry
        t = last - i
        codes, f = _moved(kernel, target, betas[t], keys, codes, t)
        return codes, log_w + (betas[t] - betas[t - 1]) * f

    return jax.lax.fori_loop(0, last, anneal, (codes, jnp.zeros(len(codes), default_float())))[1]


def _moved(kernel: Kernel, target: Target, beta: jax.Array, keys: jax.Array, codes: jax.Array, t: jax.Array) -> tuple:
    """One step at this temperature, and f (at β = 1) where it ends."""
    hot = tempered(target, beta)

    def one(key: jax.Array, codes: jax.Array) -> tuple[jax.Array, jax.Array]:
        y, _ = kernel.step(random.fold_in(key, t), hot, kernel.init(hot, codes))
        return y.codes, target.value(y.codes)

    return jax.vmap(one)(keys, codes)
