"""check_kernel itself: kernels with `step` alone, what its report says, periodic chains, both precisions."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import saltus
from saltus.extending import Needs, changed, metropolis, record
from saltus.testing import check_kernel, enumerate_states, power, stationary, transition_matrix


class HandMade:
    """A user's kernel: `step` alone, no pytree, no base class. Flips one random site, Metropolis accepted."""

    needs = Needs(two_values=True)

    def __init__(self, sharpness=1.0):
        self.sharpness = sharpness

    def step(self, key, target, x):
        site_key, accept_key = jax.random.split(key)
        site = jax.random.randint(site_key, (), 0, target.space.num_sites)
        y = target.point(x.codes.at[site].set(1 - x.codes[site]))
        accept = jnp.log(jax.random.uniform(accept_key, ())) < (self.sharpness * (y.log_prob - x.log_prob)).astype(float)
        return jax.tree.map(lambda a, b: jnp.where(accept, a, b), y, x), None

    def __repr__(self):
        return f"HandMade({self.sharpness})"


def test_a_kernel_with_step_alone_gets_what_needs_no_more():
    report = check_kernel(HandMade(), saltus.Binary(3))
    assert set(report.ran) == {"codes", "coherence", "stationary start", "connected", "motion", "battery"}
    assert report.proved == ()
    text = str(report)
    assert "HandMade(1.0) on Binary(3): passed every instrument that could run" in text
    assert "invariance        not run  needs propose" in text
    assert "battery           not run  Ordinal(3, 3 values -1..1): needs two values at every site" in text
    hidden = float(re.search(r"could still be hidden: a law less than ([\d.]+) % away", text).group(1))
    assert hidden <= 0.5
    assert "exact draws, on average over 300 to 1200 steps" in text


def test_a_proof_is_told_from_a_test():
    report = check_kernel(saltus.NCG(0.5), saltus.Binary(3), battery=False)
    assert report.proved == ("definition", "invariance", "connected", "period")
    assert "battery" not in report.ran
    assert str(report).index("proved by enumeration") < str(report).index("invariance") < str(report).index("not refuted")


def test_a_wrong_kernel_with_step_alone_is_refused():
    with pytest.raises(saltus.CheckError, match="stationary start"):
        check_kernel(HandMade(sharpness=1.2), saltus.Binary(3))


def test_a_failure_says_by_how_much_and_what_fits():
    with pytest.raises(saltus.CheckError) as caught:
        check_kernel(HandMade(sharpness=2.0), saltus.Binary(3))
    text = str(caught.value)
    assert "p = 0 (fails below 1e-06)" in text
    assert "% off in total variation" in text
    assert "usually means: a reverse term that is missing" in text


def test_the_number_of_chains_sees_half_a_percent():
    """Noncentral χ² by simulation: the worst law at 0.5 % is seen in about 99 of 100 tests."""
    n, rng = power.chains_needed(125), np.random.default_rng(0)
    assert 1.3e6 < n < 1.6e6
    p = np.full(125, 1 / 125)
    off = p * np.where(np.arange(125) < 62, 1 + 2 * 0.005 * 125 / 124, 1 - 2 * 0.005 * 62 / 63 * 125 / 124)
    off /= off.sum()
    assert 0.5 * np.abs(off - p).sum() == pytest.approx(0.005, rel=0.02)
    seen = [power.chi_square(rng.multinomial(n, off), n * p) < 1e-6 for _ in range(200)]
    assert np.mean(seen) > 0.95
    assert power.hidden(125, n) == pytest.approx(0.005, rel=1e-3)


def test_averages_over_time_are_tested_as_what_they_are():
    """p-values of sticky exact chains are uniform, and a law 1 % off is seen."""
    rng, p = np.random.default_rng(0), np.array([0.4, 0.3, 0.2, 0.1])

    def visits(law):
        fresh, stays = rng.choice(4, size=(5000, 20), p=law), rng.random((5000, 20)) < 0.7
        for t in range(1, 20):
            fresh[:, t] = np.where(stays[:, t], fresh[:, t - 1], fresh[:, t])
        return fresh

    values = [power.of_averages(visits(p), p)[0] for _ in range(100)]
    assert scipy.stats.kstest(values, "uniform").pvalue > 1e-3
    assert power.of_averages(visits(p + np.array([0.03, -0.03, 0, 0])), p)[0] < 1e-6


def test_averages_over_time_see_what_they_say_they_see():
    """Sticky chains whose law is off by the distance that `of_averages` names are refused in about 99 of 100 tests or more."""
    rng, p, off = np.random.default_rng(1), np.full(8, 1 / 8), np.repeat([1.0, -1.0], 4) / 4
    num, times = 4000, 20

    def visits(law):
        fresh, stays = rng.choice(8, size=(num, times), p=law), rng.random((num, times)) < 0.7
        for t in range(1, times):
            fresh[:, t] = np.where(stays[:, t], fresh[:, t - 1], fresh[:, t])
        return fresh

    hidden = power.of_averages(visits(p), p)[1]
    assert power.hidden(8, num * times) < hidden < power.hidden(8, num)  # worth more than one draw a chain, less than all
    seen = [power.of_averages(visits(p + hidden * off), p)[0] < 1e-6 for _ in range(200)]
    assert np.mean(seen) > 0.95


