r"""The chain: weighted tempered Gibbs over columns with heat-bath swaps, and what it adds up on its way.

A model γ is left by flipping column i at the rate η_i / p(γ_i | rest), η_i = ½ (p(γ_i = 1 | rest) + κ/p) (weighted TGS, Zanella
& Roberts 2019), or by a swap at the rate λ: one of its columns, chosen evenly, is replaced by column j with the probability of the
model that then results among all replacements, itself included. With W(γ) the sum of the flip rates,

$$ \pi(\gamma)\, (W(\gamma) + \lambda) $$

is stationary for the sequence of models, so a visit weighs w = 1 / (W + λ). Flips: π(γ) η_i / p(γ_i | rest) is the same for both
models. Swaps: a heat bath among models of one size leaves π invariant, and rings at the same rate everywhere. Every visit gives
all p inclusion probabilities at once, p(γ_i = 1 | rest) (Rao-Blackwell).
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._fusion import stored
from .._record import record, static
from .active import Columns, Fit, Flips, add, fit, flips, remove
from .coefficient_priors import Evidence

SUMS = ("h", "wh", "whh")  # each times w; h: p(γ_i = 1 | rest)
MOMENTS = ("mean", "second", "positive")  # each times w h, at the first visit of every segment
SEGMENT = 32  # visits for each look at the coefficients


@record
class Problem:
    """What a chain needs. log_prior: (most + 2,) by size; log_odds: (p,) on top, for each column.

    kappa: how many columns the exploration should keep trying; swaps: the rate λ. together: chains side by side, or one after the
    other.
    """

    columns: Columns
    evidence: Evidence
    log_prior: jax.Array
    log_odds: jax.Array
    kappa: jax.Array
    swaps: jax.Array
    together: bool = static(default=True)


@record
class Law:
    """How a model is left: flips; h (p,), p(γ_i = 1 | rest); rates (p,) of flipping; total, with that of swaps; log_prob here."""

    flips: Flips
    h: jax.Array
    rates: jax.Array
    total: jax.Array
    log_prob: jax.Array


def law(problem: Problem, x: Fit) -> Law:
    f = flips(problem.columns, x)
    log_ratio = flip_changes(problem, x, f)
    most = 600.0 if log_ratio.dtype == jnp.float64 else 80.0
    possible = f.possible & (f.inside | (x.size < x.slots.shape[0])) & ~(log_ratio == -jnp.inf)
    ratio = stored(_ratio, possible, jnp.clip(log_ratio, -most, most))
    h = jnp.where(f.inside, 1, ratio) / (1 + ratio)
    rates = jnp.where(possible, 0.5 * (jnp.where(f.inside, 1, ratio) + problem.kappa / len(h) * (1 + ratio)), 0)
    return Law(f, h, rates, jnp.sum(rates) + problem.swaps, log_posterior(problem, x))


def _ratio(possible: jax.Array, log_ratio: jax.Array) -> jax.Array:
    """π(flipped) / π(γ)."""
    return jnp.where(possible, jnp.exp(log_ratio), 0)


def flip_changes(problem: Problem, x: Fit, f: Flips) -> jax.Array:
    """(p,) log π(the model with this column flipped) - log π(γ)."""
    evidence, hop = problem.evidence, jnp.where(f.inside, -1, 1)
    logdet = jnp.where(f.inside, f.logdet_out, f.logdet_out + jnp.log(f.left))
    flipped = evidence.log_evidence(x.size + hop, jnp.where(f.inside, f.Q_out, f.Q_in), logdet)
    fewer, now, more = (problem.log_prior[jnp.maximum(x.size + i, 0)] for i in (-1, 0, 1))
    prior = jnp.where(f.inside, fewer - now - problem.log_odds, more - now + problem.log_odds)
    return flipped - evidence.log_evidence(x.size, x.Q, x.logdet) + prior


def log_posterior(problem: Problem, x: Fit) -> jax.Array:
    """log p(y | γ) p(γ), relative to p(y | no column)."""
    p = x.left.shape[0]
    each = jnp.where(x.slots < p, problem.log_odds[jnp.minimum(x.slots, p - 1)], 0)
    return problem.evidence.log_evidence(x.size, x.Q, x.logdet) + problem.log_prior[x.size] + jnp.sum(each)


def arrivals(problem: Problem, x: Fit, old: Any) -> jax.Array:
    """(p,) weights of the columns that may come into the model x, from which column `old` has just gone: a heat bath."""
    possible = ~x.inside & (x.left > problem.columns.tolerance * problem.columns.squares)
    possible |= jnp.arange(len(x.left)) == old
    left = jnp.where(possible, x.left, 1)
    log_weights = problem.evidence.log_evidence(x.size + 1, x.Q - x.along * x.along / left, x.logdet + jnp.log(left))
    log_weights = jnp.where(possible, log_weights + problem.log_odds, -jnp.inf)
    top = jnp.max(log_weights)
    return jnp.where(jnp.isfinite(top), jnp.exp(log_weights - top), 0)


UNIFORMS = 6  # of a step
BLOCK = 64


def pick(u: jax.Array, weights: jax.Array) -> jax.Array:
    """An index with probability proportional to the weights; u: (2,) uniforms. Never one of weight 0 if there is a positive one.

    A block by the blocks' sums, then an index inside it; blocks have at least 64 entries, and there are at most 64 of them.
    """
    p = weights.shape[0]
    size = max(BLOCK, -(-p // BLOCK))
    blocks = jnp.pad(weights, (0, -p % size)).reshape(-1, size)
    block = _beyond(u[0], jnp.sum(blocks, axis=1)) if blocks.shape[0] > 1 else jnp.zeros((), jnp.int32)
    return jnp.minimum(block * size + _beyond(u[1], blocks[block]), p - 1)


def _beyond(u: jax.Array, weights: jax.Array) -> jax.Array:
    """The first index whose cumulative weight exceeds u times the sum."""
    num = weights.shape[0]
    few = num <= BLOCK
    cumulative = jnp.tril(jnp.ones((num, num), weights.dtype)) @ weights if few else jnp.cumsum(weights)
    index = jnp.minimum(jnp.sum(cumulative <= u * cumulative[-1]), num - 1).astype(jnp.int32)
    return jnp.where(weights[index] > 0, index, jnp.argmax(weights).astype(jnp.int32))  # rounding found one of weight 0


def step(u: jax.Array, problem: Problem, x: Fit, now: Law) -> Fit:
    """One move from x, whose law is `now`; u: (UNIFORMS,) from `random.unit`. A swap is a column out and one in."""
    p = x.left.shape[0]
    swaps = (u[0] * now.total < problem.swaps) & (x.size > 0)
    flips_one = (u[0] * now.total >= problem.swaps) & (now.total > problem.swaps)
    flipped = pick(u[2:4], now.rates)
    out = swaps | (flips_one & x.inside[flipped])
    there = x.slots < p
    rank = jnp.minimum((u[1] * x.size).astype(jnp.int32), x.size - 1)
    chosen = jnp.argmax(there & (jnp.cumsum(there) - 1 == rank))
    slot = jnp.where(swaps, chosen, jnp.argmax(x.slots == flipped))
    rest = remove(x, slot, out)

    def arrival(_: Any) -> jax.Array:
        return pick(u[4:6], arrivals(problem, rest, x.slots[slot]))

    j = arrival(None) if problem.together else jax.lax.cond(swaps, arrival, lambda _: flipped, None)
    return add(problem.columns, rest, jnp.where(swaps, j, flipped), swaps | (flips_one & ~x.inside[flipped]))


def moments(evidence: Evidence, f: Flips) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(mean, second moment, probability of being positive) of every coefficient when it is in: Student's t with N degrees."""
    N = evidence.N
    s1, s2 = evidence.shrinkage(f.size_out + 1, f.Q_in)
    mean = s1 * f.coefficient
    R2 = 1 - f.Q_in
    second = s2 * f.coefficient**2 + jnp.maximum(s1 - s2 * R2, 0) / (max(N - 2, 1) * f.left)
    scale = jnp.sqrt(jnp.maximum(s1 * (1 - s1 * R2), 1e-30) / (N * f.left))
    t = mean / scale
    z = t * (1 - 1 / (4 * N)) / jnp.sqrt(1 + t * t / (2 * N))  # Student's t as a normal, to 1e-3
    return mean, second, 0.5 * (1 + jax.lax.erf(z / np.sqrt(2)))


