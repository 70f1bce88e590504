"""The run: chains in batches until every inclusion probability is known well enough; slots grow when a model fills them."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from ..engine.chains import Crew
from .chain import SEGMENT, Problem, run_batch
from .estimates import Totals, inclusion, rhat, worst
from .problem import GRAM, Question
from .progress import Progress
from .visits import Tally, Visits, padded

FIRST_SLOTS = 32
FEW_SLOTS = 16  # of more than 20000 columns
FEWEST_BATCHES = 8
WORK = 1.5e12  # operations that a run may take unless `max_steps` says otherwise: some minutes


@dataclass(frozen=True)
class Goal:
    """When to stop: error of every inclusion probability and R-hat; steps of each chain; seconds."""

    error: float
    max_steps: int | None
    time_limit: float | None
    rhat: float = 1.01


@dataclass(frozen=True)
class Sampled:
    """What the chains left: totals after the warm-up; weights (chains, visits) of the same steps, and which model (chains, visits)
    each saw, of those in slots (models, m), p where empty, and log_posterior; how it ended.
    """

    totals: Totals
    weights: np.ndarray
    model: np.ndarray
    slots: np.ndarray
    log_posterior: np.ndarray
    steps: int
    seconds: float
    first_seconds: float
    ended: str


def sample_models(question: Question, seed: int, num_chains: int, goal: Goal, progress: Progress) -> Sampled:
    """Batches of steps of all chains; after each the errors decide whether to go on."""
    began = time.monotonic()
    progress.say(f"compiling for {question.data.p} columns ...")
    columns = question.columns()
    p = question.data.p
    m = first_slots(question)
    most = goal.max_steps or budget(question, num_chains)
    steps = batch_steps(question, most)
    rng = np.random.default_rng([seed, 22])
    visits = Visits(np.append(rng.integers(2**64, size=p, dtype=np.uint64), np.uint64(0)))
    slots = starts(question, num_chains, m, rng)
    problem = question.problem(m, columns)
    tally, team = Tally(steps, 64 if p <= 20_000 else 16), Team(group_size(problem, num_chains), num_chains, steps)
    number, first_seconds, ended = 0, 0.0, ""
    key = jax.random.key(seed)
    while not ended:
        batch = team.run(problem, slots, random.split(random.fold_in(key, number), num_chains))
        if bool(np.any(batch.full)) and m < min(question.cap, p):
            m = min(2 * m, question.cap, p)
            slots, problem = padded(slots, m, p), question.problem(m, columns)
            continue
        slots, weight = batch.last, batch.weight
        tally.add(batch.sums, batch.moments, weight.sum(axis=1), (weight**2).sum(axis=1))
        visits.add(batch.slots, batch.log_prob, weight)
        first_seconds = first_seconds or time.monotonic() - began
        number += 1
        ended = verdict(tally, goal, most, number, began, progress)
    progress.end()
    totals, kept = tally.kept()
    hashes, models, log_posterior = visits.known()
    weights = np.concatenate(visits.weights[-kept:], axis=1)
    model = np.searchsorted(hashes, np.concatenate(visits.hashes[-kept:], axis=1))
    seconds = time.monotonic() - began
    return Sampled(totals, weights, model, models, log_posterior, number * steps, seconds, first_seconds, ended)


class Team:
    """Groups of chains on the cores that there are. Groups do not depend on how many cores; the first call of a kind compiles."""

    def __init__(self, size: int, num_chains: int, steps: int):
        self._groups = [slice(first, first + size) for first in range(0, num_chains, size)]
        self._crew, self._steps, self._compiled = Crew(len(self._groups)), steps, 0

    def run(self, problem: Problem, slots: np.ndarray, keys: Any) -> Any:
        """The `Batch` of all chains, on the host."""
        tasks = [functools.partial(self._one, problem, slots[g], keys[g]) for g in self._groups]
        first = [] if slots.shape[1] == self._compiled else [tasks.pop(0)()]
        self._compiled = slots.shape[1]
        self._crew.begin(tasks)
        return jax.tree.map(lambda *parts: np.concatenate(parts), *first, *self._crew.wait())

    def _one(self, problem: Problem, slots: np.ndarray, keys: Any) -> Any:
        with jax.enable_x64(True):  # of each thread
            return run_batch(problem, jnp.asarray(slots), keys, self._steps)


def group_size(problem: Problem, num_chains: int) -> int:
    """Chains that one core steps: one, a half of those that step side by side, or all where they share the products with X."""
    if not problem.together:
        return 1
    return num_chains if problem.columns.gram is None else -(-num_chains // 2)


def verdict(tally: Tally, goal: Goal, most: int, number: int, began: float, progress: Progress) -> str:
    """Why the run ends now, or nothing. Errors are looked at whenever there is an eighth more than the last time."""
    seconds = time.monotonic() - began
    out_of_time = goal.time_limit is not None and seconds > goal.time_limit
    if number * tally.steps >= most:
        return "steps"
    if out_of_time and number >= 2:
        return "time"
    if number < FEWEST_BATCHES or number % max(1, number // 8) or not tally.even:
        return ""
    totals, _ = tally.kept()
    found, agreement = inclusion(totals), rhat(totals)
    error, disagreement = float(found.error.max(initial=0)), worst(found, agreement, goal.error)
    progress.show(number * tally.steps, error, goal.error, disagreement, seconds)
    return "goal" if error <= goal.error and disagreement < goal.rhat else ""


def first_slots(question: Question) -> int:
    """Columns for which there is room at first."""
    p = question.data.p
    return max(1, min(question.cap, p, FIRST_SLOTS if p <= 20_000 else FEW_SLOTS))


def batch_steps(question: Question, most: int) -> int:
    """Steps of a batch, whole segments: some tenths of a second of each chain, and few enough for several to make up `most`."""
    segments = np.clip(1.2e9 / cost(question) / SEGMENT, 2, 32)
    return SEGMENT * int(np.clip(most / SEGMENT / (2 * FEWEST_BATCHES), 1, segments))


def budget(question: Question, num_chains: int) -> int:
    """Steps of each chain, from what one costs: the same on every machine."""
    return int(np.clip(WORK / (num_chains * cost(question)), 600, 1_000_000))


def cost(question: Question) -> float:
    """Of a step of one chain, in operations of which a core does about 4e9 in a second."""
    data = question.data
    products = 0 if data.p <= GRAM else 2 * data.n * data.p
    return data.p * (6 * FIRST_SLOTS + 50) + products + 20_000


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
