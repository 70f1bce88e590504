"""Annealed importance sampling: exact by the matrix recursion, and by Monte Carlo against enumeration and Kaufman's log Z."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grid import SPACES
from scipy.special import logsumexp

import saltus
from saltus import testing, training
from saltus.kernels.path import Path, read_base
from saltus.testing.enumeration import Enumeration


def exact_log_z(target):
    with jax.enable_x64(True):
        return logsumexp(np.asarray(jax.vmap(target.value)(target.space.enumerate())))


def log_sum(target):
    """The same in float32, for targets that were made so."""
    return logsumexp(np.asarray(jax.jit(jax.vmap(target.value))(target.space.enumerate()), np.float64))


def recursion(target, kernel, betas, log_base=None):
    """log Σ v with v = p_0, v <- (v exp((β_t - β_{t-1}) V)) K_t: what the mean weight is in exact arithmetic."""
    with jax.enable_x64(True):
        path, states = Path(target, log_base), target.space.enumerate()
        V = np.asarray(jax.vmap(path.gain)(states))
        v = np.full(len(V), 1 / len(V)) if log_base is None else np.exp(base_of(log_base, states))
        for before, beta in itertools.pairwise(betas):
            v = (v * np.exp((beta - before) * V)) @ testing.transition_matrix(kernel, path.at(beta))
    return np.log(v.sum())


def base_of(log_base, states):
    return np.asarray(log_base)[np.arange(states.shape[1]), np.asarray(states)].sum(axis=1)


def marginals(space):
    return np.random.default_rng(space.size).dirichlet(np.full(space.num_values, 3.0), size=space.num_sites)


@pytest.mark.parametrize("space", ["binary", "ordinal", "one-hot"])
@pytest.mark.parametrize("kernel", [saltus.NCG(0.5), saltus.GWG(), saltus.Gibbs()], ids=repr)
def test_the_mean_weight_is_the_normaliser(space, kernel):
    with jax.enable_x64(True):
        target = testing.rugged(SPACES[space])
    expected = exact_log_z(target) - np.log(len(target.space.enumerate()))
    np.testing.assert_allclose(recursion(target, kernel, np.linspace(0, 1, 5)), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("space", "kernel"), [("ordinal", saltus.NCG(0.5)), ("one-hot", saltus.Gibbs())], ids=str)
def test_the_mean_weight_from_marginals_is_the_normaliser(space, kernel):
    with jax.enable_x64(True):
        target = testing.rugged(SPACES[space])
        log_base = read_base(marginals(target.space), target.space)
        states, beta = target.space.enumerate(), 0.3
        f, found = (np.asarray(jax.vmap(t.value)(states)) for t in (target, Path(target, log_base).at(beta)))
    np.testing.assert_allclose(found, beta * f + (1 - beta) * base_of(log_base, states), atol=1e-12)
    np.testing.assert_allclose(recursion(target, kernel, [0, 0.4, 1.0], log_base), exact_log_z(target), atol=1e-12)


def test_a_base_keeps_closed_forms_and_evens_the_weights():
    """Strong fields: from the marginals that they make, far fewer temperatures are enough."""
    target = saltus.targets.ising((4, 4), 0.2, np.linspace(-2, 2, 16).reshape(4, 4))
    truth, up = log_sum(target), 1 / (1 + np.exp(-2 * np.linspace(-2, 2, 16)))
    settings = dict(num_temperatures=20, num_chains=400, seed=0)
    uniform, based = training.ais(target, **settings), training.ais(target, base=up, **settings)
    assert abs(based.log_z - truth) < 4 * based.standard_error
    assert based.ess > 2 * uniform.ess
    assert "ESS of the weights" in str(based)


def test_uneven_weights_are_warned_of():
    target = saltus.targets.ising((8, 8), 0.6)
    with pytest.warns(saltus.ConvergenceWarning, match="not to be trusted"):
        found = training.ais(target, saltus.NCG(2.0), num_temperatures=5, num_chains=200)
    assert not found.trusted
    assert "do not trust" in str(found)


def test_the_likelihood_of_data():
    target = saltus.targets.ising((3, 3), 0.3, 0.1)
    data = np.random.default_rng(0).choice([-1, 1], size=(7, 9))
    f = np.array([float(target.log_prob_of(jnp.asarray(x, float))) for x in data])
    found = saltus.log_likelihood(target, data)
    np.testing.assert_allclose(found.each, f - log_sum(target), rtol=1e-5)
    np.testing.assert_allclose(found.mean, found.each.mean())
    assert found.error == 0
    assert saltus.log_likelihood(target, data, log_z=3.0).mean == pytest.approx(f.mean() - 3.0)
    with pytest.raises(saltus.RunError, match="log_z"):
        saltus.log_likelihood(target, data, log_z="much")
    with pytest.raises(saltus.SpaceError):
        saltus.log_likelihood(target, data[:, :3])


BASES = {
    "sums": (np.full((4, 2), 0.7), "add up to 1"),
    "excluded": ([0.0, 0.5, 0.5, 0.5], "excludes a possible value"),
    "shape": (np.full(3, 0.5), "does not fit"),
    "negative": ([-0.5, 0.5, 0.5, 0.5], "not made of probabilities"),
}


@pytest.mark.parametrize(("base", "words"), BASES.values(), ids=BASES)
def test_bad_bases(base, words):
    with pytest.raises(saltus.TrainingError, match=words):
        training.ais(saltus.Target(lambda s: jnp.sum(s), saltus.Binary(4)), saltus.Gibbs(), base=base)


def test_the_recursion_sees_a_wrong_temperature(monkeypatch):
    """Planted: a path at √β, while the weights are those of β."""
    with jax.enable_x64(True):
        target = testing.rugged(SPACES["binary"])
    expected = exact_log_z(target) - np.log(16)
    monkeypatch.setattr(saltus.Target, "tempering", lambda self, x: x if self.beta is None else self.beta**0.5 * x)
    assert abs(recursion(target, saltus.NCG(0.5), np.linspace(0, 1, 5)) - expected) > 1e-3


@pytest.mark.parametrize("beta", [0.3, 1.0])
def test_block_gibbs_follows_the_temperature(beta):
    """Its structure is scaled: the certificate of the tempered target is that of any other."""
    with jax.enable_x64(True):
        coupling = np.random.default_rng(0).normal(size=(4, 4)) / 3
        target = training.tempered(training.models.ising(saltus.Spin(4), coupling, 0.2), beta)
        f = np.asarray(jax.vmap(target.value)(target.space.enumerate()))
        point = saltus.BlockGibbs().init(target, target.space.enumerate()[3])
        np.testing.assert_allclose(point.log_prob, f[3], atol=1e-12)
        z = np.random.default_rng(1).normal(size=4)
        found = Enumeration(saltus.BlockGibbs(), target)
        p = found.conditional(z)
        np.testing.assert_allclose(p @ found.matrix(z), p, atol=1e-12)


@pytest.mark.parametrize("kernel", [saltus.NCG(2.0), saltus.BlockGibbs(), saltus.Gibbs()], ids=repr)
def test_forward_and_reverse_bracket_the_lattice(kernel):
    target = saltus.targets.ising((4, 4), coupling=0.4)
    truth = saltus.targets.kaufman_log_z((4, 4), 0.4)
    settings = dict(num_temperatures=100, num_chains=2000, seed=0)
    forward = training.ais(target, kernel, **settings)
    states = np.asarray(target.space.enumerate())
    p = testing.stationary(target)
    drawn = states[np.random.default_rng(0).choice(len(p), 2000, p=p)]
    reverse = training.ais(target, kernel, **settings, samples=target.space.show(drawn))
    for found in (forward, reverse):
        assert abs(found.log_z - truth) < 5 * found.standard_error
    assert forward.bound - 5 * forward.bound_error < truth < reverse.bound + 5 * reverse.bound_error
    assert forward.bound < forward.log_z
    assert reverse.log_z < reverse.bound


def test_bad_input():
    target = saltus.Target(lambda s: jnp.sum(s), saltus.Binary(4))
    with pytest.raises(saltus.KernelError, match=r"saltus.Gibbs\(\) are"):
        training.ais(target, saltus.Gibbs("systematic"), samples=np.zeros((3, 4), int))
    with pytest.raises(saltus.SpaceError, match="spins"):
        training.ais(target, saltus.NCG(1.0), samples=-np.ones((3, 4), int))
    with pytest.raises(saltus.TrainingError, match="num_temperatures"):
        training.ais(target, saltus.NCG(1.0), num_temperatures=0)
