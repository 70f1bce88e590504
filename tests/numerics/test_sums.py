"""Sums written for speed: products with ones, and many factors per logarithm."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus._fusion import stored, total
from saltus._record import changed
from saltus.moves import log_product, over_values


@pytest.mark.parametrize("d", [1, 2, 15, 16, 17, 1000])
@pytest.mark.parametrize("bound", [2, 3, 50, 5000, 10**6])
def test_log_product_is_the_sum_of_logs(d, bound):
    factors = np.exp(np.random.default_rng(d).uniform(-1, 1, d) * np.log(bound)).astype(np.float32)
    expected = np.log(factors.astype(np.float64)).sum()
    scale = np.abs(np.log(factors.astype(np.float64))).sum()
    np.testing.assert_allclose(log_product(jnp.asarray(factors), bound), expected, atol=2e-6 * scale)


@pytest.mark.parametrize("bound", [2, 3, 50, 5000, 10**6])
def test_log_product_neither_overflows_nor_vanishes(bound):
    for each in (bound, 1 / bound):
        np.testing.assert_allclose(log_product(jnp.full(1000, each, jnp.float32), bound), 1000 * np.log(each), rtol=1e-5)


def test_total_is_a_sum():
    x = np.random.default_rng(0).normal(size=(7, 900)).astype(np.float32)
    np.testing.assert_allclose(jax.vmap(total)(jnp.asarray(x)), x.astype(np.float64).sum(1), atol=1e-3)
    assert total(jnp.ones(2**20, jnp.float32)) == 2**20
    for bad in (np.inf, -np.inf, np.nan):
        np.testing.assert_equal(float(total(jnp.array([1.0, bad, 2.0]))), bad)
    np.testing.assert_allclose(jax.grad(lambda x: total(x**2))(jnp.arange(3.0)), [0, 2, 4])


@pytest.mark.parametrize("n", [300, 1000, 10**4, 99991, 10**6])
def test_long_sums_keep_their_digits(n):
    x = (np.random.default_rng(n).normal(size=(2, n)) - 2).astype(np.float32)
    expected = x.astype(np.float64).sum(1)
    np.testing.assert_allclose(jax.jit(jax.vmap(total))(x), expected, rtol=5e-7)
    np.testing.assert_allclose(jax.jit(total)(x[0]), expected[0], rtol=5e-7)
    term_by_term = jax.jit(lambda x: jnp.dot(x, jnp.ones_like(x), precision="highest"))(x[0])
    assert n < 10**6 or abs(term_by_term - expected[0]) > 5e-7 * abs(expected[0])  # the check can fail


@pytest.mark.parametrize("k", [2, 8, 9])
def test_few_values_are_summed_as_many_are(k):
    table = jnp.asarray(np.random.default_rng(k).normal(size=(k, 5)))
    np.testing.assert_allclose(over_values(jnp.add, table), table.sum(0), rtol=1e-6)
    np.testing.assert_array_equal(over_values(jnp.maximum, table), table.max(0))


def test_stored_is_what_it_computes():
    x = jnp.arange(6.0)
    np.testing.assert_array_equal(jax.jit(lambda x: stored(jnp.sin, x) + 1)(x), jax.jit(lambda x: jnp.sin(x) + 1)(x))
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: jnp.sum(stored(jnp.sin, x))))(x), jnp.cos(x), rtol=1e-6)


def test_nan_in_a_large_table_reaches_the_normaliser():
    """XLA:CPU's max drops NaN from 32768 elements on (openxla/xla#21461); the sum of weights does not, so the move is refused."""
    target = saltus.Target(lambda s: 0.001 * jnp.sum(s), saltus.Binary(40000))

    @jax.jit
    def normaliser(gradient):
        x = target.point(jnp.zeros(40000, jnp.int8))
        return saltus.GWG().propose(target, changed(x, local=x.local.at[7].set(gradient)), None).log_normaliser()

    assert np.isfinite(normaliser(0.0))
    assert np.isnan(normaliser(np.nan))