def test_states_that_were_rarely_seen_raise_no_alarm():
    """Sticky exact chains with many rare states: some of them are seldom seen by chance, and then vary little too."""
    rng, values = np.random.default_rng(0), []
    for _ in range(40):
        p = rng.dirichlet(np.full(60, 0.5))
        visits, stays = rng.choice(60, size=(4096, 60), p=p), rng.random((4096, 60)) < 0.9
        for t in range(1, 60):
            visits[:, t] = np.where(stays[:, t], visits[:, t - 1], visits[:, t])
        values.append(power.of_averages(visits, p)[0])
    assert min(values) > 1e-4
    assert scipy.stats.kstest(values, "uniform").pvalue > 1e-3


@record
class Momentum:
    """A sign that is kept from step to step: the codes go round a ring one way until a move is refused."""

    def init(self, target, codes, key=None):
        sign = 1 if key is None else 2 * jax.random.bernoulli(key).astype(jnp.int32) - 1
        return Directed(codes, target.value(codes), None, target.stamp, jnp.asarray(sign, jnp.int32))

    def refresh(self, target, state):
        return changed(state, log_prob=target.value(state.codes))

    def draw(self, state):
        return state.codes

    def step(self, key, target, x):
        turn_key, site_key, accept_key = jax.random.split(key, 3)
        site = jax.random.randint(site_key, (), 0, target.space.num_sites)
        moved = (x.codes[site] + x.sign.astype(x.codes.dtype)) % target.space.num_values
        codes = x.codes.at[site].set(moved.astype(x.codes.dtype))
        y = changed(x, codes=codes, log_prob=target.value(codes), sign=-x.sign)
        y, info = metropolis(accept_key, target.space, x, y, y.log_prob - x.log_prob)
        turn = jnp.where(jax.random.uniform(turn_key, ()) < 0.1, 1, -1)
        return changed(y, sign=y.sign * turn), info


@record
class Directed(saltus.Point):
    sign: jax.Array = None


def test_a_kernel_that_owns_more_state_is_certified():
    report = check_kernel(Momentum(), saltus.Ordinal(2, [-1.0, 0.2, 1.0]))
    assert {"coherence", "stationary start", "info"} <= set(report.ran)


def test_a_periodic_chain_is_warned_of():
    flat = saltus.Target(lambda s: 0.0 * jnp.sum(s), saltus.Binary(3))
    report = check_kernel(saltus.GWG(), flat, battery=False)
    assert report.passed
    assert report.warnings == ("an eigenvalue at -1",)
    assert "keep an odd number of steps" in str(report)


class Idle:
    """Never moves: invariant, and useless."""

    def step(self, key, target, x):
        return x, None


class Reluctant(HandMade):
    """Never turns the last site on."""

    def step(self, key, target, x):
        y, info = super().step(key, target, x)
        keep = y.codes[-1] > x.codes[-1]
        return jax.tree.map(lambda a, b: jnp.where(keep, b, a), y, x), info


def test_a_chain_that_does_not_move_is_warned_of():
    warnings = check_kernel(Idle(), saltus.Binary(3), battery=False, num_chains=2**12).warnings
    assert "no chain moved" in warnings
    assert any("sets of states that no chain left" in text for text in warnings)
    with pytest.raises(saltus.CheckError, match="site 2 never entered its value 1"):
        check_kernel(Reluctant(), saltus.Binary(3))


def test_what_is_no_kernel_or_no_target_is_refused():
    for kernel, target in ((saltus.NCG, saltus.Binary(3)), (saltus.NCG(0.5), 5), (None, saltus.Binary(3))):
        with pytest.raises(saltus.CheckError, match="Nothing to check"):
            check_kernel(kernel, target)
    with pytest.raises(saltus.CheckError, match="rugged"):
        transition_matrix(saltus.NCG(0.5), saltus.Binary(3))


@pytest.mark.parametrize("x64", [False, True])
def test_it_works_in_both_precisions(x64):
    with jax.enable_x64(x64):
        assert check_kernel(saltus.NCG(0.5), saltus.Spin(3), battery=False).passed
        assert jnp.zeros(()).dtype == (jnp.float64 if x64 else jnp.float32)


def test_matrices_and_probabilities_line_up():
    target = saltus.targets.ising((3,), 0.5)
    p, K = stationary(target), transition_matrix(saltus.Gibbs(), target)
    assert enumerate_states(target).shape == (8, 3)
    assert p.sum() == pytest.approx(1)
    assert K.shape == (8, 8)
    assert p[0] == pytest.approx(p[-1])
    assert p[0] > p[1]


@record
class Edited(saltus.UniformMH):
    """Edited between two looks at it, as in a notebook."""


def test_a_method_that_was_changed_is_looked_at_anew():
    target = saltus.targets.ising((2,), 0.5)
    before = transition_matrix(Edited(1), target)
    Edited.log_ratio = lambda self, target, x, y, noise=None: y.log_prob - y.log_prob
    assert np.abs(transition_matrix(Edited(1), target) - before).max() > 0.01


def test_what_cannot_be_enumerated_says_so():
    with pytest.raises(saltus.CheckError, match="auxiliary variable"):
        transition_matrix(saltus.AVG(0.5), saltus.testing.rugged(saltus.Binary(3)))
    with pytest.raises(saltus.CheckError, match="too large"):
        check_kernel(saltus.NCG(0.5), saltus.Binary(14))
    with pytest.raises(saltus.CheckError, match="alone"):
        transition_matrix(HandMade(), saltus.testing.rugged(saltus.Binary(3)))
