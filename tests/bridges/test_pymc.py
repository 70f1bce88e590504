"""PyMC models as their authors write them, against exact answers; and errors that name the variable."""

import warnings

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import saltus
from saltus.bridges import pymc as bridge

Y = np.array([1, 0, 0, 3, 2, 1, 0, 8, 7, 9, 6, 8])


def changepoint():
    with pm.Model(coords={"year": np.arange(1900, 1912)}) as model:
        tau = pm.DiscreteUniform("tau", 1, 11)
        early, late = pm.Exponential("early", 0.5), pm.Exponential("late", 0.5)
        rate = pm.Deterministic("rate", pm.math.switch(tau > np.arange(12), early, late), dims="year")
        pm.Poisson("y", rate, observed=Y, dims="year")
    return model


def exact_changepoint():
    """P(tau): rates integrated out, Gamma integrals."""

    def log_marginal(y):
        from scipy.special import gammaln

        return gammaln(1 + y.sum()) - (1 + y.sum()) * np.log(0.5 + len(y))

    log_p = np.array([log_marginal(Y[:t]) + log_marginal(Y[t:]) for t in range(1, 12)])
    p = np.exp(log_p - log_p.max())
    return p / p.sum()


def test_a_changepoint_is_that_of_the_integrals():
    run = bridge.sample(changepoint(), num_draws=2000, num_warmup=500, progress=False)
    seen = np.bincount(run.posterior.tau.values.ravel(), minlength=12)[1:] / run.posterior.tau.size
    np.testing.assert_allclose(seen, exact_changepoint(), atol=0.04)
    assert run.posterior.rate.dims == ("chain", "draw", "year")
    assert list(run.posterior["year"].values) == list(range(1900, 1912))
    assert "y" in run.log_likelihood
    assert not any(name.endswith("__") for name in run.posterior.data_vars)


def test_a_truncated_count():
    with pm.Model() as model:
        n = pm.Truncated("n", pm.Poisson.dist(4.0), upper=12)
        pm.Normal("y", n, 1.0, observed=5.2)
    run = bridge.sample(model, sampler=saltus.Gibbs("systematic"), num_draws=2000, num_warmup=10, progress=False)
    values = np.arange(13)
    p = stats.poisson.pmf(values, 4.0) * stats.norm.pdf(5.2, values, 1.0)
    assert abs(float(run.posterior.n.mean()) - (p / p.sum()) @ values) < 0.06


def test_values_that_are_missing_from_data():
    """Of a Bernoulli as they are; of a count with the bound that the error asks for."""
    holes = np.array([False, True, False, False])
    with pm.Model() as model, warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        pm.Bernoulli("right", np.array([0.5, 0.8, 0.5, 0.5]), observed=np.ma.masked_array([1, 0, 1, 0], holes))
        pm.Truncated("n", pm.Poisson.dist(3.0), upper=9, observed=np.ma.masked_array([2, 0, 4, 1], holes))
    run = bridge.sample(model, sampler=saltus.Gibbs("systematic"), num_draws=1500, num_warmup=10, progress=False)
    assert abs(float(run.posterior.right_unobserved.mean()) - 0.8) < 0.03
    p = stats.poisson.pmf(np.arange(10), 3.0)
    assert abs(float(run.posterior.n_unobserved.mean()) - (p / p.sum()) @ np.arange(10)) < 0.15
    with pm.Model() as unbounded, warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        pm.Poisson("n", 3.0, observed=np.ma.masked_array([2, 0, 4, 1], holes))
    assert "pm.Truncated('n', pm.Poisson.dist(...), upper=100, observed=...)" in message(unbounded)


def test_a_probability_that_a_discrete_variable_makes_zero():
    """Occupancy: pm.Bernoulli("y", z * p), whose derivative in p JAX takes to be NaN where z is 0."""
    y = np.array([[1, 0, 1], [0, 0, 0], [0, 0, 0], [1, 1, 0]])
    with pm.Model() as model:
        p = pm.Beta("p", 2, 2)
        z = pm.Bernoulli("z", 0.5, shape=4)
        pm.Bernoulli("y", z[:, None] * p, observed=y)
    run = bridge.sample(model, num_draws=1500, num_warmup=300, progress=False)
    grid = np.linspace(0, 1, 2001)[1:-1, None]
    there = 0.5 * (grid ** y.sum(1) * (1 - grid) ** (3 - y.sum(1)))
    each = there + 0.5 * (y.sum(1) == 0)
    weight = (grid * (1 - grid))[:, 0] * each.prod(1)
    weight /= weight.sum()
    np.testing.assert_allclose(run.posterior.z.mean(("chain", "draw")), weight @ (there / each), atol=0.04)
    assert abs(float(run.posterior.p.mean()) - weight @ grid[:, 0]) < 0.03


def message(model):
    with pytest.raises(saltus.SaltusError) as caught:
        bridge.sample(model, progress=False)
    return str(caught.value)


def test_errors_name_the_variable_and_the_way_out():
    with pm.Model() as counts:
        pm.Poisson("n", 3.0)
    assert "pm.Truncated('n', pm.Poisson.dist(...)" in message(counts)
    with pm.Model() as dependent:
        n = pm.DiscreteUniform("n", 1, 5)
        pm.Binomial("k", n, 0.5)
    assert "The support of 'k' depends on another site" in message(dependent)
    with pm.Model() as continuous:
        pm.Normal("x", 0, 1)
    assert "no discrete free variable" in message(continuous)
    assert "not a PyMC model" in message(3)