@record
class Batch:
    """What a batch of steps leaves of one chain.

    sums: (3, p), as `SUMS`. moments: (4, p), as `MOMENTS`, and the w h that they belong to. slots (steps, m), log_prob, weight
    (steps,): of the visits. last: (m,) slots. full: whether there was no room for another column.
    """

    sums: jax.Array
    moments: jax.Array
    slots: jax.Array
    log_prob: jax.Array
    weight: jax.Array
    last: jax.Array
    full: jax.Array


def run_batch(problem: Problem, slots: jax.Array, keys: jax.Array, steps: int) -> Batch:
    """`steps` steps, whole segments, of every chain from its model: slots (chains, m), keys (chains,)."""
    return _program()(problem, slots, keys, steps)


@functools.cache
def _program() -> Any:
    """XLA:CPU's older code generator compiles this in three fifths of the time, and its steps are as fast."""
    options = {"xla_cpu_use_fusion_emitters": False} if jax.default_backend() == "cpu" else None
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except Exception:  # a later XLA, that has lost the option
        options = None
    return jax.jit(_run_chains, static_argnames="steps", compiler_options=options)


def _run_chains(problem: Problem, slots: jax.Array, keys: jax.Array, steps: int) -> Batch:
    one = functools.partial(_run_chain, problem, steps)
    return jax.vmap(one)(slots, keys) if problem.together else jax.lax.map(lambda args: one(*args), (slots, keys))


