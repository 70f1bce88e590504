r"""Annealed importance sampling: the normaliser of a model, from below and from above.

Along f_β, β from 0 (independent sites, `path`) to 1, with any kernel K_β that leaves exp(f_β) invariant:

    forward   s ~ p_0; for t = 1..T:  log w += (β_t - β_{t-1}) V(s),  s <- K_{β_t}(s)       E w = Z / Z_0
    reverse   s ~ p;   for t = T..1:  s <- K_{β_t}(s),  log w += (β_t - β_{t-1}) V(s)       E 1/w = Z_0 / Z

By Jensen's inequality the mean of log w is below log Z - log Z_0 forward, and above it in reverse.
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
from .._record import as_size, default_float
from ..engine.arguments import read_seconds, read_seed, read_target
from ..engine.keys import ANNEALING, chain_key, seed_words
from ..engine.loop import step_chains
from ..engine.recording import kept_codes
from ..engine.samplers import AUTO, check_kernel_fits
from ..engine.starts import read_states
from ..errors import ConvergenceWarning, KernelError, TrainingError
from ..kernels import NCG, Kernel, begin
from ..kernels.path import Path, read_base
from ..target import Target
from ..tuning import kernel_for

_TRIED = 4  # temperatures, to see how long one takes
_START = 2**31 - 1  # of the key of a state's other parts
_FEW = 0.05  # of the chains: with a smaller effective number of weights the estimate is not to be trusted


@dataclass(frozen=True)
class LogZ:
    """log_z: the estimate. bound: below log Z in expectation (forward) or above it (reverse), with its standard error.

    ess: effective sample size of the weights, (Σ w)² / Σ w²: as many equal weights would say as much. trusted: whether that is
    at least 5 % of the chains; where it is not, a few chains decide, and the standard error is too small.

    standard_error: of log_z. bound_error: of the bound. direction: "forward" or "reverse".
    """

    log_z: float
    standard_error: float
    bound: float
    bound_error: float
    log_weights: np.ndarray  # one a chain, log Z_0 included
    direction: str
    cut: str = ""  # what a time limit left out, in words

    @property
    def ess(self) -> float:
        sign = 1 if self.direction == "forward" else -1
        return float(np.exp(2 * logsumexp(sign * self.log_weights) - logsumexp(2 * sign * self.log_weights)))

    @property
    def trusted(self) -> bool:
        return self.ess >= _FEW * len(self.log_weights)

    def __repr__(self) -> str:
        side = "lower" if self.direction == "forward" else "upper"
        told = f"log Z = {self.log_z:.6g} ± {self.standard_error:.2g} ({side} bound {self.bound:.6g} ± {self.bound_error:.2g})"
        told += f", ESS of the weights {self.ess:.1f} of {len(self.log_weights)}"
        return told + ("" if self.trusted else ": too few, do not trust this number; only the bound holds")


def tempered(target: Target, beta: Any) -> Target:
    """The target whose log_prob is β times this one's: `target.tempered(beta)`, which says more."""
    return read_target(target).tempered(beta)


def ais(
    target: Target,
    kernel: Any = AUTO,
    *,
    num_temperatures: int = 500,
    num_chains: int = 1000,
    seed: int = 0,
    samples: Any = None,
    time_limit: float | None = None,
    base: Any = None,
) -> LogZ:
    """log Z of a target, Z = Σ_s exp f(s), by annealing.

    target: a `saltus.Target`.
    kernel: one step at each temperature; a kernel, a sampler's class or name, which is tuned at β = 1, or "auto": Gibbs sweeps, and
        NCG in reverse. The reverse run needs a reversible one.
    num_temperatures, num_chains: of the anneal; more temperatures make the weights more even, more chains the mean more certain.
    seed: an integer; the same one gives the same estimate.
    samples: None anneals from independent sites and bounds log Z from below; states drawn from the model anneal back from them
        and bound it from above. The two runs bracket log Z as far as the samples are the model's.
    time_limit: seconds from the call. Where they are not enough for all temperatures there are fewer, at least one; a warning
        and the result's `cut` say so.
    base: where to begin: None, uniform; or marginals of the sites, (d, k), or (d,) probabilities of the second of two values, such
        as means of the data, smoothed. The nearer to the target's, the more even are the weights.
    Returns a `LogZ` with .log_z, .standard_error, .ess and .bound. A `ConvergenceWarning` where the effective sample size of the
    weights is under 5 % of the chains. Raises TrainingError or KernelError where something cannot be used.

        print(saltus.training.ais(saltus.targets.ising((10, 10), 0.3), "auto", num_temperatures=200))
    """
    deadline = time.monotonic() + (read_seconds(time_limit, "time_limit") or np.inf)
    target, seed = read_target(target), read_seed(seed)
    num = as_size(num_temperatures, "num_temperatures", TrainingError)
    num_chains = as_size(num_chains, "num_chains", TrainingError)
    path = Path(target, read_base(base, target.space))
    kernel = _chosen(kernel, target, seed, reverse=samples is not None)
    check_kernel_fits(kernel, path.at(0.5) if base is not None else target)
    numbers, words = jnp.arange(num_chains), jnp.asarray(seed_words(seed))
    if samples is None:
        log_w, cut = _in_time(lambda betas, stop: _forward(kernel, path, betas, words, numbers, stop), num, deadline)
        return _summary(log_w + path.log_start, 1, "forward", cut)
    codes = np.resize(read_states(target.space, samples, "samples"), (num_chains, target.space.num_sites))
    first = jnp.asarray(codes, target.space.code_dtype)
    log_w, cut = _in_time(lambda betas, stop: _reverse(kernel, path, betas, words, numbers, first, stop), num, deadline)
    return _summary(log_w + path.log_start, -1, "reverse", cut)


