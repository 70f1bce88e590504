"""Long chains on lattices against exact answers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.testing import enumerate_states, stationary

EDGE_CORRELATION = 0.59255  # 10x10 torus at coupling 0.4, exact (Kaufman 1949)


def chain_means(kernel, target, statistic, num_chains, warmup, steps, seed=0):
    """(num_chains,) averages of a statistic of s along each chain."""

    def one(carry, key):
        x, total = carry
        x = jax.vmap(lambda k, x: kernel.step(k, target, x)[0])(jax.random.split(key, num_chains), x)
        return (x, total + jax.vmap(statistic)(target.space.embed(x.codes))), None

    start_key, *keys = jax.random.split(jax.random.key(seed), 3)
    codes = jax.vmap(target.space.random)(jax.random.split(start_key, num_chains))
    x = jax.vmap(lambda c: kernel.init(target, c))(codes)
    zero = jax.vmap(statistic)(target.space.embed(codes)) * 0
    run = jax.jit(lambda carry, keys: jax.lax.scan(one, carry, keys)[0])
    x, _ = run((x, zero), jax.random.split(keys[0], warmup))
    _, total = run((x, zero), jax.random.split(keys[1], steps))
    return np.asarray(total, np.float64) / steps


def edge_correlation(x):
    grid = x.reshape(10, 10)
    return (jnp.mean(grid * jnp.roll(grid, 1, 0)) + jnp.mean(grid * jnp.roll(grid, 1, 1))) / 2


@pytest.mark.parametrize("kernel", [saltus.BlockGibbs(), saltus.Gibbs("coloured")], ids=repr)
def test_edge_correlation_of_the_papers_lattice(kernel):
    target = saltus.targets.ising((10, 10), 0.4)
    means = chain_means(kernel, target, edge_correlation, num_chains=100, warmup=300, steps=2000)
    error = means.std(ddof=1) / np.sqrt(len(means))
    assert error < 0.003
    assert abs(means.mean() - EDGE_CORRELATION) < 3 * error


@pytest.mark.parametrize("kernel", [saltus.BlockGibbs(), saltus.NCG(0.6), saltus.GWG()], ids=repr)
def test_marginals_and_pairs_of_a_random_three_by_three_model(kernel):
    """An indefinite J of both signs: exact marginals and pair correlations, by enumeration, all within 5 standard errors."""
    rng = np.random.default_rng(0)
    base = saltus.targets.ising((3, 3), 0.0)
    edges = np.asarray(base.structure[1].incidence.edges)
    target = saltus.targets.ising(edges, rng.normal(size=len(edges)) * 0.6, field=rng.normal(size=9) * 0.3)
    s = np.asarray(target.space.embed(enumerate_states(target)), np.float64)
    p = stationary(target)
    exact = np.concatenate([p @ s, (s.T * p @ s)[np.triu_indices(9, 1)]])
    upper = np.triu_indices(9, 1)
    statistic = lambda x: jnp.concatenate([x, jnp.outer(x, x)[upper]])  # noqa: E731
    means = chain_means(kernel, target, statistic, num_chains=200, warmup=200, steps=1500)
    z = (means.mean(0) - exact) / (means.std(0, ddof=1) / np.sqrt(len(means)))
    assert np.abs(z).max() < 5  # 45 statistics, two-sided: p = 3e-5 in all
