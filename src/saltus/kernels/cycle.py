"""Cycle: several kernels, one after the other."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import as_float, as_positive, as_size, fill, record
from ..errors import KernelError
from ..spaces import Space
from ..target import Point, Target
from .base import begin
from .composed import Composed, Composition, check_parts, hand_over_costs, handed
from .metropolis import Info
from .ncg import NCG


@record
class Cycle(Composition):
    r"""All parts in turn, in the order given; one step is one round (Tierney 1994).

    $$ K = K_1 K_2 \cdots K_n $$

    parts: kernels, or samplers' classes, which `sample` and `tune` tune, each by itself. f and the local model are handed on:
    parts that look through the same local model cost nothing between them. Leaves exp(f) invariant, and is not reversible.
    In its Info a step is accepted where some part's move was.
    """

    name = ""  # no sampler of its own: its parts are
    reversible = False

    def __post_init__(self) -> None:
        fill(self, parts=check_parts(self.parts, "Cycle"))

    @classmethod
    def cyclical(cls, largest: Any, smallest: Any, num_steps: int = 8, weights: Any = (0.95, 0.5)) -> Cycle:
        r"""NCG with a cyclical schedule of step sizes and gradient weights (ACS, Pynadath et al. 2024).

        $$ \epsilon_k = \max\big(\epsilon_{min}, \tfrac{\epsilon_{max}}{2} (1 + \cos(\pi k / n))\big), \quad k = 0, ..., n - 1 $$

        largest, smallest: ε_max and ε_min, in the unit of squared distances. num_steps: n, steps of NCG in one step of the cycle.
        weights: of the gradient at ε_max and at ε_min, linear in ε between them; or n of them, one a step.
        """
        num = as_size(num_steps, "num_steps", KernelError)
        top, bottom = (float(as_positive(x, name)) for x, name in ((largest, "largest"), (smallest, "smallest")))
        if bottom > top:
            raise KernelError("`smallest` is larger than `largest`.", expected=f"at most {top:g}", found=f"{bottom:g}")
        eps = np.maximum(bottom, top / 2 * (1 + np.cos(np.pi * np.arange(num) / num)))
        given = np.asarray(as_float(weights, "weights"), np.float64)
        if given.shape not in ((2,), (num,)):
            raise KernelError(
                "`weights` do not fit.", expected=f"two, or one for each of {num} steps", found=f"shape {given.shape}"
            )
        share = (eps - bottom) / (top - bottom) if top > bottom else np.ones(num)
        each = given if given.shape == (num,) else given[1] + (given[0] - given[1]) * share
        return cls([NCG(e, gradient_weight=w) for e, w in zip(eps, each, strict=True)])

    def init(self, target: Target, codes: jax.Array, key: Any = None) -> Composed:
        codes = self.check(target, codes)
        key = jax.random.key(0) if key is None else key
        keys = [random.fold_in(key, i) for i in range(len(self.parts))]
        own = [begin(part, target, codes, keys[i]) if self._needed(i) else None for i, part in enumerate(self.parts)]
        last: Any = own[-1]
        return Composed(codes, _number(target, self.parts[-1], last), last, tuple(own[:-1]))

    def _needed(self, index: int) -> bool:
        return index == len(self.parts) - 1 or self.remembered(index)

    def refresh(self, target: Target, state: Composed) -> Composed:
        last = self.parts[-1].refresh(target, state.last)
        own = tuple(o if o is None else part.refresh(target, o) for part, o in zip(self.parts[:-1], state.own, strict=True))
        return Composed(state.codes, last.log_prob, last, own)

    def adopt(self, target: Target, x: Point, own: Any = None) -> Composed:
        last = self.parts[-1].adopt(target, x, own.last)
        return Composed(x.codes, last.log_prob, last, own.own)

    def step(self, key: jax.Array, target: Target, x: Composed) -> tuple[Composed, Info]:
        keys = random.split(key, len(self.parts))
        if self._alike():
            return self._scanned(keys, target, x)
        before, state, own, infos = self.parts[-1], x.last, [*x.own, x.last], []
        for i, part in enumerate(self.parts):
            state = handed(target, before, state, part, own[i])
            state, info = part.step(keys[i], target, state)
            own[i], before = state if self._needed(i) else None, part
            infos.append(info)
        y = Composed(self.parts[-1].draw(state).astype(x.codes.dtype), _number(target, before, state), state, tuple(own[:-1]))
        return y, self.told(target, x.codes, y, infos)

    def _alike(self) -> bool:
        """Whether parts differ in numbers only and need no more than a Point: then one is compiled for all."""
        forms = {(jax.tree.structure(p), tuple((jnp.shape(n), jnp.result_type(n)) for n in jax.tree.leaves(p))) for p in self.parts}
        return len(forms) == 1 and self.parts[0].plain

    def _scanned(self, keys: jax.Array, target: Target, x: Composed) -> tuple[Composed, Info]:
        stacked = jax.tree.map(lambda *numbers: jnp.stack(numbers), *self.parts)
        last, infos = jax.lax.scan(lambda state, each: each[1].step(each[0], target, state), x.last, (keys, stacked))
        y = Composed(last.codes, last.log_prob, last, x.own)
        return y, self.told(target, x.codes, y, [_row(infos, i) for i in range(len(self.parts))])

    def evaluations(self, target: Target) -> int:
        pairs = zip((self.parts[-1], *self.parts), self.parts, strict=False)
        return sum(part.evaluations(target) + hand_over_costs(target, before, part) for before, part in pairs)

    def keeps_parity(self, space: Space) -> bool:
        """An odd number of flips is one more parity."""
        return len(self.parts) % 2 == 1 and all(part.keeps_parity(space) for part in self.parts)


def _number(target: Target, part: Any, state: Any) -> jax.Array:
    """f of what is kept."""
    return state.log_prob if jnp.ndim(state.log_prob) == 0 else target.value(part.draw(state))


def _row(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index], tree)
