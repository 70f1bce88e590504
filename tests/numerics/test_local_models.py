"""The local models: what they predict, and that exact differences fit in memory."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grid import SPACES

import saltus
from saltus.race.compiling import seconds_compiling
from saltus.targets import lattice as lattice_of
from saltus.testing import rugged


def table_of(target, codes):
    """D_i(v) for every site and value, through Moves."""
    space, x = target.space, saltus.evaluate(target, codes)
    moves = target.moves(x)
    one = lambda i, v: moves.at(x.codes.at[i].set(v))  # noqa: E731
    sites, values = jnp.arange(space.num_sites, dtype=jnp.int32), jnp.arange(space.num_values, dtype=jnp.int32)
    return np.asarray(jax.jit(jax.vmap(lambda i: jax.vmap(lambda v: one(i, v))(values)))(sites))


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_local_models_are_their_definitions(space):
    with jax.enable_x64(True):
        target = rugged(space)
        codes = space.random(jax.random.key(2))
        s, f = space.embed(codes), target.log_prob_of
        values = jnp.asarray(space.values)
        delta = (values[None] - s[:, None]).reshape(space.num_sites, space.num_values, -1)
        g = jax.grad(f)(s).reshape(space.num_sites, 1, -1)
        np.testing.assert_allclose(table_of(target, codes), jnp.sum(g * delta, -1), atol=1e-12)
        exact = np.array(
            [[f(space.embed(codes.at[i].set(v))) - f(s) for v in range(space.num_values)] for i in range(space.num_sites)]
        )
        np.testing.assert_allclose(table_of(target.replace(differences="exact"), codes), exact, atol=1e-12)
        if values.ndim == 1:
            h = jnp.diag(jax.hessian(f)(s))[:, None]
            second = jnp.sum(g * delta, -1) + 0.5 * h * delta[..., 0] ** 2
            np.testing.assert_allclose(table_of(target.replace(differences="hessian_diag"), codes), second, atol=1e-12)


def test_gradients_of_the_rugged_target_are_finite_differences():
    with jax.enable_x64(True):
        target = rugged(SPACES["ordinal"])
        s = target.space.embed(jnp.array([0, 3, 5]))
        g, h = jax.grad(target.log_prob_of)(s), 1e-6
        for i in range(3):
            step = jnp.zeros(3).at[i].set(h)
            slope = (target.log_prob_of(s + step) - target.log_prob_of(s - step)) / (2 * h)
            assert float(g[i]) == pytest.approx(float(slope), rel=1e-7)


def test_closed_forms_of_the_lattice_models_are_exact():
    with jax.enable_x64(True):
        for target in (
            saltus.targets.ising((3, 4), [0.3, -0.2], field=np.linspace(-1, 1, 12)),
            saltus.targets.ising((2, 3, 2), 0.3),
            saltus.targets.ising([(0, 1), (1, 2), (4, 1), (3, 0)], [0.1, -0.4, 0.2, 0.9], field=0.3),
            saltus.targets.potts((3, 3), 4, 0.7, field=[0.1, 0.2, 0.3, 0.0]),
            saltus.targets.potts([(0, 1), (1, 2), (0, 2)], 3, 0.7),
            saltus.targets.potts((2, 4), 2, 0.7, field=[0.1, 0.3]),
            saltus.targets.potts([(0, 1), (1, 2), (0, 2)], 2, [0.7, 0.2, -0.1]),
        ):
            codes = target.space.random(jax.random.key(0))
            closed, exact = table_of(target, codes), table_of(target.replace(differences="exact"), codes)
            np.testing.assert_allclose(closed, exact, atol=1e-12)
            small, by_definition = codes.astype(target.space.code_dtype), saltus.Differences(target.differences.fn)
            np.testing.assert_allclose(target.differences.evaluate(target, small)[0], target.value(codes), atol=1e-12)
            packed = target.differences.packed(target, small)
            np.testing.assert_allclose(packed, by_definition.packed(target, codes), atol=1e-12)


def test_what_is_known_of_a_log_prob_is_not_said_of_another():
    lattice = saltus.targets.ising((2, 4), 0.4)
    other = lambda params, s: 3 * lattice.log_prob(params, s) + 10 * s[0]  # noqa: E731
    with pytest.raises(saltus.TargetError):
        lattice.replace(log_prob=other)
    free = lattice.replace(log_prob=other, differences="gradient", structure=None)
    up = np.ones(8, int)
    assert float(saltus.evaluate(free, up).log_prob) == pytest.approx(3 * 0.4 * 12 + 10)
    higher = lattice.replace(log_prob=lambda params, s: lattice.log_prob(params, s) + 1.0)
    assert float(saltus.evaluate(higher, up).log_prob) == pytest.approx(0.4 * 12 + 1)


def test_a_lattice_counts_each_edge_once():
    up = np.ones(16, int)
    assert float(saltus.evaluate(saltus.targets.ising((4, 4), 1.0), up).log_prob) == 32
    assert float(saltus.evaluate(saltus.targets.ising((2, 2), 1.0), up[:4]).log_prob) == 4  # not 8: no double edges
    assert float(saltus.evaluate(saltus.targets.ising((5,), 1.0), up[:5]).log_prob) == 5
    assert float(saltus.evaluate(saltus.targets.ising((1, 5), 1.0), up[:5]).log_prob) == 5
    assert float(saltus.evaluate(saltus.targets.potts((4, 4), 3, 1.0), np.zeros(16, int)).log_prob) == 32


def test_lattice_and_graph_are_the_same_model():
    lattice = saltus.targets.ising((4, 5), 0.4)
    edges = np.asarray(lattice.structure[1].incidence.edges)
    graph = saltus.targets.ising(edges, 0.4)
    codes = lattice.space.random(jax.random.key(3))
    assert float(lattice.value(codes)) == pytest.approx(float(graph.value(codes)), rel=1e-6)
    np.testing.assert_allclose(lattice.moves(lattice.point(codes)).scores, graph.moves(graph.point(codes)).scores, rtol=1e-5)


MEMORY = """
import resource, jax, jax.numpy as jnp, saltus
d = 1000
W = jax.random.normal(jax.random.key(0), (d, d)) / d
target = saltus.Target(lambda s: jnp.sum(jnp.tanh(W @ s)), saltus.Ordinal(d, range(10)), differences="exact")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
codes = jax.vmap(target.space.random)(jax.random.split(jax.random.key(1), 4))
x = jax.jit(jax.vmap(target.point))(codes)
x.local.block_until_ready()
assert x.local.shape == (4, 10, d)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_exact_differences_at_a_thousand_sites_fit_in_memory():
    """All 9000 changed states of 4 chains at once: 144 MB for s alone, and as much again for each intermediate."""
    kilobytes = int(subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, timeout=300).stdout)
    assert kilobytes < 140_000


