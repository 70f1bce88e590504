"""PAVG: AVG whose noise knows how sites vary together."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import Number, as_float, as_positive, fill, record, static
from ..errors import KernelError
from ..moves import Moves
from ..preconditioners import Diagonal, as_preconditioner
from ..proposals import Factorised
from ..spaces import Space
from ..structure import SiteQuadratic
from ..target import Point, Target
from .auxiliary import Auxiliary
from .avg import AVG
from .declarations import LOCAL_MODEL, Decades, Fit, Persistence, Signed
from .textbook import differences, states


@record
class PAVG(Auxiliary):
    r"""Preconditioned auxiliary-variable gradient sampler (Algorithm 3 of Rhodes & Gutmann 2022), any symmetric Σ.

    $$ u \sim N(0, \gamma\Sigma + \mathrm{diag}(d)), \qquad
       q(s' \mid s, u) \propto \prod_i \exp\big(D_i(s'_i) + u_i (s'_i - s_i) - \tfrac{d_i}{2} (s'_i - s_i)^2\big) $$
    $$ \log\alpha = f' - f - D(s \to s') - \tfrac12 \Delta^\top \gamma\Sigma\Delta
       + \Phi_s(D, u) - \Phi_s(D', u - \gamma\Sigma\Delta) $$

    d is the least shift that makes γΣ + diag(d) positive semi-definite, plus 2/ε. With Σ the Hessian of a quadratic f
    every move is accepted. step_size: ε. preconditioner: a symmetric (n, n) array or Dense, Diagonal, LowRank, Sparse.
    scale: γ, of either sign. momentum, over_relaxed: as in AVG. With exact or hessian_diag local models Σ should have no
    on-site part: D has it already.
    """

    needs = LOCAL_MODEL
    tunes = {  # noqa: RUF012
        "step_size": Decades(),
        "scale": Signed(),
        "preconditioner": Fit(warmup=AVG),
        "momentum": Persistence(),
    }
    simplicity = 60
    cites = ("rhodes2022",)

    step_size: Number
    preconditioner: Any
    scale: Number = 1.0
    momentum: Number = None
    over_relaxed: bool = static(default=False)

    def __post_init__(self) -> None:
        fill(self, step_size=as_positive(self.step_size, "step_size"), scale=as_float(self.scale, "scale"))
        fill(self, preconditioner=as_preconditioner(self.preconditioner))
        self.check_momentum()

    @classmethod
    def first(cls, target: Target, states: Any = None) -> PAVG:
        """The paper's step size; Σ the covariance of the states, else the target's own Hessian, else nothing (it is AVG then)."""
        space, own = target.space, target.find(SiteQuadratic)
        if states is not None:
            return cls(0.2 * space.unit, covariance(space, states), scale=space.unit**-2)
        return cls(0.2 * space.unit, Diagonal(np.zeros(space.size)) if own is None else own.coupling)

    def noise(self, key: jax.Array, target: Target) -> jax.Array:
        return self.preconditioner.noise(key, self.scale, 2 / self.step_size)

    def log_ratio(self, target: Target, x: Point, y: Point, noise: jax.Array, forward: Any = None) -> jax.Array:
        forward = forward or self.propose(target, x, noise)
        if self.over_relaxed:
            return self.relaxed_ratio(target, x, y, forward, noise)
        delta = target.space.displacement(x.codes, y.codes)
        bend = self.bend(delta)
        # Centred at s like the forward move; centring it at s' is a bug that only the fixed-z test sees.
        reverse = Factorised(target.moves(y).recentre(x.codes) + self.pull(target, x, noise - bend))
        predicted = target.changes(x, y.codes) + target.space.per_site(0.5 * delta * bend)
        error = target.space.shares(y.log_prob - x.log_prob) - predicted
        return forward.log_normaliser_minus(reverse, plus=error)

    def bend(self, delta: jax.Array) -> jax.Array:
        return self.scale * self.preconditioner.matvec(delta)

    def pull(self, target: Target, x: Point, u: jax.Array) -> Moves:
        return target.space.linear(x.codes, u) - target.space.quadratic(x.codes, self.shift() / 2)

    def shift(self) -> jax.Array:
        return self.preconditioner.shift(self.scale, 2 / self.step_size)

    def condition(self, target: Target, z: jax.Array, x: Point) -> jax.Array:
        """The noise at x for a fixed auxiliary: u(s) = z - (γΣ + diag d) s."""
        s = states(target, x.codes)[0]
        return z - self.scale * (self.preconditioner.matrix() @ s) - self.shift() * s

    def log_definition(self, target: Target, x: Point, codes: jax.Array, noise: jax.Array) -> jax.Array:
        """The printed, uncentred proposal: D - (Σs)·s' + (Aᵀz)·s' - s'ᵀ diag(d/2) s' with Aᵀz = u + (Σ + diag d) s."""
        if self.over_relaxed:  # intervals below 1e-4 cannot be told from 1 - F: `overlaps` is tested on its own
            return self.propose(target, x, noise).log_prob(codes)
        s, s_new = states(target, x.codes, codes)
        pull = noise + self.shift() * s
        return differences(target, x.codes, codes) + jnp.sum(pull * s_new) - jnp.sum(self.shift() * s_new**2) / 2

    def check_settings(self, target: Target) -> None:
        self.single("step_size")
        self.single("scale")
        n: Any = target.space.size
        if self.preconditioner.size != n:
            raise KernelError(
                f"The preconditioner does not fit {target.space}.",
                expected=f"size {n}, that of space.ravel(s)",
                found=f"size {self.preconditioner.size}",
                hint="on one-hot spaces Σ has d*k rows, one per entry of s" if n != target.space.num_sites else "",
            )


def covariance(space: Space, codes: Any) -> np.ndarray:
    """(n, n) covariance of states (num, d) as f sees them, in float64."""
    with jax.enable_x64(True):
        s = np.asarray(space.ravel(space.embed(np.asarray(codes))))
    return np.cov(s.T, bias=True).reshape(space.size, space.size)
