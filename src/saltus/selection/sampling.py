"""The run: chains in batches until every inclusion probability is known well enough; slots grow when a model fills them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .chain import run_batch
from .estimates import Totals, inclusion, rhat
from .problem import Question
from .progress import Progress

FIRST_SLOTS = 16
FEWEST_BATCHES = 8
WORK = 1.2e11  # operations that a run may take unless `max_steps` says otherwise


@dataclass(frozen=True)
class Goal:
    """When to stop: error of every inclusion probability and R-hat; steps of each chain; seconds."""

    error: float
    max_steps: int | None
    time_limit: float | None
    rhat: float = 1.01


@dataclass
class Visits:
    """Models visited: (chains, steps) hashes and weights, and of every model its columns, size and log posterior."""

    keys: np.ndarray
    hashes: list = field(default_factory=list)
    weights: list = field(default_factory=list)
    known: dict = field(default_factory=dict)  # hash -> (columns, log posterior)

    def add(self, slots: np.ndarray, log_prob: np.ndarray, weight: np.ndarray) -> None:
        hashes = self.keys[slots].sum(axis=-1, dtype=np.uint64)
        new, first = np.unique(hashes, return_index=True)
        flat, values = slots.reshape(-1, slots.shape[-1]), log_prob.reshape(-1)
        for key, place in zip(new.tolist(), first.tolist(), strict=True):
            if key not in self.known:
                self.known[key] = (np.sort(flat[place][flat[place] < len(self.keys) - 1]), float(values[place]))
        self.hashes.append(hashes)
        self.weights.append(weight)


@dataclass(frozen=True)
class Sampled:
    """What the chains left: totals after the warm-up; visits of the same steps; how it ended."""

    totals: Totals
    hashes: np.ndarray
    weights: np.ndarray
    known: dict
    steps: int
    slots: int
    seconds: float
    first_seconds: float
    ended: str


def sample_models(question: Question, seed: int, num_chains: int, goal: Goal, progress: Progress) -> Sampled:
    """Batches of steps of all chains; after each the errors decide whether to go on."""
    began = time.monotonic()
    columns = question.columns()
    p = question.data.p
    m = first_slots(question)
    steps = batch_steps(question)
    most = goal.max_steps or budget(question, columns.gram is not None, num_chains)
    rng = np.random.default_rng([seed, 22])
    visits = Visits(np.append(rng.integers(2**64, size=p, dtype=np.uint64), np.uint64(0)))
    slots = starts(question, num_chains, m, rng)
    problem = question.problem(m, columns)
    sums: list = []
    number, first_seconds, ended = 0, 0.0, ""
    key = jax.random.key(seed)
    while True:
        keys = random.split(random.fold_in(key, number), num_chains)
        batch = run_batch(problem, jnp.asarray(slots), keys, steps)
        if bool(np.any(batch.full)) and m < min(question.cap, p):
            m = min(2 * m, question.cap, p)
            slots = np.concatenate([slots, np.full((num_chains, m - slots.shape[1]), p, np.int32)], axis=1)
            problem = question.problem(m, columns)
            continue
        slots = np.asarray(batch.last)
        weight = np.asarray(batch.weight)
        sums.append((np.asarray(batch.sums), weight.sum(axis=1), (weight**2).sum(axis=1)))
        visits.add(np.asarray(batch.slots), np.asarray(batch.log_prob), weight)
        first_seconds = first_seconds or time.monotonic() - began
        number += 1
        ended = verdict(sums, steps, goal, most, number, began, progress)
        if ended:
            break
    totals = totals_of(sums, steps).kept()
    kept = totals.weight.shape[1]
    hashes = np.concatenate(visits.hashes[-kept:], axis=1)
    weights = np.concatenate(visits.weights[-kept:], axis=1)
    seconds = time.monotonic() - began
    return Sampled(totals, hashes, weights, visits.known, number * steps, m, seconds, first_seconds, ended)


def totals_of(sums: list, steps: int) -> Totals:
    every, weight, square = (np.stack([each[i] for each in sums], axis=1) for i in range(3))
    return Totals(every, weight, square, steps)


def verdict(sums: list, steps: int, goal: Goal, most: int, number: int, began: float, progress: Progress) -> str:
    """Why the run ends now, or nothing. Errors are looked at whenever there is an eighth more than the last time."""
    seconds = time.monotonic() - began
    out_of_time = goal.time_limit is not None and seconds > goal.time_limit
    if number * steps >= most:
        return "steps"
    if out_of_time and number >= 2:
        return "time"
    if number < FEWEST_BATCHES or number % max(1, number // 8):
        return ""
    totals = totals_of(sums, steps).kept()
    found, agreement = inclusion(totals), rhat(totals)
    error, worst = float(found.error.max(initial=0)), float(np.nanmax(agreement, initial=1))
    progress.show(number * steps, error, goal.error, worst, seconds)
    return "goal" if error <= goal.error and worst < goal.rhat else ""


def first_slots(question: Question) -> int:
    """Columns for which there is room at first."""
    p = question.data.p
    return max(1, min(question.cap, p if p <= 24 else FIRST_SLOTS))


def batch_steps(question: Question) -> int:
    """Steps of a batch: about a second's work at most, and enough for a batch to stand for itself."""
    data = question.data
    return int(np.clip(4e7 / (data.p * FIRST_SLOTS + (data.n * data.p if data.p > 3000 else 0)), 64, 1000))


def budget(question: Question, gram: bool, num_chains: int) -> int:
    """Steps of each chain, from what one costs: the same on every machine."""
    data = question.data
    cost = data.p * (8 * FIRST_SLOTS + 300) + (0 if gram else data.n * data.p) + 20000
    return int(np.clip(WORK / (num_chains * cost), 600, 200_000))


def starts(question: Question, num_chains: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """(chains, m): every second chain begins with no column, the others with a few at random that are independent."""
    p, X = question.data.p, question.data.columns
    slots = np.full((num_chains, m), p, np.int32)
    for chain in range(1, num_chains, 2):
        num = min(int(rng.integers(1, 4)), question.cap)
        chosen: list[int] = []
        for j in rng.permutation(p)[:20]:
            tried = [*chosen, int(j)]
            if len(chosen) < num and (question.prior.ridge or np.linalg.svd(X[:, tried], compute_uv=False)[-1] > 1e-3):
                chosen = tried
        slots[chain, : len(chosen)] = chosen[:m]
    return slots
