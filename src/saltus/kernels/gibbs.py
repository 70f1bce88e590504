"""Gibbs: sites drawn from their exact conditionals, one at a time or a colour at a time."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._fusion import stored
from .._record import changed, default_float, record, static
from ..errors import KernelError
from ..proposals import SiteBlock
from ..structure import Graph
from ..target import Point, Target
from .base import Kernel
from .metropolis import Info, describe

SCANS = ("random", "systematic", "coloured")


@record
class Gibbs(Kernel):
    r"""Heat-bath updates from the true conditionals; values of f only, never a gradient, no accept step.

    $$ s'_i \sim \mathrm{softmax}_v f(s \text{ with } s_i = v) $$

    scan: "random" updates one site a step, chosen uniformly; "systematic" sweeps over all sites in order; "coloured" (for
    targets with a `saltus.Graph`) sweeps over colours, the sites of one colour at once. Sweeps leave the target invariant
    but are not reversible. A target's closed-form exact differences are used where it has them.
    """

    uses_local_model = False

    scan: str = static(default="random")

    def __post_init__(self) -> None:
        if self.scan not in SCANS:
            raise KernelError("`scan` is not known.", expected=" or ".join(map(repr, SCANS)), found=repr(self.scan))

    def init(self, target: Target, codes: jax.Array) -> Point:
        codes = self.check(target, codes)
        halves = self._halves(target)
        return Point(codes, target.value(codes), halves.board.split(codes) if halves else None)

    def step(self, key: jax.Array, target: Target, x: Point) -> tuple[Point, Info]:
        if self.scan == "coloured" and target.differences.closed_form:
            sweep = self._half_sweeps if self._halves(target) else self._sweep
            y, travelled = sweep(key, target, x)
            return y, self._info(target, x, y, jnp.zeros((), jnp.int32), travelled)
        block_key, move_key = random.split(key)
        blocks = self.noise(block_key, target)
        if len(blocks) == 1:
            y, undefined = self._update(move_key, target, x, blocks[0])
        else:
            y, counts = jax.lax.scan(
                lambda y, each: self._update(each[0], target, y, each[1]), x, (random.split(move_key, len(blocks)), blocks)
            )
            undefined = jnp.sum(counts, dtype=jnp.int32)
        if target.differences.closed_form:
            y = changed(y, log_prob=target.value(y.codes))  # closed forms know changes only, and need no f in between
        return y, self._info(target, x, y, undefined)

    def _info(self, target: Target, x: Point, y: Point, undefined: jax.Array, travelled: Any = None) -> Info:
        always = jnp.ones((), default_float())
        return describe(target.space, x, y, jnp.ones((), bool), always, undefined, travelled)

    def _sweep(self, key: jax.Array, target: Target, x: Point) -> tuple[Point, Any]:
        """Colour after colour by a closed form: nothing is gathered or scattered. Each site has its own uniforms."""
        closed: Any = target.differences
        space, colours = target.space, target.find(Graph).colours
        u = random.unit(key, (random.num_units(space.num_values), space.num_sites))

        def update(colour: jax.Array, codes: jax.Array) -> jax.Array:
            active = stored(lambda c: -(colours == c).astype(codes.dtype), colour)  # all bits or none: faster than a choice
            return codes ^ ((space.choose(codes, closed.packed(target, codes), u) ^ codes) & active)

        num = self.blocks(target).shape[0]
        codes = jax.lax.fori_loop(0, num, update, x.codes, unroll=num <= 4)  # written out, few colours need no copies
        return Point(codes, closed.evaluate(target, codes)[0]), None

    def _halves(self, target: Target) -> Any:
        """Closed forms for either of two colours, which are then kept apart from step to step; None where there are none."""
        closed: Any = target.differences
        return closed.halves if self.scan == "coloured" and closed.closed_form else None

    def _half_sweeps(self, key: jax.Array, target: Target, x: Point) -> tuple[Point, Any]:
        """The same where either of two colours depends on the other only: no site is computed in vain."""
        closed, space, codes = self._halves(target), target.space, list(x.local)
        units = random.num_units(space.num_values)
        u = random.unit(key, (units * space.num_sites,))
        for colour, own in enumerate(jnp.split(u, 2)):
            pull = closed.pull(target.params, codes[1 - colour], colour)
            choose = lambda codes, pull, u: space.choose(codes, closed.packed(pull), u)  # noqa: E731
            codes[colour] = stored(choose, codes[colour], pull, own.reshape(units, -1))
        f = stored(closed.value, target.params, *codes, pull).astype(default_float())
        travelled = jax.tree.map(jnp.add, *map(space.travel, x.local, codes))  # x.codes are not read, nor copied for it
        return Point(stored(closed.board.join, *codes), f, tuple(codes)), travelled

    def _update(self, key: jax.Array, target: Target, x: Point, sites: jax.Array) -> tuple[Point, jax.Array]:
        rows, undefined = target.exact_rows(x, sites)
        codes = self._block(target, x, sites, rows).sample(key)
        if target.differences.closed_form:
            return Point(codes, x.log_prob), undefined
        one_site = sites.shape[0] == 1  # then f is among the numbers it was drawn from
        return Point(codes, rows[0, codes[sites[0]]] if one_site else target.value(codes)), undefined

    def _block(self, target: Target, x: Point, sites: jax.Array, rows: jax.Array) -> SiteBlock:
        return SiteBlock(
            x.codes, sites, target.space.conditionals(jnp.take(x.codes, sites, mode="clip"), target.space.packed(rows))
        )

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

    def propose(self, target: Target, x: Point, noise: jax.Array) -> SiteBlock:
        """The update of one block of sites (`noise`)."""
        return self._block(target, x, noise, target.exact_rows(x, noise)[0])

    def log_ratio(self, target: Target, x: Point, y: Point, noise: Any) -> jax.Array:
        """Zero: the draw is from the conditional itself."""
        return jnp.zeros((), default_float())

    def log_definition(self, target: Target, x: Point, codes: jax.Array, noise: jax.Array) -> jax.Array:
        """f where only sites of the block differ, -inf elsewhere: normalised, the conditional."""
        inside = jnp.zeros(codes.shape, bool).at[noise].set(True, mode="drop")
        return jnp.where(jnp.all(inside | (codes == x.codes)), target.value(codes), -jnp.inf)

    def evaluations(self, target: Target) -> int:
        sites = 1 if self.scan == "random" else target.space.num_sites
        blocks = sites if self.scan != "coloured" else self.blocks(target).shape[0]
        if target.differences.closed_form:
            return 1
        return sites * (target.space.num_values - 1) + (blocks if blocks < sites else 0)

    def check_settings(self, target: Target) -> None:
        if self.scan == "coloured" and target.find(Graph) is None:
            raise KernelError(
                "Coloured Gibbs needs to know which sites interact.",
                expected="structure=saltus.Graph(neighbours)",
                found=f"{target} without that structure",
                hint="Gibbs('systematic') sweeps any target, one site after the other",
            )
