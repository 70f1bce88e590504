"""The sampler leaves π (W + λ) invariant: its law by enumeration, its steps from exact draws, and planted bugs that must be
seen.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2
from selection_cases import quick_jit, regression, subsets

from saltus import random
from saltus._record import changed
from saltus.selection import chain, sampling
from saltus.selection.active import fit, remove
from saltus.selection.coefficient_priors import read_prior
from saltus.selection.data import read_data
from saltus.selection.model_priors import read_model_prior
from saltus.selection.problem import Question

P = 4


def question(prior="g", model_prior="beta-binomial", duplicated=False, p=P):
    X, y = regression(12, p, seed=5, collinear=0.9)
    if duplicated:
        X["c"] = 2 * X["a"]
    data = read_data(X, y)
    return Question(data, read_prior(prior), read_model_prior(model_prior, data.p))


def states(asked, p=P):
    """(slots of every possible model (models, p), log posterior)."""
    every = [c for c in subsets(p) if len(c) <= asked.cap]
    X = asked.data.columns
    if not asked.prior.ridge:
        every = [c for c in every if not c or np.linalg.svd(X[:, list(c)], compute_uv=False)[-1] > 1e-4]
    return every, jnp.asarray([[*c, *[p] * (p - len(c))] for c in every], jnp.int32)


def laws(problem, every, slots):
    """(log π, W + λ, transition matrix) of all models, from the law that `step` draws from."""
    place, p = {c: i for i, c in enumerate(every)}, slots.shape[1]

    @quick_jit
    @jax.vmap
    def look(slots):
        x = fit(problem.columns, slots)
        now = chain.law(problem, x)
        swaps = [chain.arrivals(problem, remove(x, slot), x.slots[slot]) for slot in range(p)]
        return now.rates, now.total, chain.log_posterior(problem, x), jnp.stack(swaps)

    rates, total, log_pi, swaps = map(np.asarray, look(slots))
    K = np.zeros((len(every), len(every)))
    for i, c in enumerate(every):
        for j in np.flatnonzero(rates[i]):
            K[i, place[tuple(sorted(set(c) ^ {int(j)}))]] += rates[i, j] / total[i]
        swap = float(problem.swaps) / total[i]
        if not c:
            K[i, i] += swap
        for slot, old in enumerate(c):
            weights = swaps[i, slot]
            for j in np.flatnonzero(weights):
                K[i, place[tuple(sorted({*c, int(j)} - ({old} - {int(j)})))]] += swap / len(c) * weights[j] / weights.sum()
    return log_pi, total, K


@pytest.mark.parametrize(
    ("prior", "model_prior", "duplicated"),
    [
        ("g", "beta-binomial", False),
        ("independent", "uniform", True),
        pytest.param("hyper-g/n", "uniform", False, marks=pytest.mark.full),
        pytest.param("g", [0.1, 0.5, 0.7, 0.2], False, marks=pytest.mark.full),
        pytest.param("bric", "uniform", True, marks=pytest.mark.full),
    ],
)
def test_the_law_leaves_its_target_invariant(prior, model_prior, duplicated):
    with jax.enable_x64(True):
        asked = question(prior, model_prior, duplicated)
        problem = asked.problem(P, asked.columns(gram=True))
        every, slots = states(asked)
        log_pi, total, K = laws(problem, every, slots)
    pi = np.exp(log_pi - np.logaddexp.reduce(log_pi))
    np.testing.assert_allclose(K.sum(axis=1), 1, atol=1e-12)
    flow = (pi * total)[:, None] * K
    np.testing.assert_allclose(flow, flow.T, atol=1e-9 * flow.max())  # tables of hyper-g are right to 1e-9
    reach = np.linalg.matrix_power((K > 0).astype(float) + np.eye(len(every)), len(every))
    assert (reach > 0).all()


def stationary_test(problem, every, slots, log_pi, total, num_steps, step=chain.step, num=2**14):
    """p-value of χ² between where chains are that began in exact draws of π (W + λ), and that law."""
    p = slots.shape[1]
    law = np.exp(log_pi - log_pi.max()) * total
    law /= law.sum()
    first = np.random.default_rng(0).choice(len(every), size=num, p=law)
    u = random.unit(jax.random.key(1), (num, num_steps, chain.UNIFORMS), jnp.float64)

    def one(slots, u):
        x = fit(problem.columns, slots)
        x, _ = jax.lax.scan(lambda x, u: (step(u, problem, x, chain.law(problem, x)), None), x, u)
        return jnp.sum(jnp.where(x.slots < p, 1 << jnp.minimum(x.slots, p), 0))

    codes = np.asarray(quick_jit(jax.vmap(one))(slots[first], u))
    count = np.bincount(codes, minlength=2**p)
    seen = np.array([count[sum(1 << j for j in c)] for c in every])
    assert seen.sum() == num  # nothing else was entered
    expected = law * num
    small = expected < 10
    seen = np.append(seen[~small], seen[small].sum())
    expected = np.append(expected[~small], expected[small].sum())
    usable = expected > 0
    return chi2.sf(np.sum((seen - expected)[usable] ** 2 / expected[usable]), usable.sum() - 1)


@pytest.mark.parametrize(
    ("together", "num_steps"),
    [(True, 3), pytest.param(True, 1, marks=pytest.mark.full), pytest.param(False, 3, marks=pytest.mark.full)],
)
def test_exact_draws_stay_exact(together, num_steps):
    with jax.enable_x64(True):
        asked = question("g", "uniform", True)
        problem = changed(asked.problem(P, asked.columns(gram=together)), together=together)
        every, slots = states(asked)
        log_pi, total, _ = laws(problem, every, slots)
        assert stationary_test(problem, every, slots, log_pi, total, num_steps) > 1e-6


def forgetful_swaps(right, problem, x, old):
    """A planted bug: a swap that never keeps the column it began with."""
    return right(problem, x, old).at[old].set(0, mode="drop")


def lopsided(right, problem, x):
    """A planted bug: η depends on whether the column is in."""
    now = right(problem, x)
    rates = jnp.where(now.flips.inside, 0.8, 1.0) * now.rates
    return changed(now, rates=rates, total=jnp.sum(rates) + problem.swaps)


@pytest.mark.parametrize(("name", "bug"), [("arrivals", forgetful_swaps), pytest.param("law", lopsided, marks=pytest.mark.full)])
def test_planted_bugs_are_seen(name, bug, monkeypatch):
    with jax.enable_x64(True):
        asked = question("g", "uniform")
        problem = asked.problem(P, asked.columns(gram=True))
        every, slots = states(asked)
        log_pi, total, K = laws(problem, every, slots)
        pi = np.exp(log_pi - np.logaddexp.reduce(log_pi))
        wrong = pi * (total - float(problem.swaps))  # weights that forget the swaps
        assert np.abs(wrong @ K - wrong).max() > 1e-3 * wrong.max()
        monkeypatch.setattr(chain, name, functools.partial(bug, getattr(chain, name)))
        assert stationary_test(problem, every, slots, log_pi, total, 3) < 1e-6


@pytest.mark.full
def test_the_same_seed_gives_the_same_numbers_and_slots_may_grow():
    """A run whose slots had to grow is the run that had enough of them from the beginning."""
    from saltus.selection.progress import Progress

    X, y = regression(40, 26 - 10, seed=7)
    data = read_data(X, y)
    asked = Question(data, read_prior("g"), read_model_prior(0.5, data.p))
    goal = sampling.Goal(1e-9, 300, None)
    found = []
    for first in (16, 4):
        before = sampling.first_slots
        sampling.first_slots = lambda asked, first=first: first
        try:
            with jax.enable_x64(True):
                found.append(sampling.sample_models(asked, 3, 2, goal, Progress(False)))
        finally:
            sampling.first_slots = before
    few, grown = found
    assert grown.slots.shape[1] > 4
    np.testing.assert_array_equal(few.model, grown.model)
    np.testing.assert_allclose(few.totals.sums, grown.totals.sums, rtol=1e-6, atol=1e-9)
