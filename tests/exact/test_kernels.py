"""Every kernel leaves its target invariant, on every space, with every local model."""

import jax
import numpy as np
import pytest
from grid import KERNELS, PRODUCTS, SPACES, THREE_SPACES, assert_exact, mostly

import saltus
from saltus.testing import check_kernel, quadratic, rugged, stationary, transition_matrix

SCALAR = {name: space for name, space in SPACES.items() if space.values.ndim == 1}
EVERY = {**SPACES, **PRODUCTS}


# Whether `step` does what the matrix says depends on the form of Moves (two values or more), not on the space.
FORMS = [SPACES["binary"], SPACES["one-hot"]]
RANDOM_SHELL = ["NCG", "AVG", "PAVG-Dense", "PAVG-LowRank", "PAVG-Sparse", "GWG", "Gibbs-random", "Gibbs-systematic", "UniformMH-2"]


@pytest.mark.parametrize("space", FORMS, ids=str)
@pytest.mark.parametrize("kernel", mostly(RANDOM_SHELL, "NCG", "PAVG-LowRank", "Gibbs-random"))
def test_kernel_is_certified(space, kernel):
    report = check_kernel(KERNELS[kernel](space), rugged(space), battery=False)
    assert {"definition", "invariance", "coherence", "stationary start"} <= set(report.ran)


USING_D = [name for name in KERNELS if not name.startswith(("Gibbs", "Uniform", "TGS", "Jump"))]


