"""Replicas at several temperatures: their state, how they change places, and what is counted on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_float, changed, is_concrete, record
from ..errors import KernelError
from ..target import Point
from .base import Kernel

_NEW, FROM_HOT, _BACK = 0, 1, 2  # a replica has not been at β = 0 yet; was there last; was there, then at β = 1


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


def count_swaps(states: Replicas, since: Replicas | None = None) -> Swaps:
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


def exchanged(x: Replicas, swapped: jax.Array, rates: jax.Array) -> Replicas:
    """The state in which those pairs have changed places, one step on. Auxiliary parts stay on their rung; log_prob stays."""
    every = jnp.arange(x.values.shape[0], dtype=jnp.int32)
    up, down = jnp.pad(swapped, (0, 1)), jnp.pad(swapped, (1, 0))
    placed = lambda leaf: neighbour_where(up, down, leaf)  # noqa: E731
    codes, values, models, stage = jax.tree.map(placed, (x.codes, x.values, x.models, x.stage))
    trips = x.trips + (stage[0] == _BACK).astype(jnp.int32)
    stage = stage.at[0].set(FROM_HOT)
    stage = stage.at[-1].set(jnp.where(stage[-1] == FROM_HOT, jnp.int8(_BACK), stage[-1]))
    refused = x.refused + jnp.where(every[:-1] % 2 == x.time % 2, 1 - rates, 0)
    placed_all = dict(codes=codes, values=values, models=models, stage=stage)
    return changed(x, trips=trips, refused=refused, time=x.time + 1, **placed_all)


def neighbour_where(up: jax.Array, down: jax.Array, leaf: jax.Array) -> jax.Array:
    """leaf (rungs, ...), of the rung above or below where these say so: choices between shifts, faster than a gather."""
    above, below = jnp.concatenate([leaf[1:], leaf[-1:]]), jnp.concatenate([leaf[:1], leaf[:-1]])
    wide = lambda mask: mask.reshape(-1, *[1] * (leaf.ndim - 1))  # noqa: E731
    return jnp.where(wide(up), above, jnp.where(wide(down), below, leaf))


def check_part(part: Any) -> None:
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


def checked_ladder(given: Any) -> jax.Array:
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
