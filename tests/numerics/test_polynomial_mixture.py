"""The ordinal mixtures: the definition, the exact truth, and float32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from saltus.errors import TargetError
from saltus.targets.polynomial_mixture import polynomial_mixture

GRID = np.linspace(-1.5, 3.0, 50)
ORDERS = [2, 4]


def g(order, t):
    return -2 * t - 6 * t**2 if order == 2 else 2 * (-t + t**2 - t**3 - t**4)


def shift(order, k):
    return (2 if order == 2 else 3) * k / 49


def normaliser(order, k):
    return np.exp(g(order, GRID - shift(order, k))).sum()


def definition(order, s):
    """log (1/50) sum_k prod_i p_k(s_i), term by term, for states (..., d)."""
    factors = [np.exp(g(order, s - shift(order, k))) / normaliser(order, k) for k in range(50)]
    return np.log(sum(np.prod(p, axis=-1) for p in factors) / 50)


def states(target, num=200):
    """Exact draws, and states that are nowhere near the mixture."""
    near = target.space.embed(target.truth.sample(jax.random.key(0), num))
    far = np.random.default_rng(1).choice(GRID, near.shape)
    return np.concatenate([near, far])


def value_and_gradient(target, s):
    s = jnp.asarray(s, jnp.result_type(float))
    f, gradient = jax.jit(jax.vmap(jax.value_and_grad(target.log_prob_of)))(s)
    assert f.dtype == gradient.dtype == jnp.result_type(float)
    return np.asarray(f, np.float64), np.asarray(gradient, np.float64)


@pytest.mark.parametrize(("order", "anchors"), [(2, (0.833, 0.430, 0.806)), (4, (0.303, 0.859, 0.902))])
def test_anchors(order, anchors):
    mean, variance, correlation = anchors
    truth = polynomial_mixture(order).truth
    assert truth.mean.shape == (20,)
    assert truth.marginals.shape == (20, 50)
    np.testing.assert_allclose(truth.mean, mean, atol=5e-4)
    np.testing.assert_allclose(np.diag(truth.covariance), variance, atol=5e-4)
    np.testing.assert_allclose(truth.covariance[0, 1:] / truth.covariance[0, 0], correlation, atol=5e-4)


@pytest.mark.parametrize("order", ORDERS)
def test_truth_is_what_enumeration_gives(order):
    with jax.enable_x64(True):
        target = polynomial_mixture(order, num_sites=2)
        codes = target.space.enumerate()
        p, s = np.exp(jax.vmap(target.value)(codes)), np.asarray(target.space.embed(codes))
    truth = target.truth
    assert truth.log_normaliser == 0.0
    np.testing.assert_allclose(p.sum(), 1, rtol=1e-12)
    np.testing.assert_allclose(truth.mean, p @ s, rtol=1e-12)
    np.testing.assert_allclose(truth.covariance, (s * p[:, None]).T @ s - np.outer(p @ s, p @ s), rtol=1e-11)
    np.testing.assert_allclose(truth.marginals, [p.reshape(50, 50).sum(1), p.reshape(50, 50).sum(0)], rtol=1e-11)


@pytest.mark.parametrize("order", ORDERS)
def test_log_prob_is_the_definition_and_differentiable(order):
    with jax.enable_x64(True):
        target = polynomial_mixture(order, num_sites=5)
        s = states(target, 20)
        s += np.random.default_rng(0).normal(size=s.shape) * 0.1  # between grid points too
        f, gradient = value_and_gradient(target, s)
    np.testing.assert_allclose(f, definition(order, s), rtol=1e-12)
    h = 1e-6 * np.eye(5)
    differences = (definition(order, s[:, None] + h) - definition(order, s[:, None] - h)) / 2e-6
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-6)


def test_normalising_each_factor_matters_for_order_4():
    """Near k = 0 the grid cuts the bump: left unnormalised, 20 sites would weigh components 4 : 1 (deviations.md)."""
    weight = {order: np.array([normaliser(order, k) for k in range(50)]) ** 20 for order in ORDERS}
    assert weight[2].max() / weight[2].min() < 1.01
    assert weight[4].max() / weight[4].min() > 3


@pytest.mark.parametrize("order", ORDERS)
def test_float32_is_accurate(order):
    target = polynomial_mixture(order)
    s = states(target)
    f32, gradient32 = value_and_gradient(target, s)
    with jax.enable_x64(True):
        f64, gradient64 = value_and_gradient(polynomial_mixture(order), s)
    np.testing.assert_allclose(f32, f64, atol=3e-4)  # so f(s') - f(s) is within 6e-4, for values down to -380
    np.testing.assert_allclose(gradient32, gradient64, atol=3e-4)


@pytest.mark.parametrize("order", ORDERS)
def test_draws_come_from_the_mixture(order):
    target = polynomial_mixture(order, num_sites=2)
    codes = target.truth.sample(jax.random.key(3), 2**16)
    assert codes.shape == (2**16, 2)
    assert codes.dtype == jnp.int32
    seen = np.bincount(np.asarray(codes) @ [50, 1], minlength=2500)
    expected = 2**16 * np.exp(definition(order, GRID[np.indices((50, 50)).reshape(2, -1).T]))
    rare = expected < 10
    seen, expected = (np.append(x[~rare], x[rare].sum()) for x in (seen, expected))
    assert stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-6


def test_the_start_is_safe():
    target = polynomial_mixture()
    assert (np.asarray(target.initial) == 11).all()
    assert np.isfinite(target.value(target.initial))
    assert {leaf.dtype for leaf in jax.tree.leaves(target.params)} == {jnp.result_type(float)}


@pytest.mark.parametrize(("arguments", "words"), [({"order": 3}, "order 2 or 4"), ({"num_sites": 0}, "num_sites")])
def test_impossible_mixtures_are_refused(arguments, words):
    with pytest.raises(TargetError, match=words):
        polynomial_mixture(**arguments)
