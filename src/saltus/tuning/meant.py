"""The kernel that a person means: one that is given, a sampler that is tuned, or Gibbs sweeps."""

from __future__ import annotations

from typing import Any

from ..engine.samplers import AUTO, find_sampler
from ..kernels import Gibbs, Kernel
from ..target import Target
from .tune import tune


def kernel_for(target: Target, given: Any, seed: int) -> Kernel:
    """`given` itself where it is a kernel; "auto": Gibbs, by the best sweep that there is; else a class or name, tuned."""
    if isinstance(given, Kernel):
        return given
    if isinstance(given, str) and given.lower() == AUTO:
        return Gibbs.first(target)
    return tune(target, find_sampler(given), seed).kernel
