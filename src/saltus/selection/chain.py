r"""The chain: weighted tempered Gibbs over columns with heat-bath swaps, and what it adds up on its way.

A model γ is left by flipping column i at the rate η_i / p(γ_i | rest), η_i = ½ (p(γ_i = 1 | rest) + κ/p) (weighted TGS,
Zanella & Roberts
2019), or by a swap at the rate λ: one of its columns, chosen evenly, is replaced by column j with the probability of the model that
then results among all replacements, itself included. With W(γ) the sum of the flip rates,

$$ \pi(\gamma)\, (W(\gamma) + \lambda) $$

is stationary for the sequence of models, so a visit weighs w = 1 / (W + λ). Flips: π(γ) η_i / p(γ_i | rest) is the same for
both models. Swaps:
a heat bath among models of one size leaves π invariant, and rings at the same rate everywhere. Every visit gives all p inclusion
probabilities at once, p(γ_i = 1 | rest) (Rao-Blackwell).
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
from .active import Columns, Fit, Flips, fit, flips, move, without
from .coefficient_priors import Evidence

SUMS = ("h", "wh", "whh", "mean", "second", "positive")  # each times w; h: p(γ_i = 1 | rest)


@record
class Problem:
    """What a chain needs. steps: (most + 2,) log prior of one column more, by size; log_odds: (p,) on top, for each column.

    kappa: how many columns the exploration should keep trying; swaps: the rate λ. together: chains side by side, or one
    after the other.
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
    """How a model is left: flips; h (p,), p(γ_i = 1 | rest); rates (p,) of flipping; total, with that of swaps."""

    flips: Flips
    h: jax.Array
    rates: jax.Array
    total: jax.Array


def law(problem: Problem, x: Fit) -> Law:
    f = flips(problem.columns, x)
    odds = stored(inclusion_odds, problem, f)
    most = 600.0 if odds.dtype == jnp.float64 else 80.0
    odds = jnp.clip(odds, -most, most)
    possible = f.possible & (f.inside | (x.size < x.slots.shape[0]))
    possible &= jnp.isfinite(problem.log_prior[f.size_out + 1])
    h = jnp.where(possible, jax.nn.sigmoid(odds), 0)
    eta = 0.5 * (h + problem.kappa / len(h))
    rates = stored(jnp.where, possible, eta * (1 + jnp.exp(jnp.where(f.inside, -odds, odds))), 0)
    return Law(f, h, rates, jnp.sum(rates) + problem.swaps)


def inclusion_odds(problem: Problem, f: Flips) -> jax.Array:
    """(p,) log odds of every column being in, given the rest."""
    evidence = problem.evidence
    logdet_in = f.logdet_out + jnp.log(f.left)
    change = evidence.log_evidence(f.size_out + 1, f.Q_in, logdet_in) - evidence.log_evidence(f.size_out, f.Q_out, f.logdet_out)
    prior = problem.log_prior[f.size_out + 1] - problem.log_prior[f.size_out]
    return change + prior + problem.log_odds


def log_posterior(problem: Problem, x: Fit) -> jax.Array:
    """log p(y | γ) p(γ), relative to p(y | no column)."""
    p = x.left.shape[0]
    each = jnp.where(x.slots < p, problem.log_odds[jnp.minimum(x.slots, p - 1)], 0)
    return problem.evidence.log_evidence(x.size, x.Q, x.logdet) + problem.log_prior[x.size] + jnp.sum(each)


def replacements(problem: Problem, x: Fit, slot: Any) -> jax.Array:
    """(p,) weights of the columns that may take this slot, the one in it included."""
    Q, logdet, possible = without(problem.columns, x, slot)
    log_weights = problem.evidence.log_evidence(jnp.broadcast_to(x.size, Q.shape), Q, logdet) + problem.log_odds
    log_weights = jnp.where(possible, log_weights, -jnp.inf)
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
    """One move from x, whose law is `now`; u: (UNIFORMS,) from `random.unit`."""
    p = x.left.shape[0]
    swap = (u[0] * now.total < problem.swaps) & (x.size > 0)
    index = pick(u[2:4], now.rates)
    there = x.slots < p
    rank = jnp.minimum((u[1] * x.size).astype(jnp.int32), x.size - 1)
    swapped_slot = jnp.argmax(there & (jnp.cumsum(there) - 1 == rank))
    old = x.slots[swapped_slot]

    def draw(_: Any) -> jax.Array:
        return pick(u[4:6], replacements(problem, x, swapped_slot))

    new = draw(None) if problem.together else jax.lax.cond(swap, draw, lambda _: old.astype(jnp.int32), None)
    moves = jnp.where(swap, new != old, now.total > problem.swaps)
    moves &= swap | (u[0] * now.total >= problem.swaps)
    deletes, adds = moves & (swap | now.flips.inside[index]), moves & (swap | ~now.flips.inside[index])
    slot = jnp.where(swap, swapped_slot, jnp.argmax(x.slots == index))
    return move(problem.columns, x, slot, jnp.where(swap, new, index), deletes, adds, lazy=not problem.together)


def moments(problem: Problem, f: Flips) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(mean, second moment, probability of being positive) of every coefficient when it is in: Student's t with N degrees."""
    N = problem.evidence.N
    s1, s2 = problem.evidence.shrinkage(f.size_out + 1, f.Q_in)
    mean = s1 * f.coefficient
    R2 = 1 - f.Q_in
    second = s2 * f.coefficient**2 + jnp.maximum(s1 - s2 * R2, 0) / (max(N - 2, 1) * f.left)
    scale = jnp.sqrt(jnp.maximum(s1 * (1 - s1 * R2), 1e-30) / (N * f.left))
    t = mean / scale
    z = t * (1 - 1 / (4 * N)) / jnp.sqrt(1 + t * t / (2 * N))  # Student's t as a normal, to 1e-3
    return mean, second, 0.5 * (1 + jax.lax.erf(z / np.sqrt(2)))


@record
class Batch:
    """What a batch of steps leaves of one chain. sums: (6, p), as `SUMS`; slots (steps, m), log_prob, weight (steps,) of the
    visits.
    """

    sums: jax.Array
    slots: jax.Array
    log_prob: jax.Array
    weight: jax.Array
    last: jax.Array
    full: jax.Array


def run_batch(problem: Problem, slots: jax.Array, keys: jax.Array, steps: int) -> Batch:
    """`steps` steps of every chain from its model: slots (chains, m), keys (chains,)."""
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
    x = fit(problem.columns, slots)
    sums = jnp.zeros((len(SUMS), x.left.shape[0]), x.left.dtype)

    uniforms = random.unit(key, (steps, UNIFORMS), x.left.dtype)

    def visit(state: tuple, u: Any) -> tuple[tuple, Any]:
        x, sums = state
        now = law(problem, x)
        w = 1 / now.total
        mean, second, positive = moments(problem, now.flips)
        wh = w * now.h
        sums = sums + jnp.stack([wh, w * wh, wh * wh, wh * mean, wh * second, wh * positive])
        kept = (x.slots, log_posterior(problem, x), w)
        return (step(u, problem, x, now), sums), kept

    (x, sums), visits = jax.lax.scan(visit, (x, sums), uniforms)
    all_slots, log_prob, weight = visits
    m = slots.shape[0]
    full = jnp.any(jnp.sum(all_slots < x.left.shape[0], axis=1) >= m) | (x.size >= m)
    return Batch(sums, all_slots, log_prob, weight, x.slots, full)
