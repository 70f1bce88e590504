"""log Z: exact by enumeration, and within its interval by tempering."""

import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.evidence.normaliser import log_ratios
from saltus.targets import kaufman_log_z


def test_bennetts_ratio_of_a_known_path():
    """u normal at both ends, as where f is Gaussian: log Z_{i+1} / Z_i = β Δ v + Δ² v / 2 for f ~ N(β v, v)."""
    rng, betas, v = np.random.default_rng(0), np.array([0.0, 0.4, 1.0]), 2.0
    f = rng.normal(betas * v, np.sqrt(v), size=(40_000, 3))
    exact = np.diff(betas**2) * v / 2
    np.testing.assert_allclose(log_ratios(f, betas), exact, atol=0.02)
    impossible = f.copy()
    impossible[::2, 0] = -np.inf  # half of the uniform states have no mass
    assert abs(log_ratios(impossible, betas)[0] - (exact[0] - np.log(2))) < 0.02  # 40 000 draws: 0.005


def test_few_states_are_enumerated():
    target = saltus.Target(lambda s: jnp.sum(0.3 * s) + s[0] * s[1], saltus.Spin(4))
    states = 2 * np.array(list(np.ndindex(2, 2, 2, 2))) - 1
    exact = np.log(np.exp(0.3 * states.sum(1) + states[:, 0] * states[:, 1]).sum())
    found = saltus.log_z(target)
    np.testing.assert_allclose(found.log_z, exact, rtol=1e-6)
    assert found.error == 0
    assert "enumerated" in str(found)
    with pytest.raises(saltus.RunError, match="level"):
        found.interval(90)


@pytest.mark.full
@pytest.mark.parametrize("coupling", [0.2, 0.4407, 0.6])
def test_lattices_are_within_their_interval(coupling):
    found = saltus.log_z(saltus.targets.ising((12, 12), coupling=coupling), seed=2)
    low, high = found.interval(0.999)
    assert low < kaufman_log_z((12, 12), coupling) < high
    assert found.error < 0.2
    assert found.round_trips > 8
    assert "independent ladders" in str(found)


@pytest.mark.full
def test_from_given_marginals_it_is_right_on_fewer_rungs():
    """Strong fields, and the marginals that they would make alone."""
    fields = np.linspace(-2, 2, 16)
    target, up = saltus.targets.ising((4, 4), 0.3, fields), 1 / (1 + np.exp(-2 * fields))
    found = saltus.find_ladder(target, saltus.Gibbs("coloured"), seed=0, reference=up)
    assert len(found.ladder) < len(saltus.find_ladder(target, saltus.Gibbs("coloured"), seed=0).ladder)
    estimate = saltus.log_z(target, seed=0, kernel=found.kernel)
    assert abs(estimate.log_z - saltus.log_z(target).log_z) < 5 * estimate.error


def test_bad_input():
    target = saltus.Target(lambda s: jnp.sum(s), saltus.Binary(4))
    with pytest.raises(saltus.RunError, match="num_ladders"):
        saltus.log_z(target, num_ladders=3)
    with pytest.raises(saltus.RunError, match="num_steps"):
        saltus.log_z(target, num_steps=3)
    undefined = saltus.Target(lambda s: jnp.where(s[0] > 0, jnp.nan, 0.0), saltus.Binary(4))
    with pytest.raises(saltus.RunError, match="undefined"):
        saltus.log_z(undefined)
