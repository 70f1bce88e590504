"""Bad input gets an error that says what was expected, what was found, and the way out; never a wrong chain."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus import KernelError, SpaceError, TargetError
from saltus.testing import rugged

BINARY = saltus.Binary(4)


def message(error, call, *args, **kwargs) -> str:
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    assert isinstance(caught.value, saltus.SaltusError)
    return str(caught.value)


@pytest.mark.parametrize("kernel", [saltus.NCG, saltus.AVG, lambda e: saltus.PAVG(e, np.eye(4))])
@pytest.mark.parametrize(
    ("step_size", "words"), [(0, "> 0"), (-1.0, "found     -1"), (np.nan, "finite"), (np.inf, "finite"), ("big", "number")]
)
def test_step_size(kernel, step_size, words):
    text = message(KernelError, kernel, step_size)
    assert "step_size" in text
    assert words in text


@pytest.mark.parametrize("kernel", [saltus.GWG, saltus.UniformMH])
@pytest.mark.parametrize("radius", [0, -2, 1.5, 2.0, np.nan, "far", True])
def test_radius(kernel, radius):
    text = message(KernelError, kernel, radius)
    assert "an integer >= 1" in text
    assert repr(radius) in text


def test_radius_beyond_the_space():
    assert "at most 4" in message(KernelError, saltus.UniformMH(5).init, rugged(BINARY), jnp.zeros(4, int))
    grid = rugged(saltus.Ordinal(3, range(6)))
    assert "at most 5" in message(KernelError, saltus.UniformMH(6).init, grid, jnp.zeros(3, int))


def test_preconditioner():
    lopsided = np.eye(4)
    lopsided[1, 3] = 0.25
    text = message(KernelError, saltus.PAVG, 1.0, lopsided)
    assert "not symmetric" in text
    assert "a gap of 0.25 between entries (1, 3) and (3, 1)" in text
    assert "not square" in message(KernelError, saltus.PAVG, 1.0, np.ones((3, 4)))
    assert "finite" in message(KernelError, saltus.PAVG, 1.0, np.full((4, 4), np.nan))
    wrong_size = message(KernelError, saltus.PAVG(1.0, np.eye(5)).init, rugged(BINARY), jnp.zeros(4, int))
    assert "size 4" in wrong_size
    assert "size 5" in wrong_size
    one_hot = rugged(saltus.Categorical(2, 3))
    assert "d*k rows" in message(KernelError, saltus.PAVG(1.0, np.eye(2)).init, one_hot, jnp.zeros(2, int))
    assert "shape (3, r)" in message(KernelError, saltus.LowRank, np.ones(3), np.ones((4, 2)))
    assert "not a vector" in message(KernelError, saltus.Diagonal, np.eye(2))
    assert "shape (1,)" in message(KernelError, saltus.Sparse, [(0, 1)], [1.0, 2.0])
    assert "finite" in message(KernelError, saltus.PAVG, 1.0, np.eye(4), scale=np.nan)


def test_edges():
    assert "sites 0..2" in message(TargetError, saltus.Sparse, [(0, 3)], 1.0, size=3)
    assert "listed twice" in message(TargetError, saltus.Graph.from_edges, [(0, 1), (1, 0)], 2)  # `ising` merges them, and says so
    assert "itself" in message(TargetError, saltus.Graph.from_edges, [(1, 1)], 2)
    assert "tuple of sides" in message(TargetError, saltus.targets.ising, "10x10", 1.0)
    assert "an integer >= 1" in message(TargetError, saltus.targets.ising, (0, 3), 1.0)
    assert "one per axis" in message(TargetError, saltus.targets.ising, (3, 3), [1.0, 2.0, 3.0])
    assert "not symmetric" in message(TargetError, saltus.Graph, [[1], []])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.0], "at least two"),
        ([], "at least two"),
        ([0.0, 1.0, 1.0], "1 at position 2 after 1"),
        ([2.0, 1.0], "1 at position 1 after 2"),
        ([0.0, np.nan, 1.0], "nan at position 1"),
        ([0.0, np.inf], "inf at position 1"),
        ([[0.0, 1.0]], "shape (1, 2)"),
    ],
)
def test_grid_values(values, words):
    assert words in message(SpaceError, saltus.Ordinal, 3, values)


@pytest.mark.parametrize(
    "make", [saltus.Binary, saltus.Spin, lambda d: saltus.Ordinal(d, [0, 1]), lambda d: saltus.Categorical(d, 3)]
)
@pytest.mark.parametrize("d", [0, -1, 2.5, "3", True])
def test_number_of_sites(make, d):
    assert "an integer >= 1" in message(SpaceError, make, d)


def test_number_of_categories():
    assert "an integer >= 2" in message(SpaceError, saltus.Categorical, 3, 1)


def test_states_outside_the_space_are_named():
    text = message(SpaceError, saltus.Binary(100).encode, np.where(np.arange(100) % 2, 1, -1), name="initial")
    assert text.startswith("`initial` is not a state of Binary(100).")
    assert "-1 at site 0; 50 of 100 sites are wrong" in text
    assert "these look like spins: use saltus.Spin(100), or pass (initial + 1) // 2" in text
    assert "look like bits" in message(SpaceError, saltus.Spin(4).encode, [0, 1, 0, 1])
    assert "2 entries are NaN" in message(SpaceError, BINARY.encode, [0, np.nan, 1, np.nan])
    assert "state 1" in message(SpaceError, BINARY.encode, [[0, 1, 0, 1], [0, 1, 2, 1]])
    assert "shape (3,)" in message(SpaceError, BINARY.encode, [0, 1, 0])
    assert "site 0" in message(SpaceError, saltus.Categorical(2, 3).encode, [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    assert "an array of" in message(SpaceError, BINARY.encode, ["a", "b", "c", "d"])


def test_codes_outside_the_space_are_named():
    target = rugged(BINARY)
    assert "from 0 to 1" in message(SpaceError, saltus.evaluate, target, [0, 1, 2, 0])
    assert "2 at site 2" in message(SpaceError, saltus.NCG(1.0).init, target, np.array([0, 1, 2, 0]))
    assert "space.encode" in message(SpaceError, saltus.NCG(1.0).init, target, np.array([0.0, 1.0, 1.0, 0.0]))
    assert "shape (..., 4)" in message(SpaceError, saltus.NCG(1.0).init, target, np.zeros(3, int))
    assert "jax.vmap" in message(KernelError, saltus.NCG(1.0).init, target, np.zeros((2, 4), int))
    assert "from 0 to 1" in message(SpaceError, saltus.Target, lambda s: jnp.sum(s), BINARY, initial=[0, 0, 0, 3])


def test_log_prob():
    assert "shape (4,)" in message(TargetError, saltus.Target, lambda s: s * 2, BINARY)
    assert "int32" in message(TargetError, saltus.Target, lambda s: jnp.sum(s).astype(int), BINARY)
    w = jnp.arange(4.0)
    text = message(TargetError, saltus.Target, lambda s: jnp.sum(w[s]), BINARY)
    assert "s is an array of floats" in text
    assert "TypeError" in text or "IndexError" in text
    assert "log_prob(s) failed" in message(TargetError, saltus.Target, lambda s: float(s[0]), BINARY)
    assert "log_prob(params, s) failed" in message(TargetError, saltus.Target, lambda s: jnp.sum(s), BINARY, {"w": w})
    assert "tuple" in message(TargetError, saltus.Target, lambda s: (jnp.sum(s), 1), BINARY)
    assert "not a space" in message(TargetError, saltus.Target, lambda s: jnp.sum(s), 4)


def test_target_options():
    f = lambda s: jnp.sum(s)  # noqa: E731
    assert "'gradient'" in message(TargetError, saltus.Target, f, BINARY, differences="grad")
    assert "one-hot" in message(
        TargetError, saltus.Target, lambda s: jnp.sum(s), saltus.Categorical(2, 3), differences="hessian_diag"
    )
    assert "4 different names" in message(TargetError, saltus.Target, f, BINARY, names=["a", "b"])
    assert "4 different names" in message(TargetError, saltus.Target, f, BINARY, names=["a", "b", "b", "c"])
    assert "Quadratic or saltus.Graph" in message(TargetError, saltus.Target, f, BINARY, structure="quadratic")
    bad = saltus.Target(f, BINARY, differences=saltus.Differences(lambda params, s, codes: s[:2]))
    assert "(d, k) = (4, 2) or (4,)" in message(TargetError, saltus.evaluate, bad, np.zeros(4, int))


def test_false_claims_about_structure_are_refused():
    f = lambda s: jnp.sum(s[:-1] * s[1:])  # noqa: E731
    H = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    saltus.Target(f, BINARY, structure=saltus.Quadratic(np.zeros(4), H))
    assert "note the ½" in message(TargetError, saltus.Target, f, BINARY, structure=saltus.Quadratic(np.zeros(4), 2 * H))
    assert "shape (4, 4)" in message(TargetError, saltus.Target, f, BINARY, structure=saltus.Quadratic(np.zeros(4), np.eye(3)))
    saltus.Target(f, BINARY, structure=saltus.Graph([[1], [0, 2], [1, 3], [2]]))
    text = message(TargetError, saltus.Target, f, BINARY, structure=saltus.Graph([[1], [0], [3], [2]]))
    assert "do not interact, but they do" in text
    assert "4 sites" in message(TargetError, saltus.Target, f, BINARY, structure=saltus.Graph([[1], [0]]))


def test_false_claims_that_hide_are_refused():
    """Impossible states, a large constant, interactions that one probe misses, params that are ignored, a wrong table."""
    b = np.array([0.3, -0.2, 0.5, 0.1])
    walled = lambda s: jnp.where(jnp.sum(s) > 2.5, -jnp.inf, jnp.sum(jnp.asarray(b) * s))  # noqa: E731
    assert "not this quadratic" in message(
        TargetError, saltus.Target, walled, BINARY, structure=saltus.Quadratic(b, np.zeros((4, 4)))
    )
    H = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    lifted = lambda s: 1e4 + 0.3 * jnp.sum(s[:-1] * s[1:])  # noqa: E731
    assert "not this quadratic" in message(
        TargetError, saltus.Target, lifted, BINARY, structure=saltus.Quadratic(np.zeros(4), 0.6 * H)
    )
    agree = lambda s: 3.0 * jnp.sum(s[0] * s[1])  # noqa: E731
    assert "do not interact, but" in message(
        TargetError, saltus.Target, agree, saltus.Categorical(2, 10), structure=saltus.Graph([[], []])
    )
    ignoring = saltus.Target(
        lambda J, s: J * jnp.sum(s[:-1] * s[1:]), BINARY, jnp.asarray(1.0), structure=lambda J: saltus.Quadratic(np.zeros(4), H)
    )
    assert "not this quadratic" in message(TargetError, ignoring.replace, params=jnp.asarray(5.0))
    zero = saltus.Differences(lambda params, s, codes: jnp.zeros((4, 2)), exact=True)
    assert "says exact, but it is not" in message(TargetError, saltus.Target, agree, BINARY, differences=zero)
    saltus.Target(agree, BINARY, differences=zero, verify=False)


def test_quadratic_and_graph_arguments():
    f = lambda s: jnp.sum(s)  # noqa: E731
    lopsided = np.triu(np.ones((4, 4)))
    assert "`H` is not symmetric" in message(TargetError, saltus.Target, f, BINARY, structure=saltus.Quadratic(0.0, lopsided))
    assert "`b` does not fit" in message(TargetError, saltus.Target, f, BINARY, structure=saltus.Quadratic(np.ones(3), np.eye(4)))
    potentials = saltus.Quadratic(0.0, np.zeros((4, 4)), potentials=np.ones((4, 3)))
    assert "`potentials` does not fit" in message(TargetError, saltus.Target, f, BINARY, structure=potentials)
    assert "one per site" in message(TargetError, saltus.Graph.from_edges, [(0, 1)], 3, colours=[0, 1])
    assert "not a colouring" in message(TargetError, saltus.Graph.from_edges, [(0, 1)], 2, colours=[0, 0])
    assert "neighbour 5, which is no site" in message(TargetError, saltus.Graph, [[5], [0]])
    assert repr(saltus.Graph.from_edges([(0, 1)], 3)) == "Graph(3 sites, 1 edges, 2 colours)"


def test_settings_of_ncg_and_extreme_numbers():
    assert "gradient_weight" in message(KernelError, saltus.NCG, 1.0, gradient_weight=np.nan)
    assert "penalty" in message(KernelError, saltus.NCG, 1.0, penalty=-1.0)
    assert "its inverse overflows" in message(KernelError, saltus.NCG, 1e-39)
    assert int(saltus.GWG(2**32).radius) == 2**31 - 1
    assert "at most 4" in message(KernelError, saltus.UniformMH(2**32).init, rugged(BINARY), jnp.zeros(4, int))
    assert "2^10000" in message(SpaceError, saltus.Binary(10000).enumerate)
    assert "from 0 to 1" in message(SpaceError, BINARY.show, [-1, 0, 0, 0])


def test_targets_that_are_nearly_nothing_work():
    flat = saltus.Target(lambda s: 0.0, BINARY)
    assert float(saltus.evaluate(flat, [0, 1, 0, 1]).log_prob) == 0.0
    single = saltus.targets.ising((1,), 0.4)
    x, _ = saltus.BlockGibbs().step(jax.random.key(0), single, saltus.BlockGibbs().init(single, jnp.zeros(1, jnp.int32)))
    assert float(x.log_prob) == 0.0
    lonely = saltus.targets.ising(saltus.Graph.from_edges([], 3), 0.1)
    assert float(lonely.value(jnp.ones(3, jnp.int32))) == 0.0
    assert saltus.evaluate(rugged(BINARY), np.zeros((2, 3, 4), int)).log_prob.shape == (2, 3)


def test_a_fixed_structure_does_not_outlive_its_params():
    H = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    target = saltus.Target(
        lambda J, s: J * jnp.sum(s[:-1] * s[1:]), BINARY, jnp.asarray(1.0), structure=saltus.Quadratic(np.zeros(4), H)
    )
    assert "function of params" in message(TargetError, target.replace, params=jnp.asarray(2.0))


def test_kernels_that_need_structure_say_so():
    target = rugged(BINARY)
    assert "structure=saltus.Quadratic" in message(KernelError, saltus.BlockGibbs().init, target, jnp.zeros(4, int))
    assert "structure=saltus.Graph" in message(KernelError, saltus.Gibbs("coloured").init, target, jnp.zeros(4, int))
    assert "'random' or 'systematic' or 'coloured'" in message(KernelError, saltus.Gibbs, "chequered")
    ising = saltus.targets.ising((4, 4), 0.4)
    assert "shift >= 1.6" in message(KernelError, saltus.BlockGibbs(0.5).init, ising, jnp.zeros(16, int))


def test_stacked_kernels_are_not_stepped_as_one():
    stack = saltus.NCG(jnp.array([0.1, 0.2]))
    assert "jax.vmap" in message(KernelError, stack.init, rugged(BINARY), jnp.zeros(4, int))
    assert "penalty" in message(KernelError, saltus.NCG(1.0, penalty=np.ones(3)).init, rugged(BINARY), jnp.zeros(4, int))


def test_nothing_is_raised_inside_jit():
    """Values cannot be seen there; shapes can."""
    target = rugged(BINARY)
    jax.jit(lambda eps: saltus.NCG(eps).step_size)(-1.0)
    with pytest.raises(KernelError, match="does not fit"):
        jax.jit(lambda c: saltus.PAVG(1.0, np.eye(5)).init(target, c))(jnp.zeros(4, jnp.int32))
