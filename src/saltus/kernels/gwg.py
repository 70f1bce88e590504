"""GWG: one site a step, chosen by the local model."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .._fusion import total
from .._record import Number, as_radius, fill, record
from ..proposals import SingleSite
from ..spaces import Space
from ..target import Point, Target
from .base import Kernel
from .declarations import LOCAL_MODEL, Radii
from .textbook import differences


@record
class GWG(Kernel):
    r"""Gibbs-with-gradients (Grathwohl et al. 2021), and the paper's ordinal version: one site moves, at most `radius` hops.

    $$ q(s' \mid s) = \mathrm{softmax}_{(i, v \ne s_i)}\big(\tfrac12 D_i(v)\big), \qquad
       \log\alpha = f' - f + \tfrac12 [D'(s' \to s) - D(s \to s')] + L(s) - L(s') $$

    radius: hops, 1 between any two categories. Staying is not in the support, so on two values a flat target gives a
    chain of period 2: keep an odd number of steps between draws.
    """

    needs = LOCAL_MODEL
    tunes = {"radius": Radii()}  # noqa: RUF012
    simplicity = 30
    cites = ("grathwohl2021",)

    radius: Number = 1

    def __post_init__(self) -> None:
        fill(self, radius=as_radius(self.radius))

    def propose(self, target: Target, x: Point, noise: None = None) -> SingleSite:
        return SingleSite(0.5 * target.moves(x) + target.space.within(x.codes, self.radius))

    def log_ratio(self, target: Target, x: Point, y: Point, noise: None = None, forward: SingleSite | None = None) -> jax.Array:
        back = 0.5 * total(target.changes(y, x.codes) - target.changes(x, y.codes))
        gap = (forward or self.propose(target, x)).log_normaliser() - self.propose(target, y).log_normaliser()
        return y.log_prob - x.log_prob + back + gap

    def log_definition(self, target: Target, x: Point, codes: jax.Array, noise: Any = None) -> jax.Array:
        """½ D on the moves of one site within `radius` hops, -inf elsewhere."""
        hops = target.space.hops(x.codes.astype(jnp.int32), codes.astype(jnp.int32))
        admissible = (jnp.sum(hops > 0) == 1) & (jnp.max(hops) <= self.radius)
        return jnp.where(admissible, 0.5 * differences(target, x.codes, codes), -jnp.inf)

    def largest_radius(self, space: Space) -> int:
        """Hops across the space."""
        return space.diameter

    def keeps_parity(self, space: Space) -> bool:
        return space.num_values == 2

    def check_settings(self, target: Target) -> None:
        self.single("radius")
