"""AVG: an auxiliary Gaussian makes the sites conditionally independent; full gradient plus noise."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .. import random
from .._record import Number, as_positive, fill, record, static
from ..proposals import Factorised
from ..target import Point, Target
from .auxiliary import Auxiliary
from .declarations import LOCAL_MODEL, Decades, Persistence
from .textbook import differences, states


@record
class AVG(Auxiliary):
    r"""Auxiliary-variable gradient sampler (Algorithm 2 of Rhodes & Gutmann 2022).

    $$ u \sim N(0, \tfrac{2}{\epsilon} I), \qquad
       q(s' \mid s, u) \propto \prod_i \exp\big(D_i(s'_i) + u_i (s'_i - s_i) - (s'_i - s_i)^2 / \epsilon\big) $$
    $$ \log\alpha = f' - f - D(s \to s') + \Phi_s(D, u) - \Phi_s(D', u) \qquad \text{both centred at } s $$

    The auxiliary z = sqrt(2/ε) s + n is never formed and its densities cancel. step_size: ε, as in NCG. momentum: None, or
    ρ in [0, 1), the share of u that is kept from step to step. over_relaxed: sites go to the other side of their
    distributions (`proposals.OverRelaxed`) instead of being drawn from them.
    """

    needs = LOCAL_MODEL
    tunes = {"step_size": Decades(), "momentum": Persistence()}  # noqa: RUF012
    simplicity = 40
    cites = ("rhodes2022",)

    step_size: Number
    momentum: Number = None
    over_relaxed: bool = static(default=False)

    def __post_init__(self) -> None:
        fill(self, step_size=as_positive(self.step_size, "step_size"))
        self.check_momentum()

    @classmethod
    def first(cls, target: Target, states: Any = None) -> AVG:
        """The paper's step size on its Ising model, 0.2 on {0, 1}."""
        return cls(0.2 * target.space.unit)

    def noise(self, key: jax.Array, target: Target) -> jax.Array:
        return jnp.sqrt(2 / self.step_size) * random.gauss(key, (target.space.size,))

    def log_ratio(self, target: Target, x: Point, y: Point, noise: jax.Array, forward: Any = None) -> jax.Array:
        forward = forward or self.propose(target, x, noise)
        if self.over_relaxed:
            return self.relaxed_ratio(target, x, y, forward, noise)
        # The reverse move sees the same z, hence the same u, and is centred at s too: the Gaussian terms cancel.
        reverse = Factorised(target.moves(y).recentre(x.codes) + self.pull(target, x, noise))
        error = target.space.shares(y.log_prob - x.log_prob) - target.changes(x, y.codes)
        return forward.log_normaliser_minus(reverse, plus=error)

    def bend(self, delta: jax.Array) -> jax.Array:
        return jnp.zeros_like(delta)

    def shift(self) -> jax.Array:
        return 2 / self.step_size

    def pull(self, target: Target, x: Point, u: jax.Array) -> Any:
        return target.space.linear(x.codes, u) - target.space.quadratic(x.codes, jnp.ones_like(self.step_size)) / self.step_size

    def condition(self, target: Target, z: jax.Array, x: Point) -> jax.Array:
        """The noise at x for a fixed auxiliary: u(s) = z - (2/ε) s."""
        return z - 2 / self.step_size * states(target, x.codes)[0]

    def log_definition(self, target: Target, x: Point, codes: jax.Array, noise: jax.Array) -> jax.Array:
        """The printed, uncentred proposal: D + (sqrt(2/ε) z)·s' - |s'|²/ε with sqrt(2/ε) z = u + (2/ε) s."""
        if self.over_relaxed:  # intervals below 1e-4 cannot be told from 1 - F: `overlaps` is tested on its own
            return self.propose(target, x, noise).log_prob(codes)
        s, s_new = states(target, x.codes, codes)
        pull = noise + 2 / self.step_size * s
        return differences(target, x.codes, codes) + jnp.sum(pull * s_new) - jnp.sum(s_new**2) / self.step_size
