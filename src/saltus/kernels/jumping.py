"""What samplers that always move share: rates of all changes of one site, one of them taken, and a weight for the state."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import changed, default_float, record
from ..spaces import Space
from ..target import Point, Target
from .base import Kernel
from .declarations import VALUES
from .metropolis import Info, metropolis


@record
class Rated(Point):
    """A state with log of the rates at which it is left: (d, k), -inf for staying and for what is impossible."""

    rates: Any = None


@record
class Jump:
    """One site takes another value, in proportion to its rate; a state that nothing leaves stays."""

    codes: jax.Array
    rates: jax.Array  # (d, k), logarithms

    def sample(self, key: jax.Array) -> jax.Array:
        top = jnp.max(self.rates)
        weights = jnp.where(jnp.isfinite(top), jnp.exp(self.rates - top), 0)
        index, k = random.categorical(key, weights.ravel()), self.rates.shape[1]
        moved = self.codes.at[index // k].set((index % k).astype(self.codes.dtype))
        return jnp.where(jnp.isfinite(top), moved, self.codes)

    def log_prob(self, codes: jax.Array) -> jax.Array:
        every = jax.nn.logsumexp(self.rates)
        each = jnp.take_along_axis(self.rates, codes[:, None].astype(jnp.int32), axis=1)[:, 0]
        differs = codes != self.codes
        jump = jnp.where(jnp.sum(differs) == 1, jnp.sum(jnp.where(differs, each, 0)) - every, -jnp.inf)
        return jnp.where(jnp.isfinite(every), jump, jnp.where(jnp.any(differs), -jnp.inf, 0.0)).astype(default_float())


@record
class Jumping(Kernel):
    """From exact differences: every change of one site has a rate, one is drawn in proportion, a state counts 1 / sum of rates.

    Rates are such that π(s) rate(s → s') is symmetric, so the chain is stationary for π(s) times their sum. Impossible states
    have rate 0: they would be entered with weight 0, and nothing is lost without them.
    """

    name = ""  # `log_rates` makes a sampler of it
    needs = VALUES
    rejects = False
    races = False

    def init(self, target: Target, codes: jax.Array, key: Any = None) -> Rated:
        return self._at(target, self.check(target, codes))[0]

    def _at(self, target: Target, codes: jax.Array) -> tuple[Rated, jax.Array]:
        """(the state there, how many of its neighbours are undefined)."""
        f = target.value(codes)
        x = Point(codes, f, stamp=target.stamp)
        rows, undefined = target.exact_rows(x, jnp.arange(len(codes), dtype=jnp.int32))
        now = codes[:, None].astype(jnp.int32)
        here = now == jnp.arange(rows.shape[1], dtype=jnp.int32)
        odds = jnp.where(here, 0, rows - jnp.take_along_axis(rows, now, axis=1))  # log π(s') / π(s)
        rates = jnp.where(here | ~(odds > -jnp.inf), -jnp.inf, self.log_rates(target, codes, odds))
        return Rated(codes, f, None, target.stamp, rates), undefined

    def log_rates(self, target: Target, codes: jax.Array, odds: jax.Array) -> jax.Array:
        """(d, k) log of the rates, from log π(s') / π(s), 0 at the current values. Those of impossible states do not count."""
        raise NotImplementedError

    def log_weight(self, state: Rated) -> jax.Array:
        every = jax.nn.logsumexp(state.rates)
        return jnp.where(jnp.isfinite(every), -every, 0.0).astype(default_float())  # what nothing leaves, nothing enters

    def step(self, key: jax.Array, target: Target, x: Rated) -> tuple[Any, Info]:
        move_key, accept_key = random.split(key)
        codes = self.propose(target, x).sample(move_key)
        there, undefined = self._at(target, codes)
        y, info = metropolis(accept_key, target.space, x, there, self.log_ratio(target, x, there))
        return y, changed(info, undefined=info.undefined + undefined)

    def propose(self, target: Target, x: Rated, noise: None = None) -> Jump:
        return Jump(x.codes, x.rates)

    def log_ratio(self, target: Target, x: Rated, y: Rated, noise: None = None, forward: Any = None) -> jax.Array:
        """Zero: π(s) / w(s) times the probability of the jump is the same both ways."""
        return jnp.zeros((), default_float())

    def marginals(self, target: Target, s: Any, log_weight: Any) -> np.ndarray:
        r"""(d, k) Rao-Blackwellised marginals of weighted draws, sum_t w_t p(s_i = v | rest of draw t) / sum_t w_t.

        s: draws as a person reads them, (..., d); log_weight: (...), as in run["weighted_posterior"]. Impossible values count 0.
        """
        codes = target.space.encode(s, "s").reshape(-1, target.space.num_sites)
        w = np.exp(np.asarray(log_weight, np.float64).ravel() - np.max(log_weight))
        given = np.asarray(_all_conditionals(target, jnp.asarray(codes)), np.float64)
        return np.einsum("t,tdk->dk", w / w.sum(), given)

    def keeps_parity(self, space: Space) -> bool:
        return space.num_values == 2

    def evaluations(self, target: Target) -> int:
        d, k = target.space.num_sites, target.space.num_values
        return 1 if target.differences.closed_form else 1 + d * (k - 1)

    def check_settings(self, target: Target) -> None:
        """Fits every target."""


@jax.jit
def _all_conditionals(target: Target, codes: jax.Array) -> jax.Array:
    """(draws, d, k) p(s_i = v | rest)."""

    def one(codes: jax.Array) -> jax.Array:
        x = Point(codes, target.value(codes))
        return jax.nn.softmax(target.exact_rows(x, jnp.arange(len(codes), dtype=jnp.int32))[0], axis=1)

    return jax.lax.map(one, codes, batch_size=64)
