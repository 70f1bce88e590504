"""What kernels made of kernels share: their parts, the state they keep, and how a chain is handed from part to part."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import changed, default_float, record
from ..errors import KernelError
from ..target import Point, Target
from .base import Kernel, begin
from .informed import Informed
from .metropolis import Info, describe
from .parts import MadeOfKernels


@record
class Composed:
    """The state of a kernel made of kernels.

    last: the state of the part that moved last. own: for every part with auxiliary variables its own last state, else None.
    """

    codes: jax.Array
    log_prob: jax.Array
    last: Any
    own: tuple


@record
class Composition(MadeOfKernels):
    """A kernel made of `parts`. Each leaves exp(f) invariant; which one moves next never depends on the state."""

    name = ""

    parts: Any

    def __repr__(self) -> str:
        parts = ", ".join(part.__name__ if isinstance(part, type) else repr(part) for part in self.parts)
        return f"{type(self).__name__}([{parts}])"

    def pieces(self) -> tuple:
        return tuple(self.parts)

    def finished(self, finish: Callable[[Any], Kernel]) -> Any:
        return changed(self, parts=self.finished_pieces(finish))

    def check_settings(self, target: Target) -> None:
        super().check_settings(target)
        for part in self.parts:
            _check_single(part, target)

    def check_start(self, target: Target, codes: Any) -> None:
        """One part that begins anywhere is enough."""
        if all(type(inner(part)).check_start is not Kernel.check_start for part in self.parts):
            for part in self.parts:
                part.check_start(target, codes)

    def draw(self, state: Composed) -> jax.Array:
        return state.codes

    def remembered(self, index: int) -> bool:
        """Whether a part has auxiliary variables that it must find again."""
        part = inner(self.parts[index])
        return not part.plain and type(part).refresh is not Kernel.refresh

    def told(self, target: Target, before: jax.Array, after: Composed, infos: Sequence[Info]) -> Info:
        """Info of the whole step; accepted where some part's move was, and acceptance_rate says the same."""
        accepted = functools.reduce(jnp.logical_or, [info.accepted for info in infos])
        undefined = sum((info.undefined for info in infos[1:]), infos[0].undefined)
        x, y = Point(before, after.log_prob), Point(after.codes, after.log_prob)
        return describe(target.space, x, y, accepted, accepted.astype(default_float()), undefined)


def check_parts(parts: Any, name: str) -> tuple:
    """Kernels and samplers' classes as a tuple; KernelError where there are none, or others, or some that weigh their draws."""
    expected = f"a list of kernels or of samplers' classes, such as saltus.{name}([saltus.NCG(0.5), saltus.Gibbs()])"
    if isinstance(parts, (str, bytes, Kernel, type)) or not np.iterable(parts) or not len(tuple(parts)):
        raise KernelError(f"{name} has no parts.", expected=expected, found=repr(parts))
    for part in (parts := tuple(parts)):
        if not (isinstance(part, Kernel) or (isinstance(part, type) and issubclass(part, Kernel) and part.name)):
            raise KernelError(f"A part of this {name} is not a kernel.", expected=expected, found=repr(part))
        weighs = part.weighted if isinstance(part, Kernel) else part.log_weight is not Kernel.log_weight
        if weighs:
            raise KernelError(
                f"A part of this {name} weighs its draws.",
                expected="parts that leave exp(f) itself invariant",
                found=repr(part) if isinstance(part, Kernel) else part.__name__,
                hint="such a sampler is stationary for another law: run it alone",
            )
    return parts


def _check_single(part: Kernel, target: Target) -> None:
    """KernelError where a part's state cannot be put elsewhere: it holds several states of the target, and adopts none."""
    if type(part).adopt is not Kernel.adopt:
        return
    codes = jax.ShapeDtypeStruct((target.space.num_sites,), target.space.code_dtype)
    state = jax.eval_shape(lambda c: begin(part, target, c, jax.random.key(0)), codes)
    if state.codes.shape != codes.shape:
        raise KernelError(
            "A part holds several states of the target, and does not say where to put one that another part has moved.",
            expected="a kernel whose state has codes of one state, or that offers adopt(target, x, own)",
            found=f"{part!r}, codes of shape {state.codes.shape}",
        )


def handed(target: Target, before: Kernel, state: Any, part: Kernel, own: Any) -> Any:
    """The state of `part` where `before` has left the chain, with f and, where they look alike, the local model."""
    codes = before.draw(state)
    f = state.log_prob if jnp.ndim(state.log_prob) == 0 else target.value(codes)
    local = state.local if looks(before) is not None and looks(before) == looks(part) else None
    return part.adopt(target, Point(codes, f, local, getattr(state, "stamp", None)), own)


def hand_over_costs(target: Target, before: Kernel, part: Kernel) -> int:
    """Evaluations of f that `handed` makes."""
    through = looks(part)
    if through is None or through == looks(before):
        return 0
    return (target.through(through) if through else target).differences.evaluations(target.space)


def looks(part: Kernel) -> str | None:
    """Through which local model a part's state, a plain Point, was made: "" for the target's own. None: it is no such Point."""
    if not inner(part).plain or not part.uses_local_model:
        return None
    return part.differences if isinstance(part, Informed) else ""


def inner(part: Any) -> Any:
    """A part without the local model it looks through."""
    return part.kernel if isinstance(part, Informed) else part
