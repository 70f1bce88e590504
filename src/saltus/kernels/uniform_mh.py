"""UniformMH: the baseline that knows nothing but f."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import Number, as_radius, fill, is_concrete, record
from ..errors import KernelError
from ..proposals import Factorised, SiteBall, hop_ball
from ..spaces import Space
from ..target import Point, Target
from .base import Kernel
from .declarations import VALUES, Radii


@record
class UniformMH(Kernel):
    r"""Metropolis-Hastings with a uniform proposal; one value of f per step, never a gradient.

    Ordered spaces: every site uniform on the N(s_i) values within `radius` hops, boundaries corrected:
    $$ \log\alpha = f' - f + \sum_i [\log N(s_i) - \log N(s'_i)] $$
    Spaces whose values are all one hop apart: `radius` random sites take uniform values; log α = f' - f.
    """

    needs = VALUES
    tunes = {"radius": Radii()}  # noqa: RUF012
    simplicity = 50
    cites = ("metropolis1953",)

    radius: Number

    def __post_init__(self) -> None:
        fill(self, radius=as_radius(self.radius))

    @classmethod
    def first(cls, target: Target, states: Any = None) -> UniformMH:
        return cls(1)

    @classmethod
    def last_resort(cls, space: Space) -> bool:
        """Where all values are one hop apart: it moves wherever anything can, and slowly."""
        return space.diameter == 1

    def propose(self, target: Target, x: Point, noise: None = None) -> Factorised | SiteBall:
        return hop_ball(target.space, x.codes, self.radius)

    def log_ratio(self, target: Target, x: Point, y: Point, noise: None = None, forward: Any = None) -> jax.Array:
        back: Any = self.propose(target, y)
        gap = (forward or self.propose(target, x)).log_normaliser_minus(back)
        return y.log_prob - x.log_prob + gap

    def log_definition(self, target: Target, x: Point, codes: jax.Array, noise: Any = None) -> jax.Array:
        """Counting: the choices of sites and values that could lead here, or whether every site is within reach."""
        hops = target.space.hops(x.codes.astype(jnp.int32), codes.astype(jnp.int32))
        if target.space.diameter > 1:
            return jnp.where(jnp.max(hops) <= self.radius, 0.0, -jnp.inf)
        d = target.space.num_sites
        subsets = jnp.asarray([[(n >> i) & 1 for i in range(d)] for n in range(2**d)], jnp.int32)
        right_size = jnp.sum(subsets, axis=1, dtype=jnp.int32) == jnp.minimum(self.radius, d)
        covers = jnp.all(subsets >= hops, axis=1)
        choices = jnp.prod(
            jnp.asarray(target.space.num_values_per_site, x.log_prob.dtype) ** (-subsets).astype(x.log_prob.dtype), axis=1
        )
        return jnp.log(jnp.sum(jnp.where(right_size & covers, choices, 0)))

    def largest_radius(self, space: Space) -> int:
        """Hops across the space, or all sites where any two values are one hop apart."""
        return space.num_sites if space.diameter == 1 else space.num_values - 1

    def check_settings(self, target: Target) -> None:
        self.single("radius")
        space = target.space
        most = self.largest_radius(space)
        if is_concrete(self.radius) and int(np.asarray(self.radius)) > most:
            raise KernelError(
                f"`radius` is larger than {space} allows.",
                expected=f"at most {most}",
                found=str(int(self.radius)),
                hint="on spaces without an order the radius counts sites" if space.diameter == 1 else "",
            )
