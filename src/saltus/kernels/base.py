"""What every sampler shares: noise, proposal, ratio, and the one accept/reject step."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .. import random
from .._record import record
from ..errors import KernelError
from ..spaces import Space
from ..target import Point, Target
from .metropolis import Info, metropolis


@record
class Kernel:
    """One transition that leaves exp(f) invariant.

    A Metropolis sampler supplies `propose` and `log_ratio` (and `noise`, where it draws an auxiliary variable first);
    any other overrides `step`. For certification it may add `condition` and `log_definition`; see `saltus.testing`.
    """

    uses_local_model = True  # False for samplers that ask for values of f only

    def init(self, target: Target, codes: jax.Array) -> Point:
        """The Point this kernel steps from: f and the local model at `codes`. Call it again when the target changes."""
        return target.point(self.check(target, codes))

    def step(self, key: jax.Array, target: Target, x: Point) -> tuple[Point, Info]:
        """One chain, one transition."""
        noise_key, move_key, accept_key = random.split(key, 3)
        noise = self.noise(noise_key, target)
        y = self.init(target, self.propose(target, x, noise).sample(move_key))
        return metropolis(accept_key, target.space, x, y, self.log_ratio(target, x, y, noise))

    def noise(self, key: jax.Array, target: Target) -> Any:
        """The auxiliary variable of this step; None where there is none."""
        return None

    def propose(self, target: Target, x: Point, noise: Any) -> Any:
        """q(. | x, noise): an object with sample(key) -> codes and log_prob(codes)."""
        raise NotImplementedError

    def log_ratio(self, target: Target, x: Point, y: Point, noise: Any) -> jax.Array:
        """log of p(y) q(x | y, noise) / p(x) q(y | x, noise), seen as one expression."""
        raise NotImplementedError

    def evaluations(self, target: Target) -> int:
        """Evaluations of f, with or without its gradient, that one step of one chain makes."""
        return target.differences.evaluations(target.space)

    def keeps_parity(self, space: Space) -> bool:
        """Whether every accepted step changes exactly one site of a two-valued space: draws then need odd distances."""
        return False

    def check(self, target: Target, codes: Any) -> jax.Array:
        """The codes, once they and this kernel's settings are seen to fit the target."""
        if not isinstance(target, Target):
            raise KernelError("`target` is not a target.", expected="saltus.Target(log_prob, space)", found=repr(target))
        checked = target.space.check_codes(codes)
        if checked.ndim != 1:
            raise KernelError(
                "A kernel steps one chain at a time.",
                expected=f"codes of shape ({target.space.num_sites},)",
                found=f"shape {tuple(checked.shape)}",
                hint="jax.vmap(kernel.init, in_axes=(None, 0))(target, codes) for several chains",
            )
        self.check_settings(target)
        return checked

    def check_settings(self, target: Target) -> None:
        """Raise KernelError where this kernel cannot sample this target."""
        self.single("step_size")

    def single(self, name: str) -> None:
        """A stack of kernels is for vmap; stepping it as one is a mistake."""
        value: Any = getattr(self, name, None)
        if np.ndim(value):
            raise KernelError(
                f"`{name}` is an array: this is a stack of kernels.",
                expected="one number",
                found=f"shape {value.shape}",
                hint="jax.vmap(lambda eps: saltus.NCG(eps).step(key, target, x))(step_sizes) steps one kernel for each",
            )

    def fits(self, target: Target, name: str) -> None:
        """A setting that may be one number, one per site, or one per entry of s."""
        shape, space = getattr(self, name).shape, target.space
        if shape not in ((), (space.num_sites,), (space.size,), space.shape):
            raise KernelError(
                f"`{name}` does not fit {space}.", expected=f"a number, or shape ({space.num_sites},)", found=f"shape {shape}"
            )
