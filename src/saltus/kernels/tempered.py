"""Tempered: replicas at several temperatures, which change places; the coldest has the law of the target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import Number, as_float, changed, default_float, fill, is_concrete, record
from ..errors import KernelError
from ..target import Point, Target
from .base import Kernel, begin
from .composed import inner, looks
from .declarations import Rungs
from .gibbs import Gibbs
from .informed import Informed
from .metropolis import Info, describe
from .parts import MadeOfKernels

_FIRST_RUNGS = 8  # of a ladder that is still to be found
_NEW, _FROM_HOT, _BACK = 0, 1, 2  # a replica has not been at β = 0 yet; was there last; was there, then at β = 1


@record
class Replicas(Point):
    """One state for every rung, from β = 0 to β = 1, and what is counted on the way. f is never tempered here.

    codes: (rungs, d). log_prob: f of the cold replica. values: (rungs,) f of each. models: their local models, or None.
    own: auxiliary parts of the rungs' kernels, or None. time: steps so far. stage: (rungs,) of the round trip of each replica.
    trips: round trips so far. refused: (rungs - 1,) the probabilities that a swap was refused, summed.
    """

    values: Any = None
    models: Any = None
    own: Any = None
    time: Any = None
    stage: Any = None
    trips: Any = None
    refused: Any = None


@dataclass(frozen=True)
class Swaps:
    """How replicas travelled. rejection: (rungs - 1,) of each pair of neighbours. barrier: their sum, the Λ of Syed et al. (2022).

    round_trips: from β = 0 to β = 1 and back, of all replicas of all chains. steps: of all chains.
    """

    rejection: np.ndarray
    barrier: float
    round_trips: int
    steps: int

    def __repr__(self) -> str:
        share = f"swaps accepted {1 - self.rejection.max():.0%} to {1 - self.rejection.min():.0%}"
        trips = f"{self.round_trips} round trips in {self.steps} steps"
        return f"{len(self.rejection) + 1} rungs, barrier {self.barrier:.3g}, {share}, {trips}"


@record
class Tempered(MadeOfKernels):
    r"""Parallel tempering with non-reversible swaps (Syed et al. 2022): replicas at 0 = β_0 < ... < β_M = 1.

    $$ \pi(s_0, ..., s_M) \propto \prod_i \exp(\beta_i f(s_i)), \qquad
       \alpha_{i, i+1} = \min\{1, \exp[(\beta_{i+1} - \beta_i)(f(s_i) - f(s_{i+1}))]\} $$

    In a step every rung makes one step of its kernel on β_i f; that at β = 0 is drawn anew, uniformly. Then neighbours
    (0, 1), (2, 3), ... may change places in even steps, (1, 2), (3, 4), ... in odd ones. Only f is tempered, never the
    proposal's part of a ratio. f and local models move with the replicas and are scaled, not computed anew.

    kernel: for all rungs above 0, or a tuple with one for each; a sampler's class is tuned, at β = 1, by `sample` and `tune`.
    ladder: (M + 1,) the β, increasing from 0 to 1. `saltus.find_ladder` finds one, and so does `sample(target, "tempered")`.
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

    def __post_init__(self) -> None:
        fill(self, ladder=_checked_ladder(self.ladder))
        several = isinstance(self.kernel, (tuple, list))
        for part in self.kernel if several else (self.kernel,):
            _check_part(part)
        if several and len(self.kernel) != len(self.ladder) - 1:
            raise KernelError(
                "There is not one kernel for each rung.",
                expected=f"{len(self.ladder) - 1} kernels: the rung at β = 0 is drawn directly",
                found=f"{len(self.kernel)} kernels for a ladder of {len(self.ladder)}",
            )
        fill(self, kernel=tuple(self.kernel) if several else self.kernel)

    def __repr__(self) -> str:
        of = self.kernel.__name__ if isinstance(self.kernel, type) else repr(self.kernel)
        return f"Tempered({of}, {self.ladder.shape[-1]} rungs)"

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
        return len(seen) == 1 and seen != {None}

    def _seen(self, target: Target) -> Target:
        """The target as the rungs see it, where that is the same for all."""
        part = self.parts[0]
        return part.seen(target) if isinstance(part, Informed) else target

    # ---- the chain's state ---------------------------------------------------------------------------------------

    def init(self, target: Target, codes: jax.Array, key: Any = None) -> Replicas:
        """All replicas at `codes`; with a key, that at β = 0 is drawn."""
        codes = self.check(target, codes)
        fresh = codes if key is None else target.space.random(random.fold_in(key, 0)).astype(codes.dtype)
        return self.at_rungs(target, jnp.stack([fresh, *[codes] * (self.ladder.shape[0] - 1)]), key)

    def at_rungs(self, target: Target, codes: jax.Array, key: Any = None) -> Replicas:
        """The state with codes[i] (d,) at rung i. key: for what else the kernels' states hold."""
        num, zero = self.ladder.shape[0], jnp.zeros((), jnp.int32)
        keys = random.split(jax.random.key(0) if key is None else random.fold_in(key, 1), num - 1)

        def begun(part: Kernel, key: jax.Array, beta: jax.Array, codes: jax.Array) -> Any:
            return begin(part, target.rung(beta), codes, key) if _remembered(part) else None

        values, models = jax.vmap(lambda c: self._looked(target, c))(codes)
        own = self._each(begun, keys, self.ladder[1:], codes[1:])
        stage = jnp.zeros(num, jnp.int8).at[0].set(_FROM_HOT)
        refused = jnp.zeros(num - 1, default_float())
        return Replicas(codes, values[-1], None, target.stamp, values, models, own, zero, stage, zero, refused)

    def refresh(self, target: Target, state: Replicas) -> Replicas:
        def anew(part: Kernel, beta: jax.Array, own: Any) -> Any:
            return None if own is None else part.refresh(target.rung(beta), own)

        values, models = jax.vmap(lambda c: self._looked(target, c))(state.codes)
        own = self._each(anew, self.ladder[1:], state.own)
        return changed(state, log_prob=values[-1], values=values, models=models, own=own, stamp=target.stamp)

    def adopt(self, target: Target, x: Point, own: Any = None) -> Replicas:
        """The cold replica is put at x."""
        if own is None:
            return self.init(target, x.codes)
        local = self._looked(target, x.codes)[1]
        models = jax.tree.map(lambda all_, one: all_.at[-1].set(one), own.models, local)
        codes, values = own.codes.at[-1].set(x.codes), own.values.at[-1].set(x.log_prob)
        return changed(own, codes=codes, log_prob=x.log_prob, values=values, models=models, stamp=x.stamp)

    def draw(self, state: Replicas) -> jax.Array:
        return state.codes[-1]

    def _looked(self, target: Target, codes: jax.Array) -> tuple[jax.Array, Any]:
        """(f, the local model that moves with the replica, or None), untempered."""
        if not self._carries:
            return target.value(codes), None
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
        fresh = target.space.random(fresh_key).astype(x.codes.dtype)
        f, model = self._looked(target, fresh)

        def one(part: Kernel, key: jax.Array, *rung: Any) -> Any:
            return self._walk_rung(part, key, target, x.stamp, *rung)

        models = jax.tree.map(lambda leaf: leaf[1:], x.models)
        walked = self._each(one, jnp.stack(keys), self.ladder[1:], x.codes[1:], x.values[1:], models, x.own)
        codes, values, models, own, infos = walked if not self._differ else _stacked(walked)
        joined = lambda first, rest: jnp.concatenate([first[None], rest])  # noqa: E731
        y = changed(x, codes=joined(fresh, codes), values=joined(f, values), models=jax.tree.map(joined, model, models), own=own)
        return changed(y, log_prob=y.values[-1]), infos, jnp.isnan(f) | (f == jnp.inf)

    def _walk_rung(
        self, part: Kernel, key: jax.Array, target: Target, stamp: Any, beta: Any, codes: Any, f: Any, model: Any, own: Any
    ) -> tuple:
        rung, differences = target.rung(beta), self._seen(target).differences
        local = None if model is None else differences.scaled(model, beta)
        state, info = part.step(key, rung, part.adopt(rung, Point(codes, beta * f, local, stamp), own))
        new = part.draw(state).astype(codes.dtype)
        tempered = state.log_prob if jnp.ndim(state.log_prob) == 0 else rung.value(new)
        moved = jnp.any(new != codes)  # what stays keeps its numbers: scaled to and fro they would drift
        found = (tempered / beta, None if model is None else differences.scaled(state.local, 1 / beta))
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
        """The state in which those pairs have changed places, one step on. Auxiliary parts stay on their rung."""
        swapped_int, every = swapped.astype(jnp.int32), jnp.arange(self.ladder.shape[0], dtype=jnp.int32)
        place = every + jnp.pad(swapped_int, (0, 1)) - jnp.pad(swapped_int, (1, 0))
        codes, values, models, stage = jax.tree.map(lambda leaf: leaf[place], (x.codes, x.values, x.models, x.stage))
        trips = x.trips + (stage[0] == _BACK).astype(jnp.int32)
        stage = stage.at[0].set(_FROM_HOT)
        stage = stage.at[-1].set(jnp.where(stage[-1] == _FROM_HOT, jnp.int8(_BACK), stage[-1]))
        tried = every[:-1] % 2 == x.time % 2
        refused = x.refused + jnp.where(tried, 1 - rates, 0)
        y = changed(x, codes=codes, values=values, models=models, log_prob=values[-1], stage=stage, trips=trips)
        return changed(y, refused=refused, time=x.time + 1)

    def swaps(self, states: Replicas, since: Replicas | None = None) -> Swaps:
        """What the states of one or more chains have counted. since: earlier states of theirs, from which to count."""
        last, first = (0 if s is None else np.atleast_1d(np.asarray(s.time, np.int64)) for s in (states, since))
        refused, trips = np.asarray(states.refused, np.float64), np.sum(states.trips)
        if since is not None:
            refused, trips = refused - np.asarray(since.refused, np.float64), trips - np.sum(since.trips)
        refused = refused.reshape(-1, refused.shape[-1]).sum(axis=0)
        pairs = np.arange(len(refused))[:, None] % 2
        tried = np.sum((last + 1 - pairs) // 2 - (first + 1 - pairs) // 2, axis=1)  # steps t with t % 2 == pair % 2
        rejection = refused / np.maximum(tried, 1)
        return Swaps(rejection, float(rejection.sum()), int(trips), int(np.sum(last - first)))

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


def _check_part(part: Any) -> None:
    expected = "a kernel such as saltus.NCG(0.5), a tuple of them, one for each rung above 0, or a sampler's class"
    if not (isinstance(part, Kernel) or (isinstance(part, type) and issubclass(part, Kernel) and part.name)):
        raise KernelError("`kernel` is not a kernel.", expected=expected, found=repr(part))
    if part.weighted if isinstance(part, Kernel) else part.log_weight is not Kernel.log_weight:
        raise KernelError(
            "A kernel that weighs its draws cannot be tempered.",
            expected="one that leaves exp(f) itself invariant",
            found=repr(part),
            hint="swaps are exact for replicas with the laws exp(β f) only",
        )


def _checked_ladder(given: Any) -> jax.Array:
    ladder = as_float(given, "ladder")
    expected, hint = "numbers that increase from 0 to 1, such as [0, 0.3, 1]", "saltus.find_ladder(target, kernel) finds one"
    if ladder.ndim != 1 or ladder.shape[0] < 2:
        raise KernelError("`ladder` is not a ladder.", expected=expected, found=f"shape {ladder.shape}", hint=hint)
    if is_concrete(ladder):
        beta = np.asarray(ladder)
        if beta[0] != 0 or beta[-1] != 1:
            found = f"from {beta[0]:g} to {beta[-1]:g}"
            raise KernelError("`ladder` does not go from 0 to 1.", expected=expected, found=found, hint=hint)
        if not (np.diff(beta) > 0).all():
            at = int(np.argmin(np.diff(beta) > 0))
            found = f"{beta[at]:g}, then {beta[at + 1]:g}"
            raise KernelError("`ladder` does not increase.", expected=expected, found=found, hint=hint)
    return ladder