@pytest.mark.full
@pytest.mark.parametrize("space", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize(
    ("kernel", "differences"), [(name, "gradient") for name in KERNELS] + [(name, "exact") for name in USING_D]
)
def test_every_kernel_is_certified_everywhere(space, kernel, differences):
    check_kernel(KERNELS[kernel](space), rugged(space, differences=differences), battery=False)


EVERYWHERE = ["NCG", "AVG", "PAVG-Dense", "GWG-2", "Gibbs-random", "UniformMH-1"]


# The other forms of Σ are certified above on two spaces, and everywhere by `make test-full`.
@pytest.mark.parametrize("space", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize(
    "kernel",
    mostly(KERNELS, "NCG", "NCG-weighted", "AVG", "PAVG-Dense", "GWG-2", "Gibbs-random", "UniformMH-1"),
)
def test_kernel_is_exact_with_the_gradient(space, kernel):
    assert_exact(kernel(space), rugged(space))


INFORMED = ["NCG", "AVG", "PAVG-Dense", "GWG"]  # the others have another Σ or radius (make test-full), or use no D at all


@pytest.mark.parametrize("space", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("kernel", INFORMED)
def test_kernel_is_exact_with_exact_differences(space, kernel):
    assert_exact(KERNELS[kernel](space), rugged(space, differences="exact"))


@pytest.mark.parametrize("space", SCALAR.values(), ids=SCALAR)
@pytest.mark.parametrize("kernel", mostly(INFORMED, "NCG", "PAVG-Dense"))
def test_kernel_is_exact_with_hessian_diag(space, kernel):
    assert_exact(KERNELS[kernel](space), rugged(space, differences="hessian_diag"))


def wrong_but_deterministic(params, s, codes):
    """A supplied table that has little to do with f: exactness must not depend on it."""
    values = jax.numpy.arange(int(params["k"].shape[0]), dtype=s.dtype)
    return jax.numpy.sin(values + jax.numpy.sum(s)) * jax.numpy.ones((codes.shape[0], 1), s.dtype)


@pytest.mark.parametrize("space", THREE_SPACES)
@pytest.mark.parametrize("kernel", mostly([*INFORMED, "Gibbs-random"], "NCG", "Gibbs-random"))
def test_kernel_is_exact_with_any_supplied_table(space, kernel):
    base = rugged(space)
    params = {**base.params, "k": jax.numpy.zeros(space.num_values)}
    target = base.replace(params=params, differences=saltus.Differences(wrong_but_deterministic))
    assert_exact(KERNELS[kernel](space), target)


def test_sweeps_ignore_a_table_that_is_not_exact():
    """Seen by the running chains alone: a sweep must not carry the f of an earlier block."""
    base = rugged(SPACES["binary"])
    params = {**base.params, "k": jax.numpy.zeros(2)}
    check_kernel(
        saltus.Gibbs("systematic"),
        base.replace(params=params, differences=saltus.Differences(wrong_but_deterministic)),
        battery=False,
    )


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("shift", mostly({"least": None, "larger": 9.0}, "least"))
def test_block_gibbs_is_exact_on_quadratic_targets(space, shift):
    assert_exact(saltus.BlockGibbs(shift), quadratic(space))


@pytest.mark.parametrize("space", FORMS, ids=str)
def test_block_gibbs_is_certified(space):
    check_kernel(saltus.BlockGibbs(), quadratic(space), battery=False)


COLOURED = {
    "ising-3x3": lambda: saltus.targets.ising((3, 3), 0.3, 0.1),
    "ising-graph": lambda: saltus.targets.ising([(0, 1), (1, 2), (2, 3), (0, 3), (1, 3)], [0.3, -0.5, 0.4, 0.2, -0.8], field=0.2),
    "ising-2x4": lambda: saltus.targets.ising((2, 4), [0.3, -0.5], np.linspace(-0.4, 0.5, 8)),
    "potts": lambda: saltus.targets.potts((2, 3), 3, 0.5, field=[0.1, 0.0, -0.3]),
    "potts-2x2": lambda: saltus.targets.potts((2, 2), 3, 0.5, np.linspace(-0.4, 0.5, 12).reshape(4, 3)),
}


@pytest.mark.parametrize("target", COLOURED.values(), ids=COLOURED)
@pytest.mark.parametrize("kernel", [saltus.Gibbs("coloured"), saltus.Gibbs(), saltus.BlockGibbs(), saltus.NCG(0.7)], ids=repr)
def test_structured_targets_are_sampled_exactly(target, kernel):
    assert_exact(kernel, target())


@pytest.mark.parametrize("target", COLOURED.values(), ids=COLOURED)
def test_coloured_gibbs_is_certified(target):
    check_kernel(saltus.Gibbs("coloured"), target(), battery=False)


def test_coloured_gibbs_works_from_values_alone():
    """The same blocks by brute force: no closed form, no gradient."""
    target = saltus.targets.ising((2, 3), 0.3, 0.1).replace(differences="exact")
    check_kernel(saltus.Gibbs("coloured"), target, battery=False)


@pytest.mark.parametrize("space", [saltus.Binary(4), saltus.Ordinal(4, [0.0, 0.5, 2.0])], ids=str)
def test_coloured_gibbs_is_exact_on_any_space(space):
    def log_prob(s):
        return jax.numpy.sum(jax.numpy.sin(2 * s[:-1] + s[1:])) + 0.3 * jax.numpy.sum(s)

    chain = saltus.Graph([[1], [0, 2], [1, 3], [2]])
    assert_exact(saltus.Gibbs("coloured"), saltus.Target(log_prob, space, structure=chain))


def test_copies_and_per_entry_penalties_are_exact_on_one_hot():
    space = SPACES["one-hot"]
    assert_exact(saltus.PAVG(0.7, saltus.Sparse([(0, 1)], 0.6, [0.3, -0.2], copies=3)), rugged(space))
    assert_exact(saltus.NCG(0.7, penalty=np.linspace(0.5, 2, 6)), rugged(space))


def test_kernels_stay_exact_with_impossible_states():
    """-inf on part of the space: never entered, and the rest has its exact probabilities."""
    space = saltus.Binary(4)

    def log_prob(s):
        f = jax.numpy.sum(s * jax.numpy.asarray([0.3, -0.2, 0.5, 0.1], s.dtype))
        return jax.numpy.where(jax.numpy.sum(s) > 2.5, -jax.numpy.inf, f)

    for differences in ("gradient", "exact"):
        target = saltus.Target(log_prob, space, differences=differences)
        for name in ("NCG", "AVG", "GWG", "Gibbs-random", "UniformMH-2"):
            kernel = KERNELS[name](space)
            if name == "AVG":
                check_kernel(kernel, target, battery=False)
                continue
            K, p = transition_matrix(kernel, target), stationary(target)
            possible = p > 0
            assert (K[np.ix_(possible, ~possible)] == 0).all()
            np.testing.assert_allclose((p @ K)[possible], p[possible], atol=1e-12)
