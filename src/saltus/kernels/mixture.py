"""Mixture: one of several kernels at each step, at random."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import Number, as_float, fill, is_concrete, record
from ..errors import KernelError
from ..spaces import Space
from ..target import Point, Target
from .base import begin
from .composed import Composed, Composition, check_parts, hand_over_costs, looks
from .metropolis import Info


@record
class Mixture(Composition):
    r"""At each step one part, drawn with probability proportional to its weight, whatever the state (Tierney 1994).

    $$ K = \sum_i w_i K_i, \qquad \sum_i w_i = 1 $$

    parts: as for `Cycle`. weights: one a part, at least 0, not all 0; by default equal. Reversible where the parts are.
    Chains that are stepped together draw different parts, and all parts are computed for all of them: a Cycle of the same
    parts costs the same and moves by each.
    """

    name = ""  # no sampler of its own: its parts are

    weights: Number = None

    def __post_init__(self) -> None:
        fill(self, parts=check_parts(self.parts, "Mixture"))
        weights = as_float(np.ones(len(self.parts)) if self.weights is None else self.weights, "weights")
        expected = f"{len(self.parts)} numbers >= 0, not all 0"
        if weights.shape != (len(self.parts),):
            raise KernelError("`weights` do not fit the parts.", expected=expected, found=f"shape {weights.shape}")
        if is_concrete(weights) and (np.min(weights) < 0 or not np.max(weights) > 0):
            raise KernelError("`weights` cannot be weights.", expected=expected, found=str(np.asarray(weights).tolist()))
        fill(self, weights=weights)

    def init(self, target: Target, codes: jax.Array, key: Any = None) -> Composed:
        codes = self.check(target, codes)
        key = jax.random.key(0) if key is None else key
        keys = [random.fold_in(key, i) for i in range(len(self.parts))]
        own = [begin(part, target, codes, keys[i]) if self.remembered(i) else None for i, part in enumerate(self.parts)]
        last = self._point(target, codes)
        return Composed(codes, last.log_prob, last, tuple(own))

    def _point(self, target: Target, codes: jax.Array) -> Point:
        """What is kept between steps: f, and D where some part looks through the target's own local model."""
        return target.point(codes) if self._local() else Point(codes, target.value(codes), stamp=target.stamp)

    def _local(self) -> bool:
        return any(looks(part) == "" for part in self.parts)

    def refresh(self, target: Target, state: Composed) -> Composed:
        last = self._point(target, state.codes)
        own = tuple(o if o is None else part.refresh(target, o) for part, o in zip(self.parts, state.own, strict=True))
        return Composed(state.codes, last.log_prob, last, own)

    def adopt(self, target: Target, x: Point, own: Any = None) -> Composed:
        last = self._point(target, x.codes) if self._local() else Point(x.codes, x.log_prob, None, x.stamp)
        return Composed(x.codes, last.log_prob, last, own.own)

    def choice(self, key: jax.Array, x: Composed) -> jax.Array:
        """Which part moves."""
        return random.categorical(key, self.weights)

    def step(self, key: jax.Array, target: Target, x: Composed) -> tuple[Composed, Info]:
        choice_key, move_key = random.split(key)
        branches = [lambda i=i: self._by(i, move_key, target, x) for i in range(len(self.parts))]
        y, info = jax.lax.switch(self.choice(choice_key, x), branches)
        return y, self.told(target, x.codes, y, [info])

    def _by(self, index: int, key: jax.Array, target: Target, x: Composed) -> tuple[Composed, Info]:
        """The step of one part."""
        part = self.parts[index]
        known = x.last if looks(part) == "" else Point(x.codes, x.log_prob, None, x.last.stamp)
        state, info = part.step(key, target, part.adopt(target, known, x.own[index]))
        codes = part.draw(state).astype(x.codes.dtype)
        f = state.log_prob if jnp.ndim(state.log_prob) == 0 else target.value(codes)
        local = None if not self._local() else state.local if looks(part) == "" else target.point(codes).local
        own = tuple(state if i == index and o is not None else o for i, o in enumerate(x.own))
        return Composed(codes, f, Point(codes, f, local, getattr(state, "stamp", x.last.stamp)), own), info

    def evaluations(self, target: Target) -> int:
        """Of all parts: chains that are stepped together compute every one."""
        back = target.differences.evaluations(target.space) if self._local() else 0
        both_ways = [0 if looks(part) == "" else back + hand_over_costs(target, self, part) for part in self.parts]
        return sum(both_ways) + sum(part.evaluations(target) for part in self.parts)

    def keeps_parity(self, space: Space) -> bool:
        return all(part.keeps_parity(space) for part in self.parts)