def _chosen(given: Any, target: Target, seed: int, reverse: bool) -> Kernel:
    """The kernel that is meant, tuned where it is not yet, and reversible where that is needed."""
    auto = isinstance(given, str) and given.lower() == AUTO
    kernel = kernel_for(target, NCG if auto and reverse else given, seed)
    if reverse and not getattr(kernel, "reversible", True):
        raise KernelError(
            "The reverse run needs a reversible kernel.",
            expected="one step of which is reversible",
            found=repr(kernel),
            hint='saltus.NCG(step_size), saltus.GWG() and saltus.Gibbs() are; kernel="auto" takes NCG, tuned',
        )
    return kernel


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
    errors = _error(sign * (log_w - log_z)), float(log_w.std() / np.sqrt(n))
    found = LogZ(float(log_z), errors[0], float(log_w.mean()), errors[1], log_w, direction, cut)
    if not found.trusted:
        warnings.warn(
            f"The weights of annealing have an effective sample size of {found.ess:.1f} of {n} chains: log Z and its error are not "
            "to be trusted, only the bound is. More temperatures, a better sampler or base=marginals help, and so does "
            "saltus.log_z(target).",
            ConvergenceWarning,
            stacklevel=3,
        )
    return found


def _error(log_w: np.ndarray) -> float:
    """The standard error of log mean(w), for weights of mean 1.

    The variance of w is too small where the largest weights happen not to be drawn, and that is where their mean is too small too.
    The spread of log w above its median is known better: with it, log-normal weights have the variance exp(σ²) - 1. The mean
    of both variances is used (`python -m benchmarks.log_z_coverage ais` counts how often intervals cover).
    """
    middle, high = np.quantile(log_w, (0.5, 0.975))
    sigma = (high - middle) / 1.96
    variance = (np.exp(log_w).var() + np.expm1(min(sigma**2, 100.0))) / 2
    return float(np.sqrt(variance / len(log_w)))


@program()
def _forward(kernel: Kernel, path: Path, betas: jax.Array, words: jax.Array, chains: jax.Array, num: Any) -> jax.Array:
    keys = jax.vmap(lambda c: chain_key(words, ANNEALING, c))(chains)
    codes = jax.vmap(lambda key: path.draw(random.fold_in(key, 0)))(keys)

    def anneal(t: jax.Array, carry: Any) -> Any:
        codes, f, log_w = carry
        log_w = log_w + (betas[t] - betas[t - 1]) * f
        codes, f = _moved(kernel, path, betas[t], keys, codes, t)
        return codes, f, log_w

    f = jax.vmap(path.gain)(codes)
    return jax.lax.fori_loop(1, num + 1, anneal, (codes, f, jnp.zeros_like(f)))[2]


@program()
def _reverse(
    kernel: Kernel, path: Path, betas: jax.Array, words: jax.Array, chains: jax.Array, codes: jax.Array, num: Any
) -> jax.Array:
    keys = jax.vmap(lambda c: chain_key(words, ANNEALING, c))(chains)

    def anneal(i: jax.Array, carry: Any) -> Any:
        codes, log_w = carry
        t = num - i
        codes, f = _moved(kernel, path, betas[t], keys, codes, t)
        return codes, log_w + (betas[t] - betas[t - 1]) * f

    return jax.lax.fori_loop(0, num, anneal, (codes, jnp.zeros(len(codes), default_float())))[1]


def _moved(kernel: Kernel, path: Path, beta: jax.Array, keys: jax.Array, codes: jax.Array, t: jax.Array) -> tuple:
    """One step at this temperature, and V where it ends.

    The target is another one at every temperature, so the states are begun anew at their codes.
    """
    hot = path.at(beta)
    starts = jax.vmap(lambda key: random.fold_in(random.fold_in(key, t), _START))(keys)
    states = jax.vmap(lambda c, key: begin(kernel, hot, c, key))(codes, starts)
    states, _ = step_chains(kernel, hot, keys, t, states)
    codes = kept_codes(kernel, path.target, states)
    return codes, jax.vmap(path.gain)(codes)
