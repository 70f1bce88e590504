"""Every prior's log evidence is its printed formula; enumeration is a sum over all models."""

import jax
import numpy as np
import pytest
from selection_cases import inclusion, log_evidence, posterior, regression, share_explained, subsets

import saltus
from saltus.selection.coefficient_priors import PRIORS, make_evidence, read_prior

RSQUARED = [p for p in PRIORS if p != "independent"]


@pytest.mark.parametrize("name", RSQUARED)
def test_log_evidence_is_its_formula(name):
    X, y = regression(20, 5)
    with jax.enable_x64(True):
        evidence = make_evidence(read_prior(name), 20, 19, 5, 5)
        for columns in subsets(5):
            found = float(evidence.log_evidence(len(columns), np.float64(1 - share_explained(X, y, columns))))
            assert abs(found - log_evidence(name, X, y, columns)) < 1e-7, columns


def test_hyper_g_is_its_hypergeometric_function():
    from scipy.special import hyp2f1

    with jax.enable_x64(True):
        evidence = make_evidence(read_prior("hyper-g"), 40, 39, 30, 30)
        for k in (1, 5, 30):
            for R2 in (0.01, 0.5, 0.9):
                exact = np.log(1 / (k + 1) * hyp2f1(39 / 2, 1, (k + 3) / 2, R2))
                assert abs(float(evidence.log_evidence(k, np.float64(1 - R2))) - exact) < 1e-7


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("model_prior", [pytest.param("uniform", marks=pytest.mark.full), "beta-binomial"])
def test_enumeration_is_the_sum_over_all_models(name, model_prior):
    X, y = regression(15, 5, seed=3, collinear=0.95)
    models, w = posterior(name, X, y, model_prior)
    found = saltus.variable_selection(X, y, prior=name, model_prior=model_prior)
    np.testing.assert_allclose(found.inclusion, inclusion(models, w, 5), atol=1e-7)
    sizes = [sum(v for c, v in zip(models, w, strict=True) if len(c) == k) for k in range(6)]
    np.testing.assert_allclose(found.size["posterior"], sizes, atol=1e-7)
    best = models[int(np.argmax(w))]
    assert found.models["columns"][0] == tuple(X.columns[list(best)])
    assert abs(found.models["probability"][0] - w.max()) < 1e-7


def test_averaged_coefficients_are_those_of_all_models():
    """g-prior: g / (1 + g) times least squares, averaged; Student's variance with n - 1 degrees."""
    X, y = regression(15, 4)
    models, w = posterior("g", X, y)
    Z, c, n = X.to_numpy() - X.to_numpy().mean(0), y.to_numpy() - y.mean(), 15
    mean, second, s = np.zeros(4), np.zeros(4), n / (1 + n)
    for columns, weight in zip(models, w, strict=True):
        k = list(columns)
        inner = np.linalg.inv(Z[:, k].T @ Z[:, k])
        beta = s * inner @ Z[:, k].T @ c
        left = c @ c * (1 - s * share_explained(X, y, columns))
        mean[k] += weight * beta
        second[k] += weight * (beta**2 + s * left / (n - 3) * np.diagonal(inner))
    table = saltus.variable_selection(X, y).coefficients
    np.testing.assert_allclose(table["mean"], mean, atol=1e-9)
    np.testing.assert_allclose(table["sd"], np.sqrt(second - mean**2), atol=1e-9)
    draws = saltus.variable_selection(X, y)._draws[0]
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * (np.sqrt(second) / np.sqrt(len(draws))).max())


def test_log_marginal_likelihood_is_the_sum():
    X, y = regression(15, 4)
    f = [log_evidence("g", X, y, c) for c in subsets(4)]
    found = saltus.variable_selection(X, y, model_prior="uniform").log_marginal_likelihood
    assert abs(found - (np.logaddexp.reduce(f) - 4 * np.log(2))) < 1e-9


def test_a_prior_of_each_column():
    X, y = regression(15, 4)
    each = np.array([0.1, 0.5, 0.9, 0.3])
    models = subsets(4)
    f = [log_evidence("g", X, y, c) + sum(np.log(each[j] if j in c else 1 - each[j]) for j in range(4)) for c in models]
    w = np.exp(f - np.logaddexp.reduce(f))
    found = saltus.variable_selection(X, y, model_prior=each)
    np.testing.assert_allclose(found.inclusion, inclusion(models, w, 4), atol=1e-9)
    assert abs(found.log_marginal_likelihood - np.logaddexp.reduce(f)) < 1e-9
    np.testing.assert_allclose(found.size["prior"].sum(), 1)
