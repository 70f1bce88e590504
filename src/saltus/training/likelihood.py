r"""How likely are data under a trained model? Annealed from independent sites that fit data, forward and back.

An RBM is annealed along f_β(v) = [(1-β) a_0 + β b]·v + Σ_j log(1 + exp(β (c_j + (vᵀW)_j))), which is the RBM with parameters
(βW, (1-β) a_0 + β b, βc): block Gibbs steps it at every β, and f_0 is that of independent sites, with
log Z_0 = m log 2 + Σ_i log Σ_v exp(a_0i v). Other models take the path of `saltus.training.ais`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from .. import random
from .._compiling import program
from .._record import as_size, default_float
from ..engine.arguments import read_seed
from ..engine.keys import ANNEALING, chain_key, seed_words
from ..errors import TrainingError
from ..evidence import LogZ, ais
from ..spaces import Space
from ..target import Target
from .codes import read_codes
from .models.bipartite import Sides
from .models.hidden import observed_log_prob, observed_space
from .models.rbm import fitted, free_energy
from .result import Trained
from .settings import read_model

_APART = 1.0  # nats between forward and reverse
_REVERSE = 1  # of the chains' numbers: the second set
_AT_ONCE = 2**12  # rows


@dataclass(frozen=True)
class Likelihood:
    """mean: of log p(x) over the data, in nats, with log Z from `forward`. error: its standard error, of log Z and of the rows.

    forward, reverse: `LogZ` from below and from above; reverse is None where no samples of the model were given.
    trusted: whether the effective sample size of the weights is at least 5 % of the chains, both ways, and the two estimates of
    log Z are within a nat. each: (rows,) f(x) - log Z.
    """

    mean: float
    error: float
    forward: LogZ
    reverse: LogZ | None
    each: np.ndarray

    @property
    def apart(self) -> float:
        """Nats between the two estimates of log Z; NaN where there is one."""
        return self.reverse.log_z - self.forward.log_z if self.reverse else float("nan")

    @property
    def trusted(self) -> bool:
        both = [run for run in (self.forward, self.reverse) if run]
        return all(run.trusted for run in both) and not abs(self.apart) > _APART

    def __repr__(self) -> str:
        runs = (
            f"log Z forward {self.forward.log_z:.6g}, ESS of the weights {self.forward.ess:.1f} of {len(self.forward.log_weights)}"
        )
        if self.reverse:
            runs += f"; reverse {self.reverse.log_z:.6g}, ESS {self.reverse.ess:.1f} of {len(self.reverse.log_weights)}"
        if self.trusted:
            return f"log-likelihood {self.mean:.5g} ± {self.error:.2g} nats a row ({runs})"
        return f"no number to trust: {self._why_not()} ({runs})"

    def _why_not(self) -> str:
        """What is known all the same, and the way out."""
        if self.apart < -_APART:
            found = f"the way back gives a log Z {-self.apart:.3g} nats lower than the way there, where it should be higher"
            return f"{found}: its chains do not represent the model, or both ways are too short. Give samples= of longer chains"
        low = f"{self.mean - max(self.apart, 0):.5g}" if self.reverse else "-inf"
        told = f"the log-likelihood lies somewhere between {low} and {self.mean:.5g} nats a row"
        if self.apart <= 0:
            told = f"{self.mean:.5g} nats a row rests on few of the weights"
        return f"{told}. More temperatures (num_temperatures) or more chains bring the two estimates of log Z together"


def log_likelihood(
    model: Any,
    data: Any,
    *,
    base: Any = None,
    samples: Any = None,
    num_temperatures: int = 1000,
    num_chains: int = 500,
    seed: int = 0,
) -> Likelihood:
    """Mean log-likelihood of data under a trained model, with log Z bounded from both sides, and a refusal where it cannot be told.

    model: what `pcd` returned, or a target.
    data: states of test data, one a row.
    base: states, such as training data, whose marginals the annealing begins at; default: `data`.
    samples: states of the model for the way back; default: the chains of a trained model, none of a target.
    num_temperatures, num_chains: of the annealing, default 1000 and 500.
    seed: an integer, default 0.
    Returns a `Likelihood`: .mean, .error, .trusted, .forward, .reverse.
    Raises SpaceError or TrainingError where something does not fit.
    """
    target, samples = _read(model, samples)
    space, seed = observed_space(target), read_seed(seed)
    temperatures = as_size(num_temperatures, "num_temperatures", TrainingError, most=2**31 - 1)
    chains = as_size(num_chains, "num_chains", TrainingError, most=2**31 - 1)
    codes = read_codes(space, data, "data")
    start = codes if base is None else read_codes(space, base, "base")
    back = None if samples is None else read_codes(space, samples, "samples")
    if observed_log_prob(target) is free_energy:
        anneal = _RBM(space, target.params, np.asarray(fitted(space, start)), temperatures, chains, seed)
        forward, reverse = anneal.forward(), None if back is None else anneal.reverse(back)
    else:
        settings: dict[str, Any] = dict(num_temperatures=temperatures, num_chains=chains, seed=seed, base=_marginals(space, start))
        forward = ais(target, **settings)
        reverse = None if back is None else ais(target, samples=space.show(back), **settings)
    f = np.asarray(_values(target, jnp.asarray(codes, space.code_dtype)), np.float64)
    each = f - forward.log_z
    error = float(np.hypot(forward.standard_error, each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan))
    return Likelihood(float(each.mean()), error, forward, reverse, each)


def _read(model: Any, samples: Any) -> tuple[Target, Any]:
    if isinstance(model, Trained):
        target = model.target
        chains = model.buffer["v"] if isinstance(model.buffer, dict) and "v" in model.buffer else model.buffer
        return target, chains if samples is None else samples
    return read_model(model), samples


def _marginals(space: Space, codes: np.ndarray) -> np.ndarray:
    """(d, k), half a count added to each."""
    counts = np.stack([(codes == value).sum(axis=0) for value in range(space.num_values)], axis=1) + 0.5
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


@program()
def _values(target: Target, codes: jax.Array) -> jax.Array:
    log_prob, space = observed_log_prob(target), observed_space(target)
    return jax.lax.map(lambda c: log_prob(target.params, space.embed(c)), codes, batch_size=min(_AT_ONCE, len(codes)))


@dataclass(frozen=True)
class _RBM:
    """The anneal of an RBM from independent sites of natural parameters `start`."""

    space: Space
    params: dict
    start: np.ndarray
    temperatures: int
    chains: int
    seed: int

    def _base(self) -> tuple[np.ndarray, float]:
        """((d, k) log-probabilities of the values of independent sites, up to a constant a site; log Z_0)."""
        values = self.space.values.reshape(self.space.num_values, -1)
        table = self.start.reshape(self.space.num_sites, -1) @ values.T
        return table, float(self.params["hidden"].size * np.log(2) + logsumexp(table, axis=1).sum())

    def forward(self) -> LogZ:
        table, log_z = self._base()
        rng = np.random.default_rng([self.seed, 7])
        codes = np.argmax(table + rng.gumbel(size=(self.chains, *table.shape)), axis=-1)
        weights = log_z + self._weights(codes, False)
        estimate = logsumexp(weights) - np.log(len(weights))
        return _told(estimate, weights, 1, "forward")

    def reverse(self, samples: np.ndarray) -> LogZ:
        rows = np.random.default_rng([self.seed, 8]).choice(len(samples), self.chains, replace=len(samples) < self.chains)
        weights = self._base()[1] + self._weights(samples[rows], True)
        return _told(np.log(len(weights)) - logsumexp(-weights), weights, -1, "reverse")

    def _weights(self, codes: np.ndarray, back: bool) -> np.ndarray:
        words = jnp.asarray(seed_words(self.seed))
        start = jnp.asarray(self.start, default_float())
        first, num = jnp.asarray(codes, self.space.code_dtype), np.int32(self.temperatures)
        return np.asarray(_anneal(Sides(self.space), back, self.params, start, first, words, num), np.float64)


def _told(estimate: float, weights: np.ndarray, sign: int, direction: str) -> LogZ:
    ratios = np.exp(sign * (weights - estimate))
    error, spread = ratios.std(ddof=1) / np.sqrt(len(weights)), weights.std(ddof=1) / np.sqrt(len(weights))
    return LogZ(float(estimate), float(error), float(weights.mean()), float(spread), weights, direction)


@program(static_argnums=(0, 1))
def _anneal(sides: Sides, back: bool, params: dict, start: jax.Array, codes: jax.Array, words: jax.Array, num: Any) -> jax.Array:
    """(chains,) Σ_t f_{β_t} - f_{β_{t-1}}, with a step of block Gibbs at β_t after each, or before it on the way back."""
    d, m, units = sides.space.num_sites, params["hidden"].size, random.num_units(sides.space.num_values)
    field = lambda beta: (1 - beta) * start + beta * params["visible"]  # noqa: E731

    def value(beta: jax.Array, visible: jax.Array, pull: jax.Array) -> jax.Array:
        return jnp.sum(sides.space.embed(visible) * field(beta)) + jnp.sum(jax.nn.softplus(beta * pull))

    def step(key: jax.Array, beta: jax.Array, visible: jax.Array, pull: jax.Array) -> jax.Array:
        u = random.unit(key, (m + units * d,))
        h = (u[:m] < jax.nn.sigmoid(beta * pull)).astype(pull.dtype)
        on_visible = jnp.ravel(field(beta)) + beta * jnp.matmul(params["weights"], h)
        return sides.chosen(visible, on_visible, u[m:].reshape(units, d))

    def chain(number: jax.Array, visible: jax.Array) -> jax.Array:
        key = chain_key(words, ANNEALING, number)

        def one(t: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            visible, weight = carry
            level, own = (num - t if back else t + 1), random.fold_in(key, t)
            new, old = level / num.astype(weight.dtype), (level - 1) / num.astype(weight.dtype)
            if back:
                visible = step(own, new, visible, sides.on_hidden(params, visible))
            pull = sides.on_hidden(params, visible)
            weight = weight + value(new, visible, pull) - value(old, visible, pull)
            return (visible if back else step(own, new, visible, pull)), weight

        return jax.lax.fori_loop(0, num, one, (visible, jnp.zeros((), default_float())))[1]

    return jax.vmap(chain)(_REVERSE * back * 2**20 + jnp.arange(len(codes)), codes)
