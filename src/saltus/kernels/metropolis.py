"""THE accept/reject step, and what a step tells about itself."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .. import random
from .._fusion import stored
from .._record import changed, default_float, record
from ..spaces import Space
from ..target import Point


@record
class Info:
    """What happened in one step."""

    accepted: jax.Array  # the proposal was taken, null proposals included
    acceptance_rate: jax.Array  # min(1, ratio)
    moved: jax.Array  # the state is another one
    jump: jax.Array  # L1 distance travelled, |s' - s|_1
    changed_sites: jax.Array  # sites at which the proposal differs, accepted or not
    undefined: jax.Array  # states whose log_prob or ratio was NaN or +inf: refused and counted


def metropolis(key: jax.Array, space: Space, x: Point, y: Point, log_ratio: jax.Array) -> tuple[Point, Info]:
    """Move to y with probability min(1, exp(log_ratio)), else stay at x.

    log_prob = -inf at y is impossible and simply refused; NaN or +inf there, a NaN ratio, or an x that was made for other
    parameters of the target, is refused and counted.

    key: a JAX key. space: of the target. x, y: states as the kernel holds them. Returns the next state and its `Info`.
    """
    stale = False
    if isinstance(x, Point) and isinstance(y, Point):
        stale = x.stale_beside(y)
        y = changed(y, stamp=x.stamp)  # the same, or not known of one of them
    y = changed(y, codes=y.codes.astype(x.codes.dtype))  # a proposal may be made in any type; a chain keeps its own
    log_ratio, f = (stored(lambda x: x, x) for x in (log_ratio, y.log_prob))  # or both are computed anew wherever they count
    y = changed(y, log_prob=f)
    impossible = y.log_prob == -jnp.inf
    undefined = (~impossible & (jnp.isnan(log_ratio) | (y.log_prob == jnp.inf))) | stale
    rate = jnp.where(impossible | undefined, 0, jnp.exp(jnp.minimum(log_ratio, 0)))
    accepted = random.unit(key, (), default_float()) < rate
    kept = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), y, x)
    return kept, describe(space, x, y, accepted, rate, undefined.astype(jnp.int32))


def describe(
    space: Space, x: Point, y: Point, accepted: jax.Array, rate: jax.Array, undefined: jax.Array, travelled: Any = None
) -> Info:
    """Info of a step from x to y, if it was accepted; travelled: `space.travel` between them, where it is known already.

    space, x, y: as for `metropolis`. rate: the probability of accepting. undefined: whether the move could not be judged.
    """
    jump, changed = travelled or space.travel(x.codes, y.codes)
    return Info(accepted, rate, accepted & (changed > 0), jnp.where(accepted, jump, 0), changed, undefined)
