"""Lattices, graphs and couplings as people write them: f is the sum over bonds, each once, typed again by hand."""

import itertools
import time

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest
import scipy.sparse
from grid import mostly

import saltus
from saltus import targets

RNG = np.random.default_rng(0)


def neighbours(shape, steps, periodic):
    """{pair of sites: the first coordinate and direction} by a loop over sites."""
    found = {}
    for way, step in enumerate(steps):
        for place in itertools.product(*map(range, shape)):
            there = tuple(np.add(place, step))
            inside = [0 <= t < n or wraps for t, n, wraps in zip(there, shape, periodic, strict=True)]
            there = tuple(np.mod(there, shape))
            pair = tuple(sorted((int(np.ravel_multi_index(place, shape)), int(np.ravel_multi_index(there, shape)))))
            if all(inside) and there != place and pair not in found:
                found[pair] = (way, *place)
    return found


def by_hand(pairs, J, x):
    return sum(J[where] * x[i] * x[j] for (i, j), where in pairs.items())


def agrees(target, f, atol=1e-10):
    """f, and the exact differences, from one state to every single-site change of it."""
    values, d = np.asarray(target.space.values), target.space.num_sites
    codes, other = RNG.integers(target.space.num_values, size=(2, d))
    states = np.vstack([codes, np.where(np.eye(d, dtype=bool), other, codes)])
    told = jax.jit(lambda all, c, o: (jax.vmap(target.value)(all), target.changes(target.point(c), o)))
    found, changes = told(*map(jnp.asarray, (states, codes, other)))
    exact = np.array([f(values[one]) for one in states])
    np.testing.assert_allclose(found, exact, atol=atol)
    np.testing.assert_allclose(changes, exact[1:] - exact[0], atol=atol)


SQUARE, CUBIC, TRIANGULAR = ((1, 0), (0, 1)), ((1, 0, 0), (0, 1, 0), (0, 0, 1)), ((1, 0), (0, 1), (1, 1))
CASES = {
    "periodic": ((4, 3), SQUARE, (True, True)),
    "open": ((4, 3), SQUARE, (False, False)),
    "a-cylinder": ((3, 4), SQUARE, (False, True)),
    "sides-of-two": ((2, 2), SQUARE, (True, True)),
    "a-ring": ((5,), ((1,),), (True,)),
    "a-chain": ((5,), ((1,),), (False,)),
    "cubic": ((2, 3, 2), CUBIC, (True, False, True)),
    "triangular": ((3, 4), TRIANGULAR, (True, True)),
    "triangular-open": ((3, 3), TRIANGULAR, (False, False)),
    "triangular-of-two": ((2, 3), TRIANGULAR, (True, True)),
}


@pytest.mark.parametrize("case", mostly(CASES, "a-cylinder", "cubic", "triangular", "sides-of-two"))
def test_one_coupling_per_bond_and_fields_of_the_lattices_shape(case):
    shape, steps, periodic = case
    pairs, J, h = neighbours(shape, steps, periodic), RNG.normal(size=(len(steps), *shape)), RNG.normal(size=shape)
    sites = targets.triangular(shape, periodic) if steps is TRIANGULAR else shape
    with jax.enable_x64(True):
        target = targets.ising(sites, J, h, periodic=periodic)
        agrees(target, lambda x: by_hand(pairs, J, x) + np.sum(h.ravel() * x))
        edges = (targets.triangular if steps is TRIANGULAR else targets.lattice)(shape, periodic).edges
        in_order = np.array([J[pairs[tuple(sorted(edge))]] for edge in edges.tolist()])
        again = targets.ising(sites, in_order, h, periodic=periodic)
        np.testing.assert_array_equal(again.params["coupling"], target.params["coupling"])
    colours = np.asarray(target.find(saltus.Graph).colours)
    assert (colours[edges[:, 0]] != colours[edges[:, 1]]).all()


@pytest.mark.parametrize("case", mostly(CASES, "open", "triangular"))
def test_one_coupling_per_direction_and_one_for_all(case):
    shape, steps, periodic = case
    way, one = RNG.normal(size=len(steps)), {pair: where[0] for pair, where in neighbours(*case).items()}
    sites = targets.triangular(shape, periodic) if steps is TRIANGULAR else shape
    with jax.enable_x64(True):
        agrees(targets.ising(sites, way, periodic=periodic), lambda x: sum(way[w] * x[i] * x[j] for (i, j), w in one.items()))
        agrees(targets.ising(sites, -0.7, periodic=periodic), lambda x: sum(-0.7 * x[i] * x[j] for i, j in one))


