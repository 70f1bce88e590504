"""Samplers that always move: TGS, jump processes; their weights, and Exchange, which keeps sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grid import PRODUCTS, SPACES, assert_exact, mostly

import saltus
from saltus._record import record
from saltus.testing import check_kernel, rugged, stationary, transition_matrix
from saltus.testing.enumeration import Enumeration

BITS = saltus.Binary(4)


def limited():
    """More than two ones are impossible."""

    def log_prob(s):
        f = jnp.sum(s * jnp.asarray([0.3, -0.2, 0.5, 0.1], s.dtype)) + jnp.sin(s[0] - s[3])
        return jnp.where(jnp.sum(s) > 2.5, -jnp.inf, f)

    return saltus.Target(log_prob, BITS)


JUMPS = {
    "TGS": saltus.TGS(),
    "TGS-inclusion": saltus.TGS("inclusion", size=2.0),
    **{f"JumpProcess-{b}": saltus.JumpProcess(b) for b in ("sqrt", "min", "barker", "max", "sum")},
}


@pytest.mark.parametrize("kernel", mostly(JUMPS, "TGS-inclusion", "JumpProcess-sqrt"))
def test_jumps_are_exact_on_two_values_and_with_impossible_states(kernel):
    assert_exact(kernel, rugged(BITS))
    assert_exact(kernel, limited())


@pytest.mark.parametrize("space", mostly({**SPACES, **PRODUCTS}, "bits-and-categories"))
@pytest.mark.parametrize("kernel", mostly({"TGS": saltus.TGS(), "JumpProcess": saltus.JumpProcess("max")}, "TGS"))
def test_jumps_are_exact_on_any_space(kernel, space):
    assert_exact(kernel, rugged(space))


def test_tgs_tilts_by_what_is_unlikely_and_is_the_jump_process_of_sums():
    """Against the tilted law written out, π(s) Σ_i 1/p(s_i | rest); and b(t) = 1 + t."""
    target = rugged(BITS)
    with jax.enable_x64(True):
        used = Enumeration(saltus.TGS(), target).stationary()
        other = transition_matrix(saltus.JumpProcess("sum"), target)
        np.testing.assert_allclose(transition_matrix(saltus.TGS(), target), other, atol=1e-12)
    p, states = stationary(target).reshape((2,) * 4), np.indices((2,) * 4)
    tilted = sum(p.sum(axis=i, keepdims=True) * np.ones_like(states[0]) for i in range(4))
    np.testing.assert_allclose(used, (tilted / tilted.sum()).ravel(), atol=1e-12)


@record
class Unweighted(saltus.JumpProcess):
    """Forgets its weights."""

    def log_weight(self, state):
        return jnp.zeros(())


@pytest.mark.full
def test_forgotten_weights_fail_invariance():
    with pytest.raises(saltus.CheckError, match=r"FAILED \(.*invariance"):
        check_kernel(Unweighted(), BITS, num_chains=2**12, battery=False)


@pytest.mark.full
@pytest.mark.parametrize("kernel", [saltus.TGS(), saltus.JumpProcess("sqrt"), saltus.Exchange()], ids=repr)
def test_it_is_certified(kernel):
    check_kernel(kernel, BITS)


@pytest.mark.full
def test_runs_and_rao_blackwellised_marginals_are_right():
    target, states = rugged(BITS), np.asarray(BITS.enumerate())
    exact = stationary(target) @ states
    run = saltus.sample(target, saltus.TGS(), num_draws=4000, num_chains=4, progress=False, thin=1)
    np.testing.assert_allclose(run.posterior["s"].values.mean((0, 1)), exact, atol=0.03)
    raw = run["weighted_posterior"]
    smooth = saltus.TGS().marginals(target, raw["s"].values, raw["log_weight"].values)
    np.testing.assert_allclose(smooth[:, 1], exact, atol=0.015)


# ---- Exchange ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", mostly(SPACES, "binary", "one-hot"))
@pytest.mark.parametrize("differences", mostly(["gradient", "exact"], "gradient"))
def test_exchange_is_exact_and_keeps_sums(space, differences):
    target = rugged(space, differences=differences)
    assert_exact(saltus.Exchange(), target)
    K, states = transition_matrix(saltus.Exchange(), target), np.sort(np.asarray(space.enumerate()), axis=1)
    same = (states[:, None] == states[None]).all(-1)
    assert K[~same].max() < 1e-12
    assert (K[same & ~np.eye(len(K), dtype=bool)] > 0).any()


@record
class WithoutPartners(saltus.Exchange):
    """Forgets how many pairs there are to choose from, here and there."""

    def log_ratio(self, target, x, y, noise=None):
        there, back = self.propose(target, x), self.propose(target, y)
        return y.log_prob - x.log_prob + back.score(x.codes) - there.score(y.codes)


def test_forgetting_the_partners_fails_invariance():
    with pytest.raises(saltus.CheckError, match=r"FAILED \(.*invariance"):
        check_kernel(WithoutPartners(), BITS, num_chains=2**12, battery=False)


def test_exchange_asks_for_a_start():
    target, settings = rugged(BITS), dict(num_draws=10, num_chains=2, progress=False)
    for initial in (None, np.ones(4, int)):
        with pytest.raises(saltus.KernelError, match=r"initial"):
            saltus.sample(target, saltus.Exchange(), initial=initial, **settings)
    with pytest.raises(saltus.KernelError, match="initial"):
        saltus.sample(target, "exchange", **settings)


@pytest.mark.full
def test_exchange_keeps_the_sum_of_its_start():
    run = saltus.sample(rugged(BITS), saltus.Exchange(), initial=[0, 1, 1, 0], num_draws=50, num_chains=2, progress=False)
    assert (run.posterior["s"].values.sum(-1) == 2).all()


@pytest.mark.parametrize(
    "bad",
    [
        lambda: saltus.TGS("other"),
        lambda: saltus.JumpProcess("other"),
        lambda: saltus.TGS("inclusion").init(rugged(SPACES["one-hot"]), jnp.zeros(2, jnp.int8)),
        lambda: saltus.Exchange().init(rugged(PRODUCTS["bits-and-categories"]), jnp.zeros(3, jnp.int8)),
        lambda: saltus.Cycle([saltus.TGS(), saltus.Gibbs()]),
    ],
)
def test_what_does_not_fit_is_refused(bad):
    with pytest.raises(saltus.KernelError):
        bad()
