"""Heat bath: blocks of sites drawn from their exact conditionals, for samplers that never refuse."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .. import random
from .._record import changed, default_float, record
from ..moves import Flips, Tables
from ..proposals import SiteBlock
from ..target import Point, Target
from .base import Kernel
from .metropolis import Info, describe


@record
class Swept(Point):
    """A state with what closed-form sweeps keep from step to step."""

    kept: Any = None


@record
class HeatBath(Kernel):
    """Draws blocks of sites from their exact conditionals: by a closed-form sweep where there is one, else from values of f.

    A sampler adds `noise`, the blocks of a step, and says in `sweep` whether the local model's closed form visits the same.
    """

    uses_local_model = False
    rejects = False

    def sweep(self, target: Target) -> Any:
        """A closed-form sweep that updates what this sampler updates in a step (`saltus.sweeps`); None where there is none."""
        return None

    def init(self, target: Target, codes: jax.Array, key: Any = None) -> Swept:
        codes, sweep = self.check(target, codes), self.sweep(target)
        return Swept(codes, target.value(codes), None, target.stamp, sweep.begin(codes) if sweep else None)

    def adopt(self, target: Target, x: Point, own: Any = None) -> Swept:
        sweep = self.sweep(target)
        return Swept(x.codes, x.log_prob, None, x.stamp, sweep.begin(x.codes) if sweep else None)

    def step(self, key: jax.Array, target: Target, x: Swept) -> tuple[Swept, Info]:
        stale, sweep = x.stale_beside(changed(x, stamp=target.stamp)), self.sweep(target)
        if sweep:
            codes, f, kept, travelled = sweep.sweep(key, target, x)
            y, undefined = changed(x, codes=codes, log_prob=f, kept=kept), jnp.zeros((), jnp.int32)
        else:
            block_key, move_key = random.split(key)
            (y, undefined), travelled = _update_all(move_key, target, x, self.noise(block_key, target)), None
        return _unless(stale, target, x, y, undefined, travelled)

    def propose(self, target: Target, x: Any, noise: jax.Array) -> SiteBlock:
        """The update of one block of sites (`noise`)."""
        return _conditionals(x, noise, target.exact_rows(x, noise)[0])

    def log_ratio(self, target: Target, x: Any, y: Any, noise: Any, forward: Any = None) -> jax.Array:
        """Zero: the draw is from the conditional itself."""
        return jnp.zeros((), default_float())

    def log_definition(self, target: Target, x: Any, codes: jax.Array, noise: jax.Array) -> jax.Array:
        """f where only sites of the block differ, -inf elsewhere: normalised, the conditional."""
        inside = jnp.zeros(codes.shape, bool).at[noise].set(True, mode="drop")
        return jnp.where(jnp.all(inside | (codes == x.codes)), target.value(codes), -jnp.inf)


def _conditionals(x: Any, sites: jax.Array, rows: jax.Array) -> SiteBlock:
    """Each of `sites` given all others; rows: (b, k) f for every value of each, up to a constant per site."""
    form = Flips if rows.shape[1] == 2 else Tables
    return SiteBlock(x.codes, sites, form.conditionals(jnp.take(x.codes, sites, mode="clip"), form.packed(None, rows)))


def _update(key: jax.Array, target: Target, x: Swept, sites: jax.Array) -> tuple[Swept, jax.Array]:
    """Draw `sites`, which do not interact, anew; and how many of their values were undefined."""
    rows, undefined = target.exact_rows(x, sites)
    codes = _conditionals(x, sites, rows).sample(key)
    if target.differences.closed_form:
        return changed(x, codes=codes), undefined
    one_site = sites.shape[0] == 1  # then f is among the numbers it was drawn from
    return changed(x, codes=codes, log_prob=rows[0, codes[sites[0]]] if one_site else target.value(codes)), undefined


def _update_all(key: jax.Array, target: Target, x: Swept, blocks: jax.Array) -> tuple[Swept, jax.Array]:
    """`_update` of every row of `blocks`, one after the other."""
    if len(blocks) == 1:
        y, undefined = _update(key, target, x, blocks[0])
    else:
        keys = random.split(key, len(blocks))
        y, counts = jax.lax.scan(lambda y, each: _update(each[0], target, y, each[1]), x, (keys, blocks))
        undefined = jnp.sum(counts, dtype=jnp.int32)
    if target.differences.closed_form:
        y = changed(y, log_prob=target.value(y.codes))  # closed forms know changes only, and need no f in between
    return y, undefined


def _unless(stale: Any, target: Target, x: Swept, y: Swept, undefined: jax.Array, travelled: Any) -> tuple[Swept, Info]:
    """The step to y, which is always taken unless x was made for other parameters: that is refused, and counted."""
    rate, accepted = jnp.ones((), default_float()), jnp.ones((), bool)
    if stale is not False:
        y = jax.tree.map(lambda new, old: jnp.where(stale, old, new), y, x)
        accepted, rate, undefined = ~stale, jnp.where(stale, 0, rate), undefined + stale.astype(jnp.int32)
    return y, describe(target.space, x, y, accepted, rate, undefined, travelled)