def test_potts_and_clock_on_open_lattices():
    shape, periodic, k = (3, 2), (False, True), 4
    pairs, J = neighbours(shape, SQUARE, periodic), RNG.normal(size=(2, 3, 2))
    with jax.enable_x64(True):
        h = RNG.normal(size=(3, 2, k))
        together = lambda s: sum(J[w] * (s[i] @ s[j]) for (i, j), w in pairs.items())  # noqa: E731
        agrees(targets.potts(shape, k, J, h, periodic=periodic), lambda s: together(s) + np.sum(h.reshape(-1, k) * s))
        h = RNG.normal(size=shape)
        clock = targets.clock(shape, k + 1, J, h, periodic=periodic)
        agrees(clock, lambda s: together(s) + np.sum(h.ravel() * s[:, 0]))
        assert clock.find(saltus.structure.BoundQuadratic) is not None


@pytest.mark.full
@pytest.mark.parametrize("kernel", [saltus.Gibbs("coloured"), saltus.NCG(0.7)], ids=repr)
def test_a_clock_is_certified(kernel):
    saltus.testing.check_kernel(kernel, targets.clock((3,), 3, RNG.normal(size=(1, 3)), 0.3), battery=False)


def test_three_body_terms_on_a_triangular_lattice():
    """Baxter and Wu's model: every triangle once."""
    lattice = targets.triangular((3, 3))
    assert lattice.triangles.shape == (18, 3)
    with jax.enable_x64(True):
        alpha, h = RNG.normal(size=18), RNG.normal(size=(3, 3))
        target = targets.third_order(alpha, lattice, 0.2, triples=lattice.triangles, field=h)
        f = lambda x: 0.2 * sum(x[i] * x[j] for i, j in lattice.edges) + alpha @ x[lattice.triangles].prod(1) + h.ravel() @ x  # noqa: E731
        agrees(target, f)


def test_a_spin_glass():
    target = targets.edwards_anderson((3, 3, 3), beta=2.0, seed=4)
    J = np.asarray(target.params["coupling"]) / 2
    assert J.shape == (3, 27)
    assert abs(J.std() - 1) < 0.3
    again = targets.edwards_anderson((3, 3, 3), beta=1.0, seed=4)
    np.testing.assert_allclose(again.params["coupling"], J, rtol=1e-6)
    signs = targets.edwards_anderson((4, 4), disorder="bimodal", periodic=False, seed=1).params["coupling"]
    assert set(np.unique(signs)) == {-1.0, 0.0, 1.0}  # 0 beyond the open sides


J4 = np.array([[0, 1.5, 0, -0.5], [1.5, 0, 0.25, 0], [0, 0.25, 0, 2.0], [-0.5, 0, 2.0, 0]])


def pairs_of_matrix(x):
    return sum(J4[i, j] * x[i] * x[j] for i in range(4) for j in range(i))


def labelled():
    graph = networkx.Graph()
    graph.add_nodes_from(["a", ("b", 1), 7, "d"])
    names = list(graph.nodes)
    graph.add_weighted_edges_from((names[i], names[j], J4[i, j]) for i in range(4) for j in range(i) if J4[i, j])
    return graph


GIVEN = {
    "dense": lambda: J4,
    "lists": lambda: J4.tolist(),
    "upper": lambda: np.triu(J4),
    "lower": lambda: np.tril(J4),
    "csr": lambda: scipy.sparse.csr_array(J4),
    "coo-upper": lambda: scipy.sparse.coo_matrix(np.triu(J4)),
    "networkx": labelled,
    "weighted-edges": lambda: [(0, 1, 1.5), (0, 3, -0.5), (2, 1, 0.25), (3, 2, 2.0)],
    "labelled-edges": lambda: [("p", "q", 1.5), ("p", "s", -0.5), ("r", "q", 0.25), ("s", "r", 2.0)],
}


@pytest.mark.parametrize("given", mostly(GIVEN, "csr", "networkx", "labelled-edges"))
def test_graphs_with_couplings_of_their_own(given):
    with jax.enable_x64(True):
        target = targets.ising(given(), field=0.1)
        order = [0, 1, 3, 2] if (target.names or "")[:1] == ("p",) else [0, 1, 2, 3]  # labels in order of appearance
        agrees(target, lambda x: pairs_of_matrix(x[np.argsort(order)]) + 0.1 * x.sum())
        half = targets.ising(given(), 0.5, 0.05)
        np.testing.assert_allclose(half.value(jnp.array([0, 1, 1, 0])), target.value(jnp.array([0, 1, 1, 0])) / 2)


