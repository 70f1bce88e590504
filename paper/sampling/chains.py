"""Many chains of one kernel, advanced block by block and timed without compilation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import saltus

BLOCK = 100  # steps of one call


@dataclass(frozen=True)
class Block:
    """The states after each of some steps, and how they went."""

    codes: np.ndarray  # (chain, step, site)
    seconds_per_step: float  # of all chains together
    acceptance: np.ndarray  # (chain,) means over the block
    jump: np.ndarray


def blocks(kernel: saltus.Kernel, target: saltus.Target, codes: Any, seed: int, num_steps: int) -> Iterator[Block]:
    """`num_steps` steps of every chain from `codes` (chain, site), BLOCK at a time; the last block may be shorter."""
    keys = jax.vmap(partial(saltus.random.fold_in, jax.random.key(seed)))(jnp.arange(len(codes), dtype=jnp.uint32))
    points = _begin(kernel, target, jnp.asarray(codes, jnp.int32))
    jax.block_until_ready(_advance(kernel, target, keys, points, 0))  # compiled here, where nothing is timed
    for first in range(0, num_steps, BLOCK):
        began = time.perf_counter()
        points, kept = jax.block_until_ready(_advance(kernel, target, keys, points, first))
        seconds = time.perf_counter() - began
        states, acceptance, jump = (np.asarray(x) for x in kept)
        yield Block(np.moveaxis(states[: num_steps - first], 0, 1), seconds / BLOCK, acceptance, jump)


@jax.jit
def _begin(kernel: saltus.Kernel, target: saltus.Target, codes: jax.Array) -> saltus.Point:
    return jax.vmap(lambda c: kernel.init(target, c))(codes)


@jax.jit
def _advance(kernel: saltus.Kernel, target: saltus.Target, keys: jax.Array, points: saltus.Point, first: Any) -> tuple:
    """The points after BLOCK steps; the codes (step, chain, site) on the way, mean acceptance and jump of each chain."""
    small = jnp.uint8 if target.space.num_values <= 256 else jnp.int32

    def step(points: saltus.Point, t: jax.Array) -> tuple[Any, Any]:
        points, info = jax.vmap(lambda k, x: kernel.step(saltus.random.fold_in(k, t), target, x))(keys, points)
        return points, (points.codes.astype(small), info.acceptance_rate, info.jump)

    points, kept = jax.lax.scan(step, points, first + jnp.arange(BLOCK, dtype=jnp.uint32))
    codes, acceptance, jump = kept
    return points, (codes, jnp.mean(acceptance, axis=0), jnp.mean(jump, axis=0))
