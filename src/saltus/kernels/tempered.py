"""Tempered: replicas at several temperatures, which change places; the coldest has the law of the target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import Number, changed, default_float, fill, is_concrete, record
from ..errors import KernelError
from ..target import Point, Target
from .base import Kernel, begin
from .composed import inner, looks
from .declarations import Rungs
from .gibbs import Gibbs
from .informed import Informed
from .metropolis import Info, describe
from .parts import MadeOfKernels
from .path import Path, chosen, read_base, read_marginals
from .replicas import FROM_HOT, Replicas, Swaps, check_part, checked_ladder, count_swaps, exchanged

_FIRST_RUNGS = 8  # of a ladder that is still to be found


@record
class Tempered(MadeOfKernels):
    r"""Parallel tempering with non-reversible swaps (Syed et al. 2022): replicas at 0 = β_0 < ... < β_M = 1.

    $$ \pi(s_0, ..., s_M) \propto \prod_i p_0(s_i) \exp(\beta_i V(s_i)), \quad V = f - \log p_0, \qquad
       \alpha_{i, i+1} = \min\{1, \exp[(\beta_{i+1} - \beta_i)(V(s_i) - V(s_{i+1}))]\} $$

    In a step every rung makes one step of its kernel on β_i f + (1 - β_i) log p_0; that at β = 0 is drawn anew. Then neighbours
    (0, 1), (2, 3), ... may change places in even steps, (1, 2), (3, 4), ... in odd ones. Only f is tempered, never the
    proposal's part of a ratio. f and local models move with the replicas and are scaled, not computed anew.

    kernel: for all rungs above 0, or a tuple with one for each; a sampler's class is tuned, at β = 1, by `sample` and `tune`.
    ladder: (M + 1,) the β, increasing from 0 to 1. `saltus.find_ladder` finds one, and so does `sample(target, "tempered")`.
    reference: p_0, independent sites: None, uniform; or their marginals, (d, k), or (d,) probabilities of the second of two values.
        The nearer they are to the target's, the fewer rungs are needed. Local models are then made anew on every rung, and samplers
        that need a `saltus.Quadratic` structure do not apply.
    Draws are those of the cold replica. KernelError where the ladder or a kernel cannot be used.

        kernel = saltus.find_ladder(target, saltus.Gibbs("coloured")).kernel
        run = saltus.sample(target, kernel)
    """

    races = False
    tunes = {"ladder": Rungs()}  # noqa: RUF012
    simplicity = 90
    cites = ("syed2022",)
    reversible = False

    kernel: Any
    ladder: Number
    reference: Any = None

    def __post_init__(self) -> None:
        fill(self, ladder=checked_ladder(self.ladder))
        several = isinstance(self.kernel, (tuple, list))
        for part in self.kernel if several else (self.kernel,):
            check_part(part)
        if several and len(self.kernel) != len(self.ladder) - 1:
            raise KernelError(
                "There is not one kernel for each rung.",
                expected=f"{len(self.ladder) - 1} kernels: the rung at β = 0 is drawn directly",
                found=f"{len(self.kernel)} kernels for a ladder of {len(self.ladder)}",
            )
        fill(self, kernel=tuple(self.kernel) if several else self.kernel)
        if is_concrete(self.reference) and self.reference is not None:
            fill(self, reference=jnp.asarray(read_marginals(self.reference, "reference", KernelError), default_float()))

    def __repr__(self) -> str:
        of = self.kernel.__name__ if isinstance(self.kernel, type) else repr(self.kernel)
        return f"Tempered({of}, {self.ladder.shape[-1]} rungs{'' if self.reference is None else ', from given marginals'})"

    @classmethod
    def first(cls, target: Target, states: Any = None) -> Tempered:
        """Gibbs on every rung, and a ladder to start from."""
        return cls(Gibbs.first(target), np.linspace(0, 1, _FIRST_RUNGS))

    # ---- its parts -----------------------------------------------------------------------------------------------

    @property
    def parts(self) -> tuple:
        """One kernel, or one for each rung above 0."""
        return self.kernel if isinstance(self.kernel, tuple) else (self.kernel,)

    def pieces(self) -> tuple:
        return self.parts

    def finished(self, finish: Callable[[Any], Any]) -> Any:
        parts = self.finished_pieces(finish)
        return changed(self, kernel=parts if isinstance(self.kernel, tuple) else parts[0])

    def evaluations(self, target: Target) -> int:
        fresh = self._seen(target).differences.evaluations(target.space) if self._carries else 1
        parts = self.parts if isinstance(self.kernel, tuple) else self.parts * (self.ladder.shape[-1] - 1)
        again = 0 if self._carries else sum(part.uses_local_model for part in parts) * target.differences.evaluations(target.space)
        return fresh + again + sum(part.evaluations(target) for part in parts)

    @property
    def _carries(self) -> bool:
        """Whether local models move with the replicas: all rungs look through the same one, and keep nothing else of it."""
        seen = {looks(part) for part in self.parts}
        return self.reference is None and len(seen) == 1 and seen != {None}

    def _seen(self, target: Target) -> Target:
        """The target as the rungs see it, where that is the same for all."""
        part = self.parts[0]
        return part.seen(target) if isinstance(part, Informed) else target

    def path(self, target: Target) -> Path:
        """From p_0 to the target."""
        return Path(target, None if self.reference is None else jnp.log(self.reference))

    def rung(self, target: Target, beta: Any) -> Target:
        """The target of a rung."""
        return target.rung(beta) if self.reference is None else changed(self.path(target).at(beta), stamp=target.stamp)

    def _base(self, codes: jax.Array) -> Any:
        """log p_0, 0 where it is uniform."""
        return 0.0 if self.reference is None else chosen(jnp.log(self.reference), codes)

    def _cold(self, codes: jax.Array, values: jax.Array) -> jax.Array:
        """f of the cold replica."""
        return values[-1] + self._base(codes[-1])

    def check_settings(self, target: Target) -> None:
        if self.reference is None:
            return super().check_settings(target)
        if is_concrete(self.reference):
            read_base(self.reference, target.space, "reference", KernelError)
        super().check_settings(self.path(target).at(0.5))  # a kernel may need structure that is lost here

    # ---- the chain's state ---------------------------------------------------------------------------------------

    def init(self, target: Target, codes: jax.Array, key: Any = None) -> Replicas:
        """All replicas at `codes`; with a key, that at β = 0 is drawn."""
        codes = self.check(target, codes)
        fresh = codes if key is None else self.path(target).draw(random.fold_in(key, 0)).astype(codes.dtype)
        return self.at_rungs(target, jnp.stack([fresh, *[codes] * (self.ladder.shape[0] - 1)]), key)

    def at_rungs(self, target: Target, codes: jax.Array, key: Any = None) -> Replicas:
        """The state with codes[i] (d,) at rung i. key: for what else the kernels' states hold."""
        num, zero = self.ladder.shape[0], jnp.zeros((), jnp.int32)
        keys = random.split(jax.random.key(0) if key is None else random.fold_in(key, 1), num - 1)

        def begun(part: Kernel, key: jax.Array, beta: jax.Array, codes: jax.Array) -> Any:
            return begin(part, self.rung(target, beta), codes, key) if _remembered(part) else None

        values, models = jax.vmap(lambda c: self._looked(target, c))(codes)
        own = self._each(begun, keys, self.ladder[1:], codes[1:])
        stage = jnp.zeros(num, jnp.int8).at[0].set(FROM_HOT)
        refused = jnp.zeros(num - 1, default_float())
        return Replicas(codes, self._cold(codes, values), None, target.stamp, values, models, own, zero, stage, zero, refused)

    def refresh(self, target: Target, state: Replicas) -> Replicas:
        def anew(part: Kernel, beta: jax.Array, own: Any) -> Any:
            return None if own is None else part.refresh(self.rung(target, beta), own)

        values, models = jax.vmap(lambda c: self._looked(target, c))(state.codes)
        own = self._each(anew, self.ladder[1:], state.own)
        return changed(state, log_prob=self._cold(state.codes, values), values=values, models=models, own=own, stamp=target.stamp)

    def adopt(self, target: Target, x: Point, own: Any = None) -> Replicas:
        """The cold replica is put at x."""
        if own is None:
            return self.init(target, x.codes)
        local = self._looked(target, x.codes)[1]
        models = jax.tree.map(lambda all_, one: all_.at[-1].set(one), own.models, local)
        codes, values = own.codes.at[-1].set(x.codes), own.values.at[-1].set(x.log_prob - self._base(x.codes))
        return changed(own, codes=codes, log_prob=x.log_prob, values=values, models=models, stamp=x.stamp)

    def draw(self, state: Replicas) -> jax.Array:
        return state.codes[-1]

    def _looked(self, target: Target, codes: jax.Array) -> tuple[jax.Array, Any]:
        """(V, the local model that moves with the replica, or None), untempered."""
        if not self._carries:
            return self.path(target).gain(codes), None
        seen = self._seen(target)
        return seen.differences.evaluate(seen, codes)

    # ---- one transition ------------------------------------------------------------------------------------------

    def step(self, key: jax.Array, target: Target, x: Replicas) -> tuple[Replicas, Info]:
        walk_key, swap_key = random.split(key)
        walked, infos, fresh_is_bad = self.walk(walk_key, target, x)
        rates, bad = self.swap_rates(target, walked)
        swapped = random.unit(swap_key, rates.shape, default_float()) < rates
        y = self.exchanged(walked, swapped, rates)
        cold = jax.tree.map(lambda leaf: leaf[-1], infos)
        undefined = jnp.sum(infos.undefined, dtype=jnp.int32) + fresh_is_bad.astype(jnp.int32) + bad
        before, after = Point(x.codes[-1], x.log_prob), Point(y.codes[-1], y.log_prob)
        return y, describe(target.space, before, after, cold.accepted | swapped[-1], cold.acceptance_rate, undefined)

    def walk(self, key: jax.Array, target: Target, x: Replicas) -> tuple[Replicas, Info, jax.Array]:
        """One step of every rung by itself; Info of those above β = 0, and whether f is undefined at what was drawn there."""
        fresh_key, *keys = random.split(key, self.ladder.shape[0])
        fresh = self.path(target).draw(fresh_key).astype(x.codes.dtype)
        f, model = self._looked(target, fresh)

        def one(part: Kernel, key: jax.Array, *rung: Any) -> Any:
            return self._walk_rung(part, key, target, x.stamp, *rung)

        models = jax.tree.map(lambda leaf: leaf[1:], x.models)
        walked = self._each(one, jnp.stack(keys), self.ladder[1:], x.codes[1:], x.values[1:], models, x.own)
        codes, values, models, own, infos = walked if not self._differ else _stacked(walked)
        joined = lambda first, rest: jnp.concatenate([first[None], rest])  # noqa: E731
        y = changed(x, codes=joined(fresh, codes), values=joined(f, values), models=jax.tree.map(joined, model, models), own=own)
        return changed(y, log_prob=self._cold(y.codes, y.values)), infos, jnp.isnan(f) | (f == jnp.inf)

    def _walk_rung(
        self, part: Kernel, key: jax.Array, target: Target, stamp: Any, beta: Any, codes: Any, f: Any, model: Any, own: Any
    ) -> tuple:
        rung, differences = self.rung(target, beta), self._seen(target).differences
        local = None if model is None else differences.scaled(model, beta)
        state, info = part.step(key, rung, part.adopt(rung, Point(codes, beta * f + self._base(codes), local, stamp), own))
        new = part.draw(state).astype(codes.dtype)
        tempered = state.log_prob if jnp.ndim(state.log_prob) == 0 else rung.value(new)
        moved = jnp.any(new != codes)  # what stays keeps its numbers: scaled to and fro they would drift
        found = ((tempered - self._base(new)) / beta, None if model is None else differences.scaled(state.local, 1 / beta))
        f, model = jax.tree.map(lambda a, b: jnp.where(moved, a, b), found, (f, model))
        return new, f, model, state if _remembered(part) else None, info

    def swap_rates(self, target: Target, x: Replicas) -> tuple[jax.Array, jax.Array]:
        """(rungs - 1,) the probability that each pair of neighbours changes places in this step; and how many are undefined."""
        f, pairs = x.values, jnp.arange(self.ladder.shape[0] - 1, dtype=jnp.int32)
        tried = pairs % 2 == x.time % 2
        log_ratio = (self.ladder[1:] - self.ladder[:-1]) * (f[:-1] - f[1:])
        undefined = jnp.isnan(f) | (f == jnp.inf)
        possible = (f[:-1] > -jnp.inf) & ~(undefined[:-1] | undefined[1:])
        stale = x.stale_beside(changed(x, stamp=target.stamp))
        rates = jnp.where(tried & possible & ~jnp.asarray(stale), jnp.exp(jnp.minimum(log_ratio, 0)), 0)
        return rates, jnp.sum(undefined[1:], dtype=jnp.int32)

    def exchanged(self, x: Replicas, swapped: jax.Array, rates: jax.Array) -> Replicas:
        """The state in which those pairs have changed places, one step on."""
        y = exchanged(x, jnp.asarray(swapped), rates)
        return changed(y, log_prob=self._cold(y.codes, y.values))

    def swaps(self, states: Replicas, since: Replicas | None = None) -> Swaps:
        """What the states of one or more chains have counted. since: earlier states of theirs, from which to count."""
        return count_swaps(states, since)

    def counts(self, states: Replicas) -> dict[str, Any]:
        """Round trips, barrier and swaps since the first step, warm-up included."""
        told = self.swaps(states)
        rejection = [round(float(r), 4) for r in told.rejection]
        return {
            "round_trips": told.round_trips,
            "barrier": round(told.barrier, 4),
            "swaps": repr(told),
            "swap_rejection": rejection,
        }

    # ---- all rungs at once ---------------------------------------------------------------------------------------

    @property
    def _differ(self) -> bool:
        """Whether kernels differ in more than numbers: then each rung is compiled by itself."""
        forms = {(jax.tree.structure(p), tuple((jnp.shape(n), jnp.result_type(n)) for n in jax.tree.leaves(p))) for p in self.parts}
        return len(forms) > 1

    def _each(self, do: Callable, *rungs: Any) -> Any:
        """do(kernel, ...) for every rung above 0: a stack, or a list where the kernels differ."""
        if not self._differ:
            alone = len(self.parts) == 1
            part = self.parts[0] if alone else jax.tree.map(lambda *numbers: jnp.stack(numbers), *self.parts)
            return jax.vmap(do, in_axes=(None if alone else 0, *[0] * len(rungs)))(part, *rungs)
        at = lambda tree, i: tree[i] if isinstance(tree, tuple) else jax.tree.map(lambda leaf: leaf[i], tree)  # noqa: E731
        return tuple(do(part, *(at(tree, i) for tree in rungs)) for i, part in enumerate(self.parts))


def _stacked(walked: Any) -> tuple:
    """Of rungs that were walked one by one: each thing stacked, but for the auxiliary parts, which differ."""
    codes, values, models, own, infos = zip(*walked, strict=True)
    stack = lambda each: jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)  # noqa: E731
    return stack(codes), stack(values), stack(models), own, stack(infos)


def _remembered(part: Kernel) -> bool:
    """Whether a kernel has auxiliary variables that it must find again."""
    return type(inner(part)).refresh is not Kernel.refresh
