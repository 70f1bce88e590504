"""The couplings of BlockGibbs: AᵀA = γH + shift I to rounding, at the smallest shift, concrete and within jit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus._record import changed, record
from saltus.preconditioners.shifted import TOLERANCE, Shifted


def random(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return np.where(np.eye(n, dtype=bool), 0, (A + A.T) / 2)


def positive(n, rank):
    F = np.random.default_rng(1).normal(size=(n, rank))
    return F @ F.T


ONES = np.ones((30, 30)) - np.eye(30)
MATRICES = {
    "random": random(100),
    "large": 1e6 * random(40, 2),
    "small": 1e-6 * random(40, 3),
    "two-scales": random(40, 4) * np.where(np.arange(40) < 3, 1e3, 1) * np.where(np.arange(40) < 3, 1e3, 1)[:, None],
    "agreeing": ONES,
    "opposing": -ONES,  # -λ_min is Gershgorin's bound: the first factorisation is nearly singular
    "pair": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "zero": np.zeros((5, 5)),
    "one-site": np.zeros((1, 1)),
    "positive": positive(20, 20) + np.eye(20),
    "singular": positive(20, 3),
    "nearly-singular": positive(20, 3) - 1e-7 * np.eye(20),
}
MAKE = {"concrete": Shifted, "traced": jax.jit(Shifted)}


def root_of(made, scale=1.0, slack=0.0):
    scale, slack = (jnp.asarray(v, made.array.dtype) for v in (scale, slack))
    A = jax.vmap(lambda n: made.colour(n, scale, slack))(jnp.eye(made.num_normals, dtype=made.array.dtype))
    return np.asarray(A, np.float64), float(made.shift(scale, slack))


def allowed(H, dtype):
    """n eps |H|: rounding of a factorisation of H + dI, whose entries are at most twice H's row sums."""
    return 8 * len(H) * np.finfo(dtype).eps * np.abs(H).sum(1).max() + np.finfo(np.float32).tiny


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("wide", [False, True], ids=["float32", "float64"])
def test_the_root_is_right_and_the_shift_the_smallest(name, make, wide):
    with jax.enable_x64(wide):
        H = jnp.asarray(MATRICES[name])
        made, rounding = make(H), allowed(np.asarray(H), H.dtype)
        A, shift = root_of(made)
        np.testing.assert_array_equal(made.matrix(), H)
    H = np.asarray(H, np.float64)
    needed = max(0.0, -np.linalg.eigvalsh(H)[0])
    np.testing.assert_allclose(A.T @ A, H + shift * np.eye(len(H)), atol=rounding, rtol=0)
    assert needed - rounding <= shift <= needed * (1 + (TOLERANCE if make is MAKE["traced"] else 0)) + rounding


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize(("scale", "slack"), [(1.0, 0.7), (0.3, 0.0), (0.3, 0.7), (0.0, 0.0)])
def test_scale_and_slack(make, scale, slack):
    with jax.enable_x64(True):
        made = make(jnp.asarray(MATRICES["random"]))
        A, shift = root_of(made, scale, slack)
        assert shift == pytest.approx(scale * float(made.least) + slack, rel=1e-12)
    np.testing.assert_allclose(A.T @ A, scale * MATRICES["random"] + shift * np.eye(100), atol=1e-11)


def test_many_models_at_once():
    with jax.enable_x64(True):
        H = jnp.stack([random(20, seed) * 10.0**seed for seed in range(4)])
        together = jax.jit(jax.vmap(Shifted))(H)
        for i, each in enumerate(H):
            np.testing.assert_allclose(together.least[i], MAKE["traced"](each).least, rtol=1e-12)
            np.testing.assert_allclose(together.factor[i], MAKE["traced"](each).factor, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_couplings_that_are_not_finite_end_and_are_seen(bad):
    """Training refuses an update that is not finite; the search for a shift must come to an end all the same."""
    H = jnp.asarray(random(6)).at[1, 2].set(bad).at[2, 1].set(bad)
    assert not np.isfinite(MAKE["traced"](H).factor).all()


def test_a_target_has_the_same_leaves_within_jit():
    """So that a loop may carry it, and a step compiled for one takes the other."""
    target = saltus.testing.quadratic(saltus.Spin(4))
    inside = jax.jit(lambda params: target.replace(params=params))(target.params)
    assert jax.tree.structure(inside) == jax.tree.structure(target)
    assert [leaf.shape for leaf in jax.tree.leaves(inside)] == [leaf.shape for leaf in jax.tree.leaves(target)]


# ---- the certificate, for the factorisation that training uses --------------------------------------------------------


@pytest.fixture
def within_jit(monkeypatch):
    """`check_kernel` binds the structure anew where values are concrete: as if they were not."""
    monkeypatch.setattr("saltus.preconditioners.shifted.is_concrete", lambda _: False)


@pytest.mark.parametrize(("space", "shift"), [(saltus.Binary(4), None), (saltus.Categorical(2, 3), 9.0)], ids=str)
def test_block_gibbs_is_certified(space, shift, within_jit):
    report = saltus.testing.check_kernel(saltus.BlockGibbs(shift), saltus.testing.quadratic(space), battery=False)
    assert {"definition", "invariance", "coherence", "stationary start"} <= set(report.ran)


@record
class Transposed(saltus.BlockGibbs):
    """Planted: u = Lᵀn with LLᵀ = H + dI, "any square root" taken by its word."""

    def noise(self, key, target):
        quadratic = target.structure[0]
        H = quadratic.coupling
        root = H.factor * jnp.sqrt(H.pivots)
        wrong = changed(H, factor=root.T, pivots=jnp.ones_like(H.pivots))
        return super().noise(key, changed(target, structure=(changed(quadratic, coupling=wrong),)))


@record
class Unpaid(saltus.BlockGibbs):
    """Planted: the slack is in the penalty and not in the noise."""

    def noise(self, key, target):
        return saltus.BlockGibbs().noise(key, target)


@pytest.mark.parametrize("kernel", [Transposed(), Unpaid(9.0)], ids=repr)
def test_the_wrong_noise_is_caught(kernel, within_jit):
    with pytest.raises(saltus.CheckError, match="noise has another covariance"):
        saltus.testing.check_kernel(kernel, saltus.testing.quadratic(saltus.Binary(4)), battery=False)
