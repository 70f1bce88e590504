"""What a sampler says about itself: what it needs of a target, and how its settings are searched."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..spaces import Space
from ..target import Target


@dataclass(frozen=True)
class Needs:
    """What a sampler asks of a target besides values of f.

    local_model: D, from the gradient or any other local model. structure: a structure that the target must have.
    two_values: every site has two values.
    """

    local_model: bool = False
    structure: Any = None
    two_values: bool = False

    def missing(self, target: Target) -> str:
        """What this target lacks, in words; nothing where it has everything."""
        if self.structure is not None and target.find(self.structure) is None:
            return f"structure: a {self.structure.__name__}"
        if self.two_values and not (target.space.num_values_per_site == 2).all():
            return "two values at every site"
        return ""


VALUES, LOCAL_MODEL = Needs(), Needs(local_model=True)


@dataclass(frozen=True)
class Search:
    """How a setting is found; `saltus.tune` knows what to do with each kind, and training with those that may change with it."""


@dataclass(frozen=True)
class Decades(Search):
    """A positive number: orders of magnitude around the space's unit to some power, then deciles, then around the best."""

    power: float = 1.0  # a step size is measured like a squared distance

    def unit(self, space: Space) -> float:
        return space.unit**self.power


@dataclass(frozen=True)
class Radii(Search):
    """A whole number of hops or sites, from 1 to the kernel's `largest_radius(space)`."""


@dataclass(frozen=True)
class Signed(Search):
    """A number of either sign, by factors and by changes of sign."""

    power: float = -2.0  # the scale of a covariance is measured like the inverse of its square

    def unit(self, space: Space) -> float:
        return space.unit**self.power


@dataclass(frozen=True)
class Fit(Search):
    """A matrix, by least squares on what the local model misses of the moves of a warm-up.

    warmup: the sampler that makes them. scale: the field with its factor. step_size: the field to be tuned with it.
    """

    warmup: Any
    scale: str = "scale"
    step_size: str = "step_size"


@dataclass(frozen=True)
class Persistence(Search):
    """A momentum, in [0, 1), or None: with over-relaxed draws and the step size, where `adaptation="momentum"` asks for it.

    step_size: the field that is tuned with it. `over_relaxed` is the other.
    """

    step_size: str = "step_size"


@dataclass(frozen=True)
class Rungs(Search):
    """A ladder of inverse temperatures, from the rejections of swaps between neighbours."""


@functools.lru_cache(maxsize=1024)
def accepts(function: Callable, name: str) -> bool:
    """Whether a function takes an argument of this name."""
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
