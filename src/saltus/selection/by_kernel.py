"""Any kernel of saltus in place of the chain: its draws -> the same sums, from exact differences at every model it visited."""

from __future__ import annotations

import time
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from ..errors import ConvergenceWarning, SelectionError
from ..run.sample import sample
from .active import fit
from .chain import MOMENTS, SUMS, Problem, law, moments
from .estimates import BATCHES, Totals
from .kernel import model_target
from .problem import Question
from .sampling import Goal, Sampled, starts

MOST = 64  # columns of a model
DRAWS = 2000  # of each chain, unless `max_steps` says otherwise
AT_ONCE = 2**22  # numbers


def sample_by(question: Question, sampler: Any, seed: int, num_chains: int, goal: Goal, progress: bool) -> tuple[Sampled, str]:
    """(what its chains left, the kernel in words). sampler: as for `saltus.sample`."""
    began, p = time.monotonic(), question.data.p
    most = min(question.cap, p, MOST)
    problem = question.problem(most, question.columns())
    target = model_target(problem, most, [question.data.names[j] for j in question.data.entering])
    slots = starts(question, num_chains, most, np.random.default_rng([seed, 22]))
    first = np.zeros((num_chains, p + 1))
    np.put_along_axis(first, slots, 1, axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what to doubt, the `Selection` says itself
        run = sample(
            target,
            sampler,
            num_draws=max(goal.max_steps or DRAWS, 2 * BATCHES),
            num_chains=num_chains,
            seed=seed,
            initial=first[:, :p],
            progress=progress,
            time_limit=goal.time_limit,
        )
    raw = run["weighted_posterior"] if "weighted_posterior" in run.children else None
    inside = np.asarray((run["posterior"] if raw is None else raw)["s"]) > 0.5
    log_weight = np.zeros(inside.shape[:2]) if raw is None else np.asarray(raw["log_weight"], np.float64)
    if inside.shape[1] < 2:
        raise SelectionError("The time limit left no draws to speak of.", found=f"{inside.shape[1]} a chain", hint="time_limit=")
    seconds = time.monotonic() - began
    totals, model, every, log_posterior = summed(problem, inside, np.exp(log_weight - log_weight.max()), most)
    ended = "steps" if inside.shape[1] >= (goal.max_steps or DRAWS) else "time"
    weight = np.exp(log_weight - log_weight.max())
    return Sampled(totals, weight, model, every, log_posterior, inside.shape[1], seconds, seconds, ended), str(run.attrs["sampler"])


def summed(
    problem: Problem, inside: np.ndarray, weight: np.ndarray, most: int
) -> tuple[Totals, np.ndarray, np.ndarray, np.ndarray]:
    """(totals, which model each draw is (chains, draws), slots of the models, log posterior). inside: (chains, draws, p)."""
    chains, draws, p = inside.shape
    packed, index = np.unique(np.packbits(inside.reshape(-1, p), axis=1), axis=0, return_inverse=True)
    models = np.unpackbits(packed, axis=1, count=p).astype(bool)
    slots = np.sort(np.where(models, np.arange(p, dtype=np.int32), p), axis=1)[:, :most]
    num = min(draws // 2, 4 * BATCHES)
    cell = np.arange(chains)[:, None] * num + np.arange(draws) * num // draws
    model = index.reshape(chains, draws)
    by = lambda w: scipy.sparse.coo_matrix((w.ravel(), (cell.ravel(), model.ravel())), (chains * num, len(slots))).tocsr()  # noqa: E731
    w, w2 = by(weight), by(weight**2)
    sums, moved = np.zeros((chains * num, len(SUMS), p)), np.zeros((chains * num, len(MOMENTS) + 1, p))
    log_posterior = np.zeros(len(slots))
    size = max(1, AT_ONCE // (p * (most + 8)))
    for first in range(0, len(slots), size):
        part = slice(first, first + size)
        padded = np.pad(slots[part], [(0, size - len(slots[part])), (0, 0)], constant_values=p)
        h, log_prob, *each = (np.asarray(x)[: len(slots[part])] for x in _looked(problem, padded))
        log_posterior[part] = log_prob
        for i, (weights, values) in enumerate(((w, h), (w2, h), (w2, h * h))):
            sums[:, i] += weights[:, part] @ values
        for i, values in enumerate((*each, np.ones_like(h))):
            moved[:, i] += w[:, part] @ (h * values)
    shape = (chains, num)
    total, square = (np.asarray(x.sum(axis=1)).reshape(shape) for x in (w, w2))
    totals = Totals(sums.reshape(*shape, *sums.shape[1:]), moved.reshape(*shape, *moved.shape[1:]), total, square, draws // num)
    return totals, model, slots, log_posterior


@jax.jit
def _looked(problem: Problem, slots: jax.Array) -> tuple:
    """Of every model: h (models, p), log posterior, and the moments of the coefficients."""

    def one(slots: jax.Array) -> tuple:
        now = law(problem, fit(problem.columns, slots))
        return now.h, now.log_prob, *moments(problem.evidence, now.flips)

    return jax.lax.map(one, jnp.asarray(slots))
