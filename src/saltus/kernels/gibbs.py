"""Gibbs: sites drawn from their exact conditionals, one at a time or a colour at a time."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import as_choice, changed, default_float, record, static
from ..errors import KernelError
from ..moves import Flips, Tables
from ..proposals import SiteBlock
from ..structure import Graph
from ..target import Point, Target
from .base import Kernel
from .declarations import VALUES, Needs
from .metropolis import Info, describe

SCANS = ("random", "systematic", "coloured")
_LONGEST_SWEEP = 5000  # evaluations of f: beyond, one site a step is a better start


@record
class Swept(Point):
    """A state with what closed-form sweeps keep from step to step."""

    kept: Any = None


@record
class Gibbs(Kernel):
    r"""Heat-bath updates from the true conditionals; values of f only, never a gradient, no accept step.

    $$ s'_i \sim \mathrm{softmax}_v f(s \text{ with } s_i = v) $$

    scan: "random" updates one site a step, chosen uniformly; "systematic" sweeps over all sites in order; "coloured" (for
    targets with a `saltus.Graph`) sweeps over colours, the sites of one colour at once. Sweeps leave the target invariant
    but are not reversible. A target's closed-form exact differences are used where it has them.
    """

    uses_local_model = False
    rejects = False
    simplicity = 0

    scan: str = static(default="random")

    def __post_init__(self) -> None:
        as_choice(self.scan, "scan", SCANS, KernelError)

    @classmethod
    def first(cls, target: Target, states: Any = None) -> Gibbs:
        """A sweep by colours where sites that interact are known, by sites where it is affordable, or a single site a step."""
        if target.find(Graph) is not None:
            return cls("coloured")
        start = cls("systematic")
        affordable = start._sweep(target) or target.space.num_sites * (target.space.num_values - 1) <= _LONGEST_SWEEP
        return start if affordable else cls("random")

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        return Needs(structure=Graph) if self.scan == "coloured" else VALUES

    def init(self, target: Target, codes: jax.Array, key: Any = None) -> Swept:
        codes, sweep = self.check(target, codes), self._sweep(target)
        return Swept(codes, target.value(codes), None, target.stamp, sweep.begin(codes) if sweep else None)

    def adopt(self, target: Target, x: Point, own: Any = None) -> Swept:
        sweep = self._sweep(target)
        return Swept(x.codes, x.log_prob, None, x.stamp, sweep.begin(x.codes) if sweep else None)

    def _sweep(self, target: Target) -> Any:
        return None if self.scan == "random" else target.differences.sweep(target, in_order=self.scan == "systematic")

    def step(self, key: jax.Array, target: Target, x: Swept) -> tuple[Swept, Info]:
        stale, sweep = x.stale_beside(changed(x, stamp=target.stamp)), self._sweep(target)
        if sweep:
            codes, f, kept, travelled = sweep.sweep(key, target, x)
            y, undefined = changed(x, codes=codes, log_prob=f, kept=kept), jnp.zeros((), jnp.int32)
        else:
            (y, undefined), travelled = self._updates(key, target, x), None
        always, accepted = jnp.ones((), default_float()), jnp.ones((), bool)
        if stale is not False:  # refused, and counted
            y = jax.tree.map(lambda new, old: jnp.where(stale, old, new), y, x)
            accepted, always, undefined = ~stale, jnp.where(stale, 0, always), undefined + stale.astype(jnp.int32)
        return y, describe(target.space, x, y, accepted, always, undefined, travelled)

    def _updates(self, key: jax.Array, target: Target, x: Swept) -> tuple[Swept, jax.Array]:
        block_key, move_key = random.split(key)
        blocks = self.noise(block_key, target)
        if len(blocks) == 1:
            y, undefined = self._update(move_key, target, x, blocks[0])
        else:
            keys = random.split(move_key, len(blocks))
            y, counts = jax.lax.scan(lambda y, each: self._update(each[0], target, y, each[1]), x, (keys, blocks))
            undefined = jnp.sum(counts, dtype=jnp.int32)
        if target.differences.closed_form:
            y = changed(y, log_prob=target.value(y.codes))  # closed forms know changes only, and need no f in between
        return y, undefined

    def _update(self, key: jax.Array, target: Target, x: Swept, sites: jax.Array) -> tuple[Swept, jax.Array]:
        rows, undefined = target.exact_rows(x, sites)
        codes = self._block(x, sites, rows).sample(key)
        if target.differences.closed_form:
            return changed(x, codes=codes), undefined
        one_site = sites.shape[0] == 1  # then f is among the numbers it was drawn from
        return changed(x, codes=codes, log_prob=rows[0, codes[sites[0]]] if one_site else target.value(codes)), undefined

    def _block(self, x: Any, sites: jax.Array, rows: jax.Array) -> SiteBlock:
        form = Flips if rows.shape[1] == 2 else Tables
        return SiteBlock(x.codes, sites, form.conditionals(jnp.take(x.codes, sites, mode="clip"), form.packed(None, rows)))

    def noise(self, key: jax.Array, target: Target) -> jax.Array:
        """The blocks of sites this step updates, in order: (number of blocks, sites in a block)."""
        if self.scan == "random":
            return jax.random.randint(key, (1, 1), 0, target.space.num_sites, jnp.int32)
        return self.blocks(target)

    def blocks(self, target: Target) -> jax.Array:
        """Every block this scan knows, one per row."""
        if self.scan == "coloured":
            return target.find(Graph).blocks
        return jnp.arange(target.space.num_sites, dtype=jnp.int32)[:, None]

    def compose(self, matrices: list[np.ndarray]) -> np.ndarray:
        """The transition matrix of a step from those of its blocks: their mean, or their product in order."""
        return np.mean(matrices, axis=0) if self.scan == "random" else functools.reduce(np.matmul, matrices)

    @property
    def reversible(self) -> bool:
        return self.scan == "random"

    def propose(self, target: Target, x: Any, noise: jax.Array) -> SiteBlock:
        """The update of one block of sites (`noise`)."""
        return self._block(x, noise, target.exact_rows(x, noise)[0])

    def log_ratio(self, target: Target, x: Any, y: Any, noise: Any, forward: Any = None) -> jax.Array:
        """Zero: the draw is from the conditional itself."""
        return jnp.zeros((), default_float())

    def log_definition(self, target: Target, x: Any, codes: jax.Array, noise: jax.Array) -> jax.Array:
        """f where only sites of the block differ, -inf elsewhere: normalised, the conditional."""
        inside = jnp.zeros(codes.shape, bool).at[noise].set(True, mode="drop")
        return jnp.where(jnp.all(inside | (codes == x.codes)), target.value(codes), -jnp.inf)

    def evaluations(self, target: Target) -> int:
        sites = 1 if self.scan == "random" else target.space.num_sites
        blocks = sites if self.scan != "coloured" else self.blocks(target).shape[0]
        if target.differences.closed_form or self._sweep(target):
            return 1
        return sites * (target.space.num_values - 1) + (blocks if blocks < sites else 0)

    def check_settings(self, target: Target) -> None:
        if self.scan == "coloured" and target.find(Graph) is None:
            raise KernelError(
                "Coloured Gibbs needs to know which sites interact.",
                expected="structure=saltus.Graph(neighbours)",
                found=f"{target!r} without that structure",
                hint="Gibbs('systematic') sweeps any target, one site after the other",
            )
