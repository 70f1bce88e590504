"""check_kernel itself: kernels with `step` alone, what its report says, periodic chains, both precisions."""

import jax
import jax.numpy as jnp
import pytest

import saltus
from saltus.testing import check_kernel, enumerate_states, stationary, transition_matrix


class HandMade:
    """A user's kernel: `step` alone, no pytree, no base class. Flips one random site, Metropolis accepted."""

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
    assert set(report.ran) == {"coherence", "stationary start", "motion"}
    text = str(report)
    assert "HandMade(1.0) on Binary(3): passed every instrument that could run" in text
    assert "invariance        not run  needs propose" in text


def test_a_wrong_kernel_with_step_alone_is_refused():
    with pytest.raises(saltus.CheckError, match="stationary start"):
        check_kernel(HandMade(sharpness=1.2), saltus.Binary(3))


def test_a_failure_says_by_how_much_and_what_it_usually_means():
    with pytest.raises(saltus.CheckError) as caught:
        check_kernel(HandMade(sharpness=2.0), saltus.Binary(3))
    text = str(caught.value)
    assert "p = 0 (fails below 1e-06)" in text
    assert "usually means: the random shell" in text


def test_a_periodic_chain_is_warned_of():
    flat = saltus.Target(lambda s: 0.0 * jnp.sum(s), saltus.Binary(3))
    report = check_kernel(saltus.GWG(), flat)
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
    assert check_kernel(Idle(), saltus.Binary(3)).warnings == ("no chain moved",)
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
        assert check_kernel(saltus.NCG(0.5), saltus.Spin(3)).passed
        assert jnp.zeros(()).dtype == (jnp.float64 if x64 else jnp.float32)


def test_matrices_and_probabilities_line_up():
    target = saltus.targets.ising((3,), 0.5)
    p, K = stationary(target), transition_matrix(saltus.Gibbs(), target)
    assert enumerate_states(target).shape == (8, 3)
    assert p.sum() == pytest.approx(1)
    assert K.shape == (8, 8)
    assert p[0] == pytest.approx(p[-1])
    assert p[0] > p[1]


def test_what_cannot_be_enumerated_says_so():
    with pytest.raises(saltus.CheckError, match="auxiliary variable"):
        transition_matrix(saltus.AVG(0.5), saltus.testing.rugged(saltus.Binary(3)))
    with pytest.raises(saltus.CheckError, match="too large"):
        check_kernel(saltus.NCG(0.5), saltus.Binary(14))
    with pytest.raises(saltus.CheckError, match="alone"):
        transition_matrix(HandMade(), saltus.testing.rugged(saltus.Binary(3)))