def _run_chain(problem: Problem, steps: int, slots: jax.Array, key: jax.Array) -> Batch:
    p, m = problem.log_odds.shape[0], slots.shape[0]
    dtype = problem.log_odds.dtype
    uniforms = random.unit(key, (steps // SEGMENT, SEGMENT, UNIFORMS), dtype)

    def visit(state: tuple, u: Any) -> tuple[tuple, Any]:
        x, sums = state
        now = law(problem, x)
        w = 1 / now.total
        wh = w * now.h
        sums = [total + new for total, new in zip(sums, (wh, w * wh, wh * wh), strict=True)]
        return (step(u, problem, x, now), sums), (x.slots, now.log_prob, w)

    def segment(state: tuple, u: Any) -> tuple[tuple, Any]:
        x, sums, moved = state
        now = law(problem, x)
        mean, second, positive = moments(problem.evidence, now.flips)
        wh = now.h / now.total
        moved = [total + new for total, new in zip(moved, (wh * mean, wh * second, wh * positive, wh), strict=True)]
        (x, sums), visits = jax.lax.scan(visit, (x, sums), u)
        return (x, sums, moved), visits

    zeros = jnp.zeros(p, dtype)
    start = fit(problem.columns, slots), [zeros] * len(SUMS), [zeros] * (len(MOMENTS) + 1)
    (x, sums, moved), visits = jax.lax.scan(segment, start, uniforms)
    last = x.slots
    all_slots, log_prob, weight = (leaf.reshape(steps, *leaf.shape[2:]) for leaf in visits)
    full = jnp.any(jnp.sum(all_slots < p, axis=1) >= m) | (jnp.sum(last < p) >= m)
    return Batch(jnp.stack(sums), jnp.stack(moved), all_slots, log_prob, weight, last, full)