# ---- neighbours on a lattice ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5,), (2,), (1,), (2, 3), (3, 2), (1, 4), (4, 1), (3, 2, 4), (4, 3, 5), (2, 2, 2)], ids=str)
def test_the_pull_of_a_lattice_is_the_sum_over_its_edges(shape):
    """Any number of axes, sides of one and two among them, one coupling per axis; also for several states at once."""
    lattice, rng = lattice_of(shape), np.random.default_rng(0)
    d, coupling = lattice.num_sites, rng.normal(size=len(shape)).astype(np.float32)
    J = np.zeros((d, d))
    for (i, j), w in zip(
        np.asarray(lattice.graph.incidence.edges), np.asarray(lattice.weights(jnp.asarray(coupling))), strict=True
    ):
        J[i, j] += w
        J[j, i] += w
    x = rng.normal(size=(3, d)).astype(np.float32)
    np.testing.assert_allclose(lattice.pull(jnp.asarray(coupling), jnp.asarray(x)), x @ J, atol=1e-5)
    slope = jax.grad(lambda x: jnp.sum(x * lattice.pull(jnp.asarray(coupling), x)))(jnp.asarray(x[0]))
    np.testing.assert_allclose(slope, 2 * J @ x[0], atol=1e-5)


def test_two_values_may_be_told_by_one_number_each():
    """Differences of shape (d,): f at code 1 less f at code 0, the same as both columns."""
    target = saltus.targets.ising((3, 3), 0.3, 0.1)
    columns = lambda params, s, codes: jnp.stack([0 * s, target.differences.fn(params, s, codes)], axis=1)  # noqa: E731
    both = target.replace(differences=saltus.Differences(columns, exact=True), structure=None)
    codes = jnp.asarray(np.random.default_rng(0).integers(0, 2, 9), jnp.int32)
    for new in (codes, 1 - codes):
        a, b = (t.moves(t.point(codes)).at(new) for t in (target, both))
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_closed_form_may_say_that_code_zero_is_impossible():
    """The table seen from the current code: 0 there, -inf at the other, not inf - inf."""

    def log_prob(s):
        return jnp.where(jnp.sum(s) == 0, -jnp.inf, 0.3 * jnp.sum(s))

    def table(params, s, codes):
        change = lambda i, v: log_prob(s.at[i].set(v))  # noqa: E731
        return jax.vmap(lambda i: jnp.stack([change(i, 0.0), change(i, 1.0)]))(jnp.arange(6, dtype=jnp.int32))

    closed = saltus.Differences(table, exact=True)
    target = saltus.Target(log_prob, saltus.Binary(6), initial=np.eye(6, dtype=int)[0], differences=closed)
    x = target.point(target.initial)
    rows, _ = target.exact_rows(x, jnp.arange(6, dtype=jnp.int32))
    np.testing.assert_allclose(rows[0], [-np.inf, 0])


@pytest.mark.parametrize("scan", ["systematic", "coloured"])
def test_gibbs_stays_where_a_closed_form_is_undefined(scan):
    def table(params, s, codes):
        return jnp.zeros((3, 2)).at[0, 1].set(jnp.nan)

    closed = saltus.Differences(table, exact=True)
    alone = saltus.Graph([[], [], []])
    target = saltus.Target(lambda s: 0.0 * jnp.sum(s), saltus.Binary(3), differences=closed, structure=alone, verify=False)
    kernel = saltus.Gibbs(scan)
    for start in (0, 1):
        x = kernel.init(target, jnp.full(3, start, jnp.int32))
        for t in range(5):
            x, _ = jax.jit(kernel.step)(jax.random.key(t), target, x)
            assert x.codes[0] == start


def test_an_infinite_slope_at_a_site_that_stays_does_not_matter():
    target = saltus.Target(lambda s: -jnp.sum(jnp.sqrt(s[:3])) + 0.1 * jnp.sum(s[3:]), saltus.Binary(6))
    x = target.point(jnp.zeros(6, jnp.int32))
    assert float(target.changes(x, jnp.array([0, 0, 0, 1, 1, 0], jnp.int32)).sum()) == pytest.approx(0.2)


def test_evaluating_again_does_not_compile_again():
    target, codes = saltus.targets.ising((4, 4), 0.3), jnp.zeros(16, jnp.int32)
    target.value(codes)
    before = seconds_compiling()
    for _ in range(3):
        target.value(codes)
    assert seconds_compiling() == before
