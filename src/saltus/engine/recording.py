"""What the engine asks of any kernel's chain state, and what it keeps of each draw: codes in the smallest integer type, or
observables of s; and what the steps told.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import changed
from ..kernels import Info, Kernel
from ..spaces import Space
from ..target import Point, Target

STATS = ("lp", "acceptance_rate", "accepted", "jump", "changed_sites", "log_weight")  # the last of weighted kernels only
Row = dict[str, jax.Array]
Block = dict[str, np.ndarray]  # of the same names, on the host: (rows, chains, ...)
_BLOCK_BYTES, _MOST_ROWS = 2**24, 4096


def label_dtype(num_values: int) -> np.dtype:
    """The smallest unsigned integer type for codes 0..num_values - 1 (or any count below num_values)."""
    return np.min_scalar_type(num_values - 1)


@dataclass(frozen=True)
class Recording:
    """One row of a block: {"s": codes} or the observables, and STATS. Hashable: part of the compiled program's identity."""

    observables: tuple[tuple[str, Callable], ...] = ()

    def row(self, kernel: Kernel, target: Target, states: Any, rate: jax.Array, jump: jax.Array, info: Info) -> Row:
        """(chains, ...) of every variable. Rate and jump are means over the steps since the draw before."""
        sites = label_dtype(target.space.num_sites + 1)
        stats = dict(
            lp=kept_log_prob(kernel, target, states),
            acceptance_rate=rate.astype(jnp.float32),
            accepted=info.accepted,
            jump=jump.astype(jnp.float32),
            changed_sites=info.changed_sites.astype(sites),
        )
        if kernel.weighted:
            stats["log_weight"] = jax.vmap(kernel.log_weight)(states).astype(stats["lp"].dtype)
        return {**self._state(target, kept_codes(kernel, target, states)), **stats}

    def row_if(self, is_draw: jax.Array, *told: Any) -> Row:
        """The row; observables are evaluated only at the step that makes a draw."""
        if not self.observables:
            return self.row(*told)
        shapes = jax.eval_shape(self.row, *told)
        nothing = {name: jnp.zeros(row.shape, row.dtype) for name, row in shapes.items()}
        return jax.lax.cond(is_draw, lambda: self.row(*told), lambda: nothing)

    def _state(self, target: Target, codes: jax.Array) -> Row:
        if not self.observables:
            return {"s": codes.astype(label_dtype(target.space.num_values))}
        s = target.space.embed(codes)
        return {name: jax.vmap(lambda s, fn=fn: jnp.asarray(fn(s)))(s) for name, fn in self.observables}


def rows_per_block(row_bytes: int) -> int:
    """Rows of a block: a power of two, at most 16 MB. It depends on shapes only, so nothing recompiles."""
    most = max(_BLOCK_BYTES // max(row_bytes, 1), 1)
    return min(2 ** int(math.log2(most)), _MOST_ROWS)


def stats_bytes(space: Space, float_bytes: int = 4) -> int:
    """Bytes of STATS per chain and draw, weights not counted."""
    return float_bytes + 4 + 1 + 4 + label_dtype(space.num_sites + 1).itemsize


# ---- states -----------------------------------------------------------------------------------------------------------


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
