"""What a kernel made of kernels declares: what its parts declare, taken together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._record import record
from ..errors import KernelError
from ..target import Target
from .base import Kernel
from .declarations import Needs


@record
class MadeOfKernels(Kernel):
    """A kernel with `pieces`: kernels, or classes of kernels whose settings are still to be chosen."""

    name = ""  # no sampler of its own

    def pieces(self) -> tuple:
        raise NotImplementedError

    @property
    def unfinished(self) -> bool:
        return any(isinstance(part, type) or part.unfinished for part in self.pieces())

    def finished_pieces(self, finish: Callable[[Any], Any]) -> tuple:
        """The pieces, with `finish(class)` in place of every one that is a class."""
        return tuple(finish(part) if isinstance(part, type) else part.finished(finish) for part in self.pieces())

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        return Needs(local_model=self.uses_local_model)

    @property
    def uses_local_model(self) -> bool:  # type: ignore[override]
        return any(part.uses_local_model for part in self.pieces())

    @property
    def rejects(self) -> bool:  # type: ignore[override]
        return any(part.rejects for part in self.pieces())

    def check_settings(self, target: Target) -> None:
        if self.unfinished:
            raise KernelError(
                "This kernel has a part whose settings are not chosen.",
                expected="kernels, such as saltus.NCG(0.5)",
                found=repr(self),
                hint="saltus.sample(target, ...) and saltus.tune(target, ...) choose them; kernel.step needs them",
            )
        for part in self.pieces():
            part.check_settings(target)
            part.check_needs(target)
