"""What the engine asks of any kernel's chain state: the codes that are kept, f there, and whose target it belongs to."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .._record import changed
from ..kernels import Info, Kernel
from ..target import Point, Target


def kept_codes(kernel: Kernel, target: Target, states: Any) -> jax.Array:
    """(chains, d) what is kept of the states."""
    return jax.vmap(kernel.draw)(states).astype(target.space.code_dtype)


def kept_log_prob(kernel: Kernel, target: Target, states: Any) -> jax.Array:
    """(chains,) f at the codes that are kept; a state of several replicas may hold several numbers."""
    f = states.log_prob
    return f if f.ndim == 1 else jax.vmap(lambda x: target.value(kernel.draw(x)))(states)


def stepped(kernel: Kernel, key: jax.Array, target: Target, state: Any) -> tuple[Any, Info]:
    """One transition. A Point that the kernel made by hand, without a stamp, keeps the one it had."""
    new, info = kernel.step(key, target, state)
    return _stamped_alike(new, state), info


def without_stamps(tree: Any) -> Any:
    """The tree as it can be stored: a stamp says which target of this process a Point was made for."""
    return _points(tree, lambda point: changed(point, stamp=None))


def with_stamps(tree: Any, like: Any, stamp: Any) -> Any:
    """`without_stamps` undone: every Point that has a stamp in `like` gets this one."""
    own = iter(jax.tree.leaves(like, is_leaf=_is_point))

    def stamped(point: Point) -> Point:
        shape = getattr(next(each for each in own if _is_point(each)).stamp, "shape", None)
        return point if shape is None else changed(point, stamp=np.broadcast_to(np.asarray(stamp), shape))

    return _points(tree, stamped)


def _stamped_alike(new: Any, old: Any) -> Any:
    """`new`, with stamps where `old` has some, and only there."""
    own = iter([each for each in jax.tree.leaves(old, is_leaf=_is_point) if _is_point(each)])

    def stamped(point: Point) -> Point:
        before = next(own, point).stamp
        return changed(point, stamp=before) if before is None or point.stamp is None else point

    return _points(new, stamped)


def _is_point(x: Any) -> bool:
    return isinstance(x, Point)


def _points(tree: Any, change: Any) -> Any:
    return jax.tree.map(lambda x: change(x) if _is_point(x) else x, tree, is_leaf=_is_point)
