"""AVG: an auxiliary Gaussian makes the sites conditionally independent; full gradient plus noise."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .. import random
from .._record import Number, as_positive, fill, record
from ..proposals import Factorised
from ..target import Point, Target
from .base import Kernel
from .textbook import differences, states


@record
class AVG(Kernel):
    r"""Auxiliary-variable gradient sampler (Algorithm 2 of Rhodes & Gutmann 2022).

    $$ u \sim N(0, \tfrac{2}{\epsilon} I), \qquad
       q(s' \mid s, u) \propto \prod_i \exp\big(D_i(s'_i) + u_i (s'_i - s_i) - (s'_i - s_i)^2 / \epsilon\big) $$
    $$ \log\alpha = f' - f - D(s \to s') + \Phi_s(D, u) - \Phi_s(D', u) \qquad \text{both centred at } s $$

    The auxiliary z = sqrt(2/ε) s + n is never formed and its densities cancel. step_size: ε, as in NCG.
    """

    step_size: Number

    def __post_init__(self) -> None:
        fill(self, step_size=as_positive(self.step_size, "step_size"))

    def noise(self, key: jax.Array, target: Target) -> jax.Array:
        return jnp.sqrt(2 / self.step_size) * random.gauss(key, (target.space.size,))

    def propose(self, target: Target, x: Point, noise: jax.Array) -> Factorised:
        return Factorised(target.moves(x) + self._auxiliary(target, x, noise))

    def log_ratio(self, target: Target, x: Point, y: Point, noise: jax.Array) -> jax.Array:
        # The reverse move sees the same z, hence the same u, and is centred at s too: the Gaussian terms cancel.
        reverse = Factorised(target.moves(y).recentre(x.codes) + self._auxiliary(target, x, noise))
        error = target.space.shares(y.log_prob - x.log_prob) - target.changes(x, y.codes)
        return self.propose(target, x, noise).log_normaliser_minus(reverse, plus=error)

    def _auxiliary(self, target: Target, x: Point, u: jax.Array):
        return target.space.linear(x.codes, u) - target.space.quadratic(x.codes, jnp.ones_like(self.step_size)) / self.step_size

    def condition(self, target: Target, z: jax.Array, x: Point) -> jax.Array:
        """The noise at x for a fixed auxiliary: u(s) = z - (2/ε) s."""
        return z - 2 / self.step_size * states(target, x.codes)[0]

    def log_definition(self, target: Target, x: Point, codes: jax.Array, noise: jax.Array) -> jax.Array:
        """The printed, uncentred proposal: D + (sqrt(2/ε) z)·s' - |s'|²/ε with sqrt(2/ε) z = u + (2/ε) s."""
        s, s_new = states(target, x.codes, codes)
        pull = noise + 2 / self.step_size * s
        return differences(target, x.codes, codes) + jnp.sum(pull * s_new) - jnp.sum(s_new**2) / self.step_size
