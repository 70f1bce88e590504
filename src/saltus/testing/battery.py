"""Small targets on which errors show that the given one may hide: other numbers of values and sites, large f, impossible states."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import default_float
from ..errors import SaltusError
from ..kernels import Kernel
from ..spaces import Ordinal, Space, Spin
from ..target import Target
from .protocol import protocol
from .running import step_shapes
from .targets import declared_quadratic, rugged

# Codes of 64 values are the largest int8 ones: their products wrap. Those of 100 are int16: a kernel that makes them int8 wraps.
GRIDS = (64, 100)


@dataclass(frozen=True)
class Trial:
    """One target of the battery, and what of the kernel runs on it."""

    name: str
    target: Target
    kernel: Any  # None: nothing fits
    whose: str  # "as given", "as first(target) sets it", or why there is none

    @property
    def optimised(self) -> bool:
        """Whether steps are compiled as in a run: where f is large or NaN. On the grids that takes longer than the steps do."""
        return self.target.space.num_values == 2


def targets() -> Iterator[tuple[str, list[Callable[[], Target]]]]:
    """(name, makers of the target, and of one with a quadratic structure for kernels that need it)."""
    five = Spin(5)
    yield f"{five}", [lambda: varied(rugged(five)), lambda: varied(declared_quadratic(five))]
    yield f"{five}, f + 500", [lambda: varied(rugged(five), constant=500), lambda: varied(declared_quadratic(five), constant=500)]
    yield f"{five}, -inf with NaN gradients", [lambda: varied(rugged(five), limit=3.5)]
    for space in (Ordinal(3, [-1.0, 0.3, 1.0]), *(Ordinal(1, np.linspace(-1, 1, num)) for num in GRIDS)):
        yield str(space), [functools.partial(rugged, space), functools.partial(declared_quadratic, space)]


def varied(base: Target, constant: float = 0.0, limit: float = np.inf) -> Target:
    """f + constant, and impossible where more than `limit` sites are up: the gradient there is NaN."""
    numbers = {name: jnp.asarray(value, default_float()) for name, value in (("constant", constant), ("limit", limit))}
    structure = base.structure_of and functools.partial(_structure, base.structure_of)
    params = {**numbers, "base": base.params}
    return Target(Varied(base.log_prob, base.space), base.space, params, structure=structure, verify=False)


@dataclass(frozen=True)
class Varied:
    """The log-probability of `varied`."""

    base: Any
    space: Space

    def __call__(self, params: dict, s: jax.Array) -> jax.Array:
        up = jnp.sum((1 + s) / 2)
        room = jnp.where(params["limit"] < jnp.inf, jnp.maximum(params["limit"] - up, 0), 1)  # log(0): its gradient is inf times 0
        return params["constant"] + self.base(params["base"], s) + jnp.log(room)


def _structure(of: Any, params: dict) -> Any:
    return of(params["base"])


def trials(kernel: Any) -> Iterator[Trial]:
    """Every target of the battery with the kernel as given where its settings fit, else as `first` sets it."""
    for name, makers in targets():
        yield _trial(kernel, name, makers)


def _trial(kernel: Any, name: str, makers: list[Callable[[], Target]]) -> Trial:
    why = ""
    for make in makers:
        target = make()
        refusal = _refusal(kernel, target)
        if not refusal:
            return Trial(name, target, kernel, "as given")
        why = why or refusal
    target = makers[0]()
    first = _first(kernel, target)
    return Trial(name, target, first, why if first is None else f"as first(target) sets it, {first!r}")


def _first(kernel: Any, target: Target) -> Any:
    """The setting that the kernel's class starts from; None where there is none that fits."""
    try:
        first = type(kernel).first(target) if isinstance(kernel, Kernel) else None
    except SaltusError:
        return None
    return None if first is None or _refusal(first, target) else first


def _refusal(kernel: Any, target: Target) -> str:
    """Why a kernel says it does not fit; nothing where it does."""
    needs: Any = getattr(kernel, "needs", None)
    missing = needs.missing(target) if hasattr(needs, "missing") else ""
    if missing:
        return f"needs {missing}"
    try:
        step_shapes(protocol(kernel), target)
    except SaltusError as cause:
        return str(cause).splitlines()[0]
    return ""
