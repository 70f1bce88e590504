"""Kaufman's exact log Z: the anchors, enumeration, and the edge correlation of the paper's lattice."""

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

import saltus
from saltus.targets import kaufman_edge_correlation, kaufman_log_z

ANCHORS = [
    ((4, 4), 0.2, 11.771470358542),
    ((4, 4), 0.4, 14.561093023844),
    ((4, 4), 0.6, 20.056532884347),
    ((10, 10), 0.2, 73.453097803833),
    ((10, 10), 0.4, 88.187700615516),
    ((10, 10), 0.5, 103.272975418249),
    ((16, 16), 0.4, 225.228846755876),
    ((30, 30), 0.4, 791.440787223095),
    ((100, 100), 0.4, 8793.638207923745),
]


@pytest.mark.parametrize(("shape", "coupling", "log_z"), ANCHORS)
def test_anchors(shape, coupling, log_z):
    np.testing.assert_allclose(kaufman_log_z(shape, coupling), log_z, rtol=0, atol=2e-12 * max(log_z, 1))


@pytest.mark.parametrize(
    ("shape", "coupling"),
    [
        ((3, 4), 0.3),
        ((4, 3), (0.2, 0.6)),
        ((3, 4), (0.7, 0.2)),
        ((4, 4), np.log(1 + np.sqrt(2)) / 2),
        ((3, 5), 0.7),
        ((2, 2), 0.4),  # one bond across a side of two, as `ising` has it
        ((2, 5), (0.3, 0.9)),
        ((4, 2), (1.3, 1e-4)),
        ((3, 3), 1e-9),
        ((3, 4), 20.0),
    ],
)
def test_enumeration(shape, coupling):
    with jax.enable_x64(True):
        target = saltus.targets.ising(shape, np.asarray(coupling))
        f = np.asarray(jax.vmap(target.value)(target.space.enumerate()))
    np.testing.assert_allclose(kaufman_log_z(shape, coupling), logsumexp(f), rtol=0, atol=1e-12)


def test_the_sign_of_gamma_0_matters(monkeypatch):
    """Planted: γ_0 taken positive, as arccosh gives it, is another number."""
    from saltus.targets import ising_truth

    right, positive = kaufman_log_z((4, 4), 0.2), lambda l, n, K1, K2: np.abs(original(l, n, K1, K2))
    original = ising_truth._gamma
    monkeypatch.setattr(ising_truth, "_gamma", positive)
    assert abs(kaufman_log_z((4, 4), 0.2) - right) > 1e-6


@pytest.mark.parametrize(("shape", "expected"), [((10, 10), 0.59255), ((4, 4), 0.689558), ((30, 30), 0.553921)])
def test_edge_correlation(shape, expected):
    assert abs(kaufman_edge_correlation(shape, 0.4) - expected) < 1e-5


def test_every_positive_coupling():
    """Without couplings all states count alike; where they are strong, the two ordered states are all."""
    for K in (1e-300, 1e-100, 1e-20):
        np.testing.assert_allclose(kaufman_log_z((8, 12), K), 96 * np.log(2), rtol=1e-12)
    for K in (30.0, 1e3, 1e6):
        np.testing.assert_allclose(kaufman_log_z((8, 12), K), 2 * 96 * K + np.log(2), rtol=1e-14)
    np.testing.assert_allclose(kaufman_log_z((8, 12), (1e3, 1e-9)), 96e3 + 12 * np.log(2), rtol=1e-14)  # columns by themselves


@pytest.mark.parametrize(("shape", "coupling"), [((1, 4), 0.4), ((4, 4, 4), 0.4), ((4, 4), -0.4), ((4, 4), 0.0)])
def test_what_the_formula_does_not_cover_is_refused(shape, coupling):
    with pytest.raises(saltus.TargetError):
        kaufman_log_z(shape, coupling)
