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


@record
class UniformMH(Kernel):
    r"""Metropolis-Hastings with a uniform proposal; one value of f per step, never a gradient.

    Ordered spaces: every site uniform on the N(s_i) values within `radius` hops, boundaries corrected:
    $$ \log\alpha = f' - f + \sum_i [\log N(s_i) - \log N(s'_i)] $$
    Spaces whose values are all one hop apart: `radius` random sites take uniform values; log α = f' - f.
    """

    uses_local_model = False

    radius: Number

    def __post_init__(self) -> None:
        fill(self, radius=as_radius(self.radius))

    def init(self, target: Target, codes: jax.Array) -> Point:
        codes = self.check(target, codes)
        return Point(codes, target.value(codes))

    def propose(self, target: Target, x: Point, noise: None = None) -> Factorised | SiteBall:
        return hop_ball(target.space, x.codes, self.radius)

    def log_ratio(self, target: Target, x: Point, y: Point, noise: None = None) -> jax.Array:
        gap: Any = self.propose(target, x).log_normaliser_minus(self.propose(target, y))  # type: ignore[arg-type]
        return y.log_prob - x.log_prob + gap

    def log_definition(self, target: Target, x: Point, codes: jax.Array, noise: Any = None) -> jax.Array:
        """Counting: the number of choices of sites that could lead here, or whether every site is within reach."""
        hops = jnp.asarray(target.space.hop_table())[x.codes, codes]
        if target.space.diameter > 1:
            return jnp.where(jnp.max(hops) <= self.radius, 0.0, -jnp.inf)
        d = target.space.num_sites
        subsets = jnp.asarray([[(n >> i) & 1 for i in range(d)] for n in range(2**d)], jnp.int32)
        right_size = jnp.sum(subsets, axis=1, dtype=jnp.int32) == jnp.minimum(self.radius, d)
        covers = jnp.all(subsets >= hops, axis=1)
        return jnp.log(jnp.sum(right_size & covers).astype(x.log_prob.dtype))

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
