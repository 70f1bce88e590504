"""What is kept of each draw: codes in the smallest integer type, or observables of s; and what the steps told."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..kernels import Info, Kernel
from ..spaces import Space
from ..target import Target
from .states import kept_codes, kept_log_prob

STATS = ("lp", "acceptance_rate", "accepted", "jump", "changed_sites", "log_weight")  # the last of weighted kernels only
Row = dict[str, jax.Array]
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
