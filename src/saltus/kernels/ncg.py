"""NCG: all sites at once, half the gradient, a penalty on the distance."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .._record import Number, as_float, as_positive, fill, record
from ..proposals import Factorised
from ..target import Point, Target
from .base import Kernel
from .declarations import LOCAL_MODEL, Decades
from .textbook import differences, states


@record
class NCG(Kernel):
    r"""Norm-constrained gradient sampler (Eqs. 7-8, Algorithm 1 of Rhodes & Gutmann 2022); also known as DMALA.

    $$ q(s' \mid s) \propto \prod_i \exp\big(w D_i(s'_i) - c_i (s'_i - s_i)^2\big), \qquad c_i = p_i / 2\epsilon $$
    $$ \log\alpha = f' - f + w\,[D'(s' \to s) - D(s \to s')] + \Phi_s - \Phi_{s'} $$

    step_size: ε, in the unit of the space's values, squared; larger values move more sites per step.
    gradient_weight: w; ½ (the default) is the locally balanced choice, any other is as exact.
    penalty: p, a number or one per site: a diagonal preconditioner.
    """

    needs = LOCAL_MODEL
    tunes = {"step_size": Decades()}  # noqa: RUF012
    simplicity = 20
    cites = ("rhodes2022", "zhang2022")

    step_size: Number
    gradient_weight: Number = 0.5
    penalty: Number = 1.0

    def __post_init__(self) -> None:
        weight = as_float(self.gradient_weight, "gradient_weight")
        fill(self, step_size=as_positive(self.step_size, "step_size"), gradient_weight=weight)
        fill(self, penalty=as_positive(self.penalty, "penalty"))

    @classmethod
    def first(cls, target: Target, states: Any = None) -> NCG:
        """The paper's step size on its Ising model, ½ on {0, 1}."""
        return cls(0.5 * target.space.unit)

    def propose(self, target: Target, x: Point, noise: None = None) -> Factorised:
        # Divided last: XLA moves p / 2ε out of the loop once per use, and no longer sees that two uses are the same.
        penalty = target.space.quadratic(x.codes, self.penalty) * 0.5 / self.step_size
        return Factorised(self.gradient_weight * target.moves(x) - penalty)

    def log_ratio(self, target: Target, x: Point, y: Point, noise: None = None, forward: Factorised | None = None) -> jax.Array:
        # The penalty is symmetric in s and s' and cancels: it appears in Φ only.
        back = self.gradient_weight * (target.changes(y, x.codes) - target.changes(x, y.codes))
        plus = target.space.shares(y.log_prob - x.log_prob) + back
        return (forward or self.propose(target, x)).log_normaliser_minus(self.propose(target, y), plus)

    def log_definition(self, target: Target, x: Point, codes: jax.Array, noise: Any = None) -> jax.Array:
        """The printed proposal, un-normalised."""
        s, s_new = states(target, x.codes, codes)
        penalty = target.space.per_entry(self.penalty).ravel() / (2 * self.step_size)
        return self.gradient_weight * differences(target, x.codes, codes) - jnp.sum(penalty * (s_new - s) ** 2)

    def check_settings(self, target: Target) -> None:
        self.single("step_size")
        self.fits(target, "penalty")
