"""What AVG and PAVG share beyond the paper: a momentum that is kept from step to step, and over-relaxed draws."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._fusion import total
from .._record import as_float, changed, default_float, fill, is_concrete, record
from ..errors import KernelError
from ..proposals import Factorised, OverRelaxed
from ..target import Point, Target
from .base import Kernel
from .metropolis import Info, metropolis


@record
class Moving(Point):
    """A state with the auxiliary noise w (n,) it has come with, negated: the momentum. Its law is N(0, Σ_ε), whatever the codes."""

    momentum: Any = None


@record
class Auxiliary(Kernel):
    r"""A sampler with auxiliary Gaussian noise u ~ N(0, Σ_ε), to which a momentum ρ and over-relaxed draws may be added.

    $$ w = \rho w_{old} + \sqrt{1 - \rho^2}\, u, \qquad w_{new} = -(w - \Sigma_\epsilon \Delta) \text{ if accepted, else } -w $$

    with w in place of u (Discrete-HAMS, Zhou & Tan 2025; PAVG where ρ = 0). Subclasses have `momentum` (None or ρ) and
    `over_relaxed`, and say `bend(target, Δ)`, Σ_ε Δ less its diagonal shift, and `shift()`.
    """

    name = ""  # AVG and PAVG are samplers

    momentum = None  # fields of the subclasses, behind their own
    over_relaxed = False

    def check_momentum(self) -> None:
        """Fields as they are kept."""
        if not isinstance(self.over_relaxed, bool):
            raise KernelError("`over_relaxed` is not a choice.", expected="True or False", found=repr(self.over_relaxed))
        if self.momentum is None:
            return
        rho = as_float(self.momentum, "momentum")
        if is_concrete(rho) and not ((np.asarray(rho) >= 0) & (np.asarray(rho) < 1)).all():
            raise KernelError("`momentum` is not a share.", expected="0 <= momentum < 1", found=str(np.asarray(rho)))
        fill(self, momentum=rho)

    @property
    def plain(self) -> bool:
        return self.momentum is None

    def bend(self, delta: jax.Array) -> jax.Array:
        """γΣΔ."""
        raise NotImplementedError

    def shift(self) -> jax.Array:
        """d, a number or one an entry: Σ_ε = γΣ + diag(d)."""
        raise NotImplementedError

    def init(self, target: Target, codes: jax.Array, key: Any = None) -> Any:
        x = super().init(target, codes)
        if self.plain:
            return x
        w = jnp.zeros(target.space.size, default_float()) if key is None else self.noise(key, target)
        return Moving(x.codes, x.log_prob, x.local, x.stamp, w)

    def refresh(self, target: Target, state: Any) -> Any:
        x = self.init(target, state.codes)
        return x if self.plain else changed(x, momentum=state.momentum)

    def step(self, key: jax.Array, target: Target, x: Any) -> tuple[Any, Info]:
        if self.plain:
            return super().step(key, target, x)
        noise_key, move_key, accept_key = random.split(key, 3)
        rho: Any = self.momentum
        w = rho * x.momentum + jnp.sqrt(1 - rho**2) * self.noise(noise_key, target)
        forward = self.propose(target, x, w)
        y = self.init(target, forward.sample(move_key).astype(x.codes.dtype))
        delta = target.space.displacement(x.codes, y.codes)
        ratio = self.log_ratio(target, x, y, w, forward)
        # Negated on acceptance and on rejection.
        there = changed(y, momentum=self.bend(delta) + self.shift() * delta - w)
        return metropolis(accept_key, target.space, changed(x, momentum=-w), there, ratio)

    def propose(self, target: Target, x: Point, noise: jax.Array) -> Any:
        moves = target.moves(x) + self.pull(target, x, noise)
        return OverRelaxed(moves) if self.over_relaxed else Factorised(moves)

    def pull(self, target: Target, x: Point, u: jax.Array) -> Any:
        """u_i (v - s_i) - (d_i / 2) (v - s_i)²."""
        raise NotImplementedError

    def relaxed_ratio(self, target: Target, x: Point, y: Point, forward: OverRelaxed, noise: jax.Array) -> jax.Array:
        r"""f' - f + D'(s' → s) + ½ ΔᵀγΣΔ + score'(s') + Σ_i log K'_i / K_i, scores centred at s, added up site by site."""
        delta = target.space.displacement(x.codes, y.codes)
        bend = self.bend(delta)
        reverse = target.moves(y).recentre(x.codes) + self.pull(target, x, noise - bend)
        plus = target.space.shares(y.log_prob - x.log_prob) + target.changes(y, x.codes)
        plus = plus + target.space.per_site(0.5 * delta * bend) + reverse.each(y.codes)
        return total(plus + OverRelaxed(reverse.recentre(y.codes)).each(x.codes) - forward.each(y.codes))