def test_labels_are_the_names_of_the_sites():
    assert targets.ising(labelled()).names == ("a", "('b', 1)", "7", "d")
    assert targets.ising(networkx.path_graph(3), 0.3).names is None
    graph = networkx.grid_2d_graph(2, 3)
    networkx.set_edge_attributes(graph, 0.7, "J")
    assert targets.ising(graph, "J").names[0] == "(0, 0)"


def test_a_full_matrix_stays_one():
    J = RNG.normal(size=(6, 6))
    np.fill_diagonal(J, 0)
    with jax.enable_x64(True):
        target = targets.ising(J + J.T)
        assert target.params["coupling"].shape == (6, 6)
        agrees(target, lambda x: 0.5 * (x @ (J + J.T) @ x - np.trace(J + J.T)))


def test_self_loops_and_duplicates_are_merged_and_said():
    with pytest.warns(UserWarning, match="1 self-loop left out .* 2 duplicate edges merged: each bond counts once"):
        target = targets.ising([(0, 1), (1, 0), (1, 1), (1, 2), (0, 1)], 0.5)
    np.testing.assert_allclose(target.value(jnp.ones(3, int)), 1.0)
    with pytest.warns(UserWarning, match="1 duplicate edge merged: their couplings are added"):
        target = targets.ising([(0, 1, 0.5), (1, 2, 1.0), (1, 0, 0.25)])
    np.testing.assert_allclose(target.value(jnp.ones(3, int)), 1.75)
    with pytest.warns(UserWarning, match="duplicate"):
        target = targets.ising([(0, 1), (1, 2), (1, 0)], [0.5, 1.0, 0.25])
    np.testing.assert_allclose(target.value(jnp.ones(3, int)), 1.75)
    with pytest.warns(UserWarning, match="4 self-loops"):
        targets.ising(J4 + np.eye(4))
    with pytest.warns(UserWarning, match="added"):
        target = targets.ising(networkx.MultiGraph([(0, 1), (0, 1)]), 0.5)
    np.testing.assert_allclose(target.value(jnp.ones(2, int)), 1.0)


BAD = {
    "not symmetric": (lambda: targets.ising(J4 + np.tri(4)), "neither symmetric nor triangular"),
    "not square": (lambda: targets.ising(scipy.sparse.csr_array(np.ones((2, 3)))), "not square"),
    "no coupling": (lambda: targets.ising((3, 3)), "`coupling` is missing"),
    "no weights": (lambda: targets.ising([(0, 1), (1, 2)]), "`coupling` is missing"),
    "two couplings": (lambda: targets.ising(J4, np.ones(4)), "couplings of their own"),
    "no attribute": (lambda: targets.ising(networkx.path_graph(3), "J"), "has this attribute"),
    "a wrong weight": (lambda: targets.ising([(0, 1, np.nan)]), "not a finite number"),
    "a wrong field": (lambda: targets.ising((3, 4), 0.3, np.ones((4, 3))), "`field` does not fit"),
    "wrong sides": (lambda: targets.ising((3, 4), 0.3, periodic=(True,)), "`periodic` is not usable"),
    "a wrong word": (lambda: targets.edwards_anderson((3, 3), disorder="uniform"), "`disorder` is not known"),
    "three sides": (lambda: targets.triangular((3, 3, 3)), "has two sides"),
    "no triangles": (lambda: targets.third_order(0.1, (3, 3), triples=[(0, 1, 9)]), "`triples` is not usable"),
    "empty": (lambda: targets.ising(networkx.Graph()), "no nodes"),
}


@pytest.mark.parametrize(("make", "words"), BAD.values(), ids=BAD)
def test_bad_input(make, words):
    with pytest.raises(saltus.TargetError, match=words):
        make()


@pytest.mark.full
@pytest.mark.parametrize("shape", [(1000, 1000), (100, 100, 100), (999, 1001)], ids=str)
def test_a_million_sites_are_built_in_two_seconds_of_work(shape):
    began = time.process_time()
    targets.edwards_anderson(shape) if len(shape) == 3 else targets.ising(shape, 0.4)
    assert time.process_time() - began < 2
