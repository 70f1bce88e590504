"""Informed: any sampler, with a local model of its own instead of the target's."""

from __future__ import annotations

from typing import Any

import jax

from .._record import record, static
from ..errors import KernelError
from ..local import LOCAL_MODELS
from ..spaces import Space
from ..target import Point, Target
from .base import Kernel
from .metropolis import Info


@record
class Informed(Kernel):
    """The step of `kernel` on the same target, seen through `differences`: "gradient", "exact" or "hessian_diag".

    `saltus.sample(target, Informed(NCG(0.5), "exact"))` draws what `sample(target.replace(differences="exact"), NCG(0.5))`
    does. The kernel alone then says how the draws came about, which is why the race of `sampler="auto"` returns it.
    """

    kernel: Kernel
    differences: str = static(default="exact")

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise KernelError("`kernel` is not a kernel.", expected="such as saltus.NCG(0.5)", found=repr(self.kernel))
        if not self.kernel.uses_local_model:
            expected = "NCG, AVG, PAVG or GWG"
            raise KernelError("This sampler has no use for a local model.", expected=expected, found=repr(self.kernel))
        if self.differences not in LOCAL_MODELS:
            known = " or ".join(map(repr, LOCAL_MODELS))
            raise KernelError("`differences` is not known.", expected=known, found=repr(self.differences))

    def __repr__(self) -> str:
        return f"{self.kernel!r} with {self.differences} differences"

    def seen(self, target: Target) -> Target:
        """The target as this kernel sees it."""
        return target.through(self.differences)

    def init(self, target: Target, codes: jax.Array) -> Point:
        return self.kernel.init(self.seen(target), self.check(target, codes))

    def step(self, key: jax.Array, target: Target, x: Point) -> tuple[Point, Info]:
        return self.kernel.step(key, self.seen(target), x)

    def noise(self, key: jax.Array, target: Target) -> Any:
        return self.kernel.noise(key, self.seen(target))

    def propose(self, target: Target, x: Point, noise: Any) -> Any:
        return self.kernel.propose(self.seen(target), x, noise)

    def log_ratio(self, target: Target, x: Point, y: Point, noise: Any) -> jax.Array:
        return self.kernel.log_ratio(self.seen(target), x, y, noise)

    def condition(self, target: Target, z: jax.Array, x: Point) -> Any:
        return self.kernel.condition(self.seen(target), z, x)  # type: ignore[attr-defined]

    def log_definition(self, target: Target, x: Point, codes: jax.Array, noise: Any) -> jax.Array:
        return self.kernel.log_definition(self.seen(target), x, codes, noise)  # type: ignore[attr-defined]

    def evaluations(self, target: Target) -> int:
        return self.kernel.evaluations(self.seen(target))

    def keeps_parity(self, space: Space) -> bool:
        return self.kernel.keeps_parity(space)

    def check_settings(self, target: Target) -> None:
        self.kernel.check_settings(self.seen(target))
