"""The chain's step is certified as a kernel; any kernel of saltus samples the same models; sums over its draws are right."""

import jax
import numpy as np
import pytest
from selection_cases import inclusion, posterior, regression

import saltus
from saltus.selection.by_kernel import summed
from saltus.selection.coefficient_priors import read_prior
from saltus.selection.data import read_data
from saltus.selection.estimates import inclusion as estimated
from saltus.selection.estimates import moment
from saltus.selection.kernel import ModelWalk, model_target
from saltus.selection.model_priors import read_model_prior
from saltus.selection.problem import Question
from saltus.testing import check_kernel, enumerate_states


def problem_of(X, y, p=4, swaps=1.0):
    data = read_data(X, y)
    asked = Question(data, read_prior("g"), read_model_prior("uniform", p))
    return asked.problem(p, asked.columns(), swaps)


@pytest.fixture(scope="module")
def data():
    return regression(12, 4, seed=5, collinear=0.9)


def test_the_target_is_the_posterior_and_its_differences_are_exact(data):
    models, w = posterior("g", *data, "uniform")
    with jax.enable_x64(True):
        target = model_target(problem_of(*data), 4)
        codes = enumerate_states(target)
        f = np.asarray(jax.vmap(target.value)(codes))
        share = np.exp(f - np.logaddexp.reduce(f))
        place = {tuple(np.flatnonzero(c)): i for i, c in enumerate(np.asarray(codes))}
        np.testing.assert_allclose([share[place[c]] for c in models], w, atol=1e-9)
        odds = np.asarray(jax.vmap(lambda c: target.log_prob.both(target.params, c)[1])(codes))
        for code, own in zip(np.asarray(codes), odds, strict=True):
            for j in range(4):
                with_j, without = (
                    tuple(np.flatnonzero(code | (np.arange(4) == j))),
                    tuple(np.flatnonzero(code & (np.arange(4) != j))),
                )
                assert abs(own[j] - (f[place[with_j]] - f[place[without]])) < 1e-8


def test_impossible_models_are_impossible(data):
    X, y = data
    X = X.assign(d=X["a"] - 2 * X["b"])
    with jax.enable_x64(True):
        target = model_target(problem_of(X, y), 4)
        impossible = np.array([1, 1, 0, 1], np.int8)
        assert float(target.value(impossible)) == -np.inf
        few = model_target(problem_of(X, y), 2)
        assert float(few.value(np.array([1, 0, 1, 1], np.int8))) == -np.inf


@pytest.mark.full
@pytest.mark.parametrize("swaps", [1.0, 30.0])
def test_the_step_of_the_chain_is_certified(data, swaps):
    with jax.enable_x64(True):
        report = check_kernel(ModelWalk(), model_target(problem_of(*data, swaps=swaps), 4), battery=False, num_chains=2**14)
    assert {"stationary start", "coherence", "connected", "info"} <= set(report.passed and report.ran)


def test_walks_refuse_other_targets():
    with pytest.raises(saltus.KernelError, match="models of a regression"):
        ModelWalk().init(saltus.targets.ising((2, 2), coupling=0.3), np.zeros(4, np.int8))


def test_sums_over_draws_are_those_of_the_posterior(data):
    """All models as draws, weighed by their probabilities: the sums are exact."""
    models, w = posterior("g", *data, "uniform")
    inside = np.array([[[j in c for j in range(4)] for c in models] * 2])
    with jax.enable_x64(True):
        totals, model, slots, log_posterior = summed(problem_of(*data), inside, np.tile(w, 2)[None], 4)
    exact = saltus.variable_selection(*data, model_prior="uniform")
    np.testing.assert_allclose(estimated(totals).value, inclusion(models, w, 4), atol=1e-9)
    np.testing.assert_allclose(moment(totals, "mean").value, exact._answer.mean.value, atol=1e-9)
    np.testing.assert_allclose(moment(totals, "positive").value, exact._answer.positive.value, atol=1e-9)
    assert [tuple(slots[i][slots[i] < 4]) for i in model[0]] == models * 2
    np.testing.assert_allclose(np.exp(log_posterior - np.logaddexp.reduce(log_posterior))[model[0]], np.tile(w, 2), atol=1e-9)


@pytest.mark.parametrize("method", ["ncg", *(pytest.param(m, marks=pytest.mark.full) for m in ("pavg", "tempered", saltus.TGS()))])
def test_any_kernel_goes_through_the_models(data, method):
    exact = saltus.variable_selection(*data, model_prior="uniform")
    found = saltus.variable_selection(*data, model_prior="uniform", method=method, max_steps=500, progress=False)
    assert ((found.inclusion - exact.inclusion).abs() <= 4 * found.inclusion_error + 1e-9).all()
    assert (found.inclusion_error < 0.05).all()
    assert found.told["kernel"] in found.summary()


def test_an_unknown_method_is_refused(data):
    with pytest.raises(saltus.SaltusError, match=r"enumerate.*ncg"):
        saltus.variable_selection(*data, method="nut")
