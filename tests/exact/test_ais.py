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
from saltus.testing.enumeration import Enumeration


def exact_log_z(target):
    with jax.enable_x64(True):
        return logsumexp(np.asarray(jax.vmap(target.value)(target.space.enumerate())))


def recursion(target, kernel, betas):
    """log Σ v with v = uniform, v <- (v exp((β_t - β_{t-1}) f)) K_t: what the mean weight is in exact arithmetic."""
    with jax.enable_x64(True):
        f = np.asarray(jax.vmap(target.value)(target.space.enumerate()))
        v = np.full(len(f), 1 / len(f))
        for before, beta in itertools.pairwise(betas):
            v = (v * np.exp((beta - before) * f)) @ testing.transition_matrix(kernel, training.tempered(target, beta))
    return np.log(v.sum())


@pytest.mark.parametrize("space", ["binary", "ordinal", "one-hot"])
@pytest.mark.parametrize("kernel", [saltus.NCG(0.5), saltus.GWG(), saltus.Gibbs()], ids=repr)
def test_the_mean_weight_is_the_normaliser(space, kernel):
    with jax.enable_x64(True):
        target = testing.rugged(SPACES[space])
    expected = exact_log_z(target) - np.log(len(target.space.enumerate()))
    np.testing.assert_allclose(recursion(target, kernel, np.linspace(0, 1, 5)), expected, rtol=0, atol=1e-12)


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
    with pytest.raises(saltus.KernelError, match="reversible"):
        training.ais(target, saltus.Gibbs("systematic"), samples=np.zeros((3, 4), int))
    with pytest.raises(saltus.SpaceError, match="spins"):
        training.ais(target, saltus.NCG(1.0), samples=-np.ones((3, 4), int))
    with pytest.raises(saltus.TrainingError, match="num_temperatures"):
        training.ais(target, saltus.NCG(1.0), num_temperatures=0)
