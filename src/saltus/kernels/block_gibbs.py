"""Block-Gibbs: for a quadratic f the auxiliary Gaussian makes an exact sampler of all sites, no accept step."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import Number, as_float, default_float, fill, is_concrete, record
from ..errors import KernelError
from ..proposals import Factorised
from ..structure import SiteQuadratic
from ..target import Point, Target
from .base import Kernel
from .declarations import Needs
from .textbook import states


@record
class Pulled(Point):
    """A state with the pull Hs of all sites on each."""

    pull: Any = None


@record
class BlockGibbs(Kernel):
    r"""Exact block-Gibbs for f(s) = sum_i φ_i(s_i) + ½ sᵀHs on any space (Martens & Sutskever 2010).

    $$ u \sim N(0, H + \mathrm{diag}(d)), \qquad
       s'_i \sim \mathrm{softmax}_v\big(\phi_i(v) + (Hs + ds + u)_i v - \tfrac{d_i}{2} v^2\big) $$

    Always accepted; f and its gradient are never evaluated. Reads φ and H from the target's `saltus.Quadratic` structure.
    shift: d; None takes the smallest that the form of H allows (a dense H made within jit: to 1/256), which mixes best. The
    log_prob it reports is that of the quadratic, its `constant` included.
    """

    needs = Needs(structure=SiteQuadratic)
    rejects = False
    simplicity = 10
    cites = ("martens2010",)

    shift: Number = None

    def __post_init__(self) -> None:
        if self.shift is not None:
            fill(self, shift=as_float(self.shift, "shift"))

    def init(self, target: Target, codes: jax.Array, key: Any = None) -> Pulled:
        codes = self.check(target, codes)
        quadratic = target.find(SiteQuadratic)
        Hs = quadratic.coupling.matvec(target.space.ravel(target.space.embed(codes)))
        return Pulled(codes, quadratic.value(target.space, codes, Hs), None, target.stamp, Hs)

    def noise(self, key: jax.Array, target: Target) -> jax.Array:
        coupling = target.find(SiteQuadratic).coupling
        return coupling.noise(key, jnp.ones((), default_float()), self._slack(target))

    def propose(self, target: Target, x: Pulled, noise: jax.Array) -> Factorised:
        space, quadratic = target.space, target.find(SiteQuadratic)
        exact = space.moves(x.codes, quadratic.potentials) + space.linear(x.codes, x.pull)
        return Factorised(exact + space.linear(x.codes, noise) - space.quadratic(x.codes, self._shift(target) / 2))

    def log_ratio(self, target: Target, x: Point, y: Point, noise: jax.Array, forward: Any = None) -> jax.Array:
        """Zero: the draw is from the conditional itself."""
        return jnp.zeros((), default_float())

    def _slack(self, target: Target) -> jax.Array:
        if self.shift is None:
            return jnp.zeros((), default_float())
        return jnp.maximum(self.shift - self._least(target), 0)

    def _least(self, target: Target) -> jax.Array:
        return target.find(SiteQuadratic).coupling.shift(jnp.ones((), default_float()), jnp.zeros((), default_float()))

    def _shift(self, target: Target) -> jax.Array:
        return self._least(target) + self._slack(target)

    def condition(self, target: Target, z: jax.Array, x: Point) -> jax.Array:
        """The noise at x for a fixed auxiliary: u(s) = z - (H + diag d) s."""
        s = states(target, x.codes)[0]
        return z - target.find(SiteQuadratic).coupling.matrix() @ s - self._shift(target) * s

    def log_definition(self, target: Target, x: Point, codes: jax.Array, noise: jax.Array) -> jax.Array:
        """φ(s') + w·s' - ½ s'ᵀ diag(d) s' with w = Hs + d∘s + u, straight from the equation."""
        quadratic = target.find(SiteQuadratic)
        s, s_new = states(target, x.codes, codes)
        w = quadratic.coupling.matrix() @ s + self._shift(target) * s + noise
        chosen = quadratic.potentials[jnp.arange(len(codes)), codes]
        return jnp.sum(chosen) + jnp.sum(w * s_new) - jnp.sum(self._shift(target) * s_new**2) / 2

    def evaluations(self, target: Target) -> int:
        return 0

    def check_settings(self, target: Target) -> None:
        self.single("shift")
        if target.find(SiteQuadratic) is None:
            raise KernelError(
                "BlockGibbs needs a quadratic target.",
                expected="structure=saltus.Quadratic(b, H): f(s) = b·s + ½ sᵀHs",
                found=f"{target!r} without that structure",
                hint="for any other target use NCG or PAVG, which need no structure",
            )
        shift: Any = self.shift
        if shift is not None and is_concrete((shift, target)):
            with jax.ensure_compile_time_eval():
                least = np.max(np.asarray(self._least(target)))
            if float(shift) < least * (1 - 1e-5):
                raise KernelError(
                    "`shift` is smaller than the form of H allows.",
                    expected=f"shift >= {least:.6g}",
                    found=f"{float(shift):.6g}",
                    hint="BlockGibbs() takes the smallest that works",
                )
