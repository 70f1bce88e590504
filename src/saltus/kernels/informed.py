"""Informed: any sampler, with a local model of its own instead of the target's."""

from __future__ import annotations

from typing import Any

import jax

from .._record import as_choice, record, static
from ..errors import KernelError
from ..local import LOCAL_MODELS
from ..spaces import Space
from ..target import Point, Target
from .base import Kernel, begin
from .metropolis import Info


@record
class Informed(Kernel):
    """The step of `kernel` on the same target, seen through `differences`: "gradient", "exact" or "hessian_diag".

    `saltus.sample(target, Informed(NCG(0.5), "exact"))` draws what `sample(target.replace(differences="exact"), NCG(0.5))`
    does. The kernel alone then says how the draws came about, which is why the race of `sampler="auto"` returns it.
    """

    name = ""  # no sampler of its own

    kernel: Kernel
    differences: str = static(default="exact")

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise KernelError("`kernel` is not a kernel.", expected="such as saltus.NCG(0.5)", found=repr(self.kernel))
        if not self.kernel.uses_local_model:
            raise KernelError(
                "This sampler has no use for a local model.",
                expected="a sampler that needs one, such as saltus.NCG(0.5)",
                found=repr(self.kernel),
            )
        as_choice(self.differences, "differences", LOCAL_MODELS, KernelError)

    def __repr__(self) -> str:
        return f"{self.kernel!r} with {self.differences} differences"

    def seen(self, target: Target) -> Target:
        """The target as this kernel sees it."""
        return target.through(self.differences)

    @property
    def weighted(self) -> bool:
        return self.kernel.weighted

    @property
    def rejects(self) -> bool:  # type: ignore[override]
        return self.kernel.rejects

    def init(self, target: Target, codes: jax.Array, key: Any = None) -> Any:
        return begin(self.kernel, self.seen(target), self.check(target, codes), key)

    def refresh(self, target: Target, state: Any) -> Any:
        return self.kernel.refresh(self.seen(target), state)

    @property
    def plain(self) -> bool:
        return False  # its local model is not the target's own

    def adopt(self, target: Target, x: Point, own: Any = None) -> Any:
        return self.kernel.adopt(self.seen(target), x, own)

    def draw(self, state: Any) -> jax.Array:
        return self.kernel.draw(state)

    def log_weight(self, state: Any) -> jax.Array:
        return self.kernel.log_weight(state)

    def step(self, key: jax.Array, target: Target, x: Any) -> tuple[Any, Info]:
        return self.kernel.step(key, self.seen(target), x)

    def evaluations(self, target: Target) -> int:
        return self.kernel.evaluations(self.seen(target))

    def keeps_parity(self, space: Space) -> bool:
        return self.kernel.keeps_parity(space)

    def check_start(self, target: Target, codes: Any) -> None:
        self.kernel.check_start(target, codes)

    def check_settings(self, target: Target) -> None:
        self.kernel.check_settings(self.seen(target))

    # ---- for certification: what the kernel offers, on the target as it sees it ------------------------------------

    def noise(self, key: jax.Array, target: Target) -> Any:
        return self.kernel.noise(key, self.seen(target))

    def propose(self, target: Target, x: Any, noise: Any) -> Any:
        return self.kernel.propose(self.seen(target), x, noise)

    def log_ratio(self, target: Target, x: Any, y: Any, noise: Any, forward: Any = None) -> jax.Array:
        return self.kernel.ratio(self.seen(target), x, y, noise, forward)

    def condition(self, target: Target, z: jax.Array, x: Any) -> Any:
        return self.kernel.condition(self.seen(target), z, x)  # type: ignore[attr-defined]

    def log_definition(self, target: Target, x: Any, codes: jax.Array, noise: Any) -> jax.Array:
        return self.kernel.log_definition(self.seen(target), x, codes, noise)  # type: ignore[attr-defined]

    def blocks(self, target: Target) -> Any:
        return self.kernel.blocks(self.seen(target))  # type: ignore[attr-defined]

    def compose(self, matrices: Any) -> Any:
        return self.kernel.compose(matrices)  # type: ignore[attr-defined]

    @property
    def reversible(self) -> bool:
        return getattr(self.kernel, "reversible", True)
