"""Swendsen-Wang: exact by summing over all bonds, on Ising models of any sign, Potts models, and inside a larger f."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from grid import SPACES
from scipy.sparse.csgraph import connected_components

import saltus
from saltus._record import record
from saltus.kernels.clusters import components
from saltus.neighbours import Incidence
from saltus.testing import check_kernel, quadratic, rugged, stationary
from saltus.testing.enumeration import widen

EDGES, SIGNS = [(0, 1), (1, 2), (2, 3), (0, 3), (1, 3)], [0.3, -0.5, 0.4, 0.2, -0.8]


def third_order():
    def log_prob(s):
        pairs = sum(w * s[i] * s[j] for (i, j), w in zip(EDGES, SIGNS, strict=True))
        return pairs + 0.7 * s[0] * s[1] * s[2] + 0.3 * s[3]

    return saltus.Target(log_prob, saltus.Binary(4))


TARGETS = {
    "ising": lambda: (saltus.SwendsenWang(), saltus.targets.ising(EDGES, SIGNS)),
    "ising-fields": lambda: (saltus.SwendsenWang(), saltus.targets.ising(EDGES, SIGNS, field=[0.2, -0.4, 0.1, 0.3])),
    "potts": lambda: (saltus.SwendsenWang(), saltus.targets.potts(EDGES[:4], 3, SIGNS[:4], field=[0.3, -0.2, 0.1])),
    "two-categories": lambda: (saltus.SwendsenWang(), saltus.targets.potts(EDGES[:4], 2, SIGNS[:4], field=[0.3, -0.2])),
    "dense-binary": lambda: (saltus.SwendsenWang(), quadratic(saltus.Binary(4))),
    "larger-f": lambda: (saltus.SwendsenWang(saltus.Sparse(EDGES, SIGNS)), third_order()),
}


def over_bonds(kernel, target):
    """The transition matrix: the sum over all sets of bonds, and over all that their clusters may become."""
    pairs, states = kernel.pairs(target), np.asarray(target.space.enumerate())
    every = jnp.asarray(list(itertools.product([False, True], repeat=len(pairs.J))))
    points = jax.jit(jax.vmap(lambda c: kernel.init(target, c)))(jnp.asarray(states))

    def one(x, bonds):
        p = kernel.bond_probability(pairs, x.codes)
        labels = components(pairs.incidence, bonds)
        scores = jax.nn.log_softmax(kernel.cluster_scores(pairs, x.codes, labels), axis=1)
        return jnp.prod(jnp.where(bonds, p, 1 - p)), labels, scores

    p, labels, scores = jax.jit(jax.vmap(jax.vmap(one, (None, 0)), (0, None)))(points, every)
    moved = np.stack(
        [states ^ v if pairs.fields.shape[1] == 2 else np.full_like(states, v) for v in range(target.space.num_values)]
    )
    ratio = jax.jit(jax.vmap(jax.vmap(lambda x, y: kernel.log_ratio(target, x, y), (None, 0)), (0, None)))(points, points)
    alpha, K = np.exp(np.minimum(np.asarray(ratio), 0)), np.zeros((len(states),) * 2)
    p, labels, scores = (np.asarray(a) for a in (p, labels, scores))
    for a, b in itertools.product(range(len(states)), range(len(every))):
        if not p[a, b]:
            continue
        roots = np.unique(labels[a, b])
        for choice in itertools.product(range(target.space.num_values), repeat=len(roots)):
            of_site = np.asarray(choice)[np.searchsorted(roots, labels[a, b])]
            end = target.space.index(moved[of_site, a, np.arange(states.shape[1])])
            K[a, end] += p[a, b] * np.exp(scores[a, b, roots, choice].sum()) * alpha[a, end]
    np.fill_diagonal(K, 0)
    np.fill_diagonal(K, 1 - K.sum(1))
    return K


@pytest.mark.parametrize("case", TARGETS.values(), ids=TARGETS)
def test_clusters_keep_detailed_balance(case):
    with jax.enable_x64(True):
        kernel, target = widen(case())
        p = stationary(target)
        flow = p[:, None] * over_bonds(kernel, target.rebound())
        np.testing.assert_allclose(flow, flow.T, atol=1e-12)


@record
class OnUnsatisfied(saltus.SwendsenWang):
    """Bonds on pairs that are not satisfied too."""

    def bond_probability(self, pairs, codes):
        return -jnp.expm1(-jnp.abs(pairs.attraction(codes)))


def test_bonds_on_unsatisfied_pairs_are_seen():
    with jax.enable_x64(True):
        target = widen(TARGETS["ising"]()[1])
        p = stationary(target)
        assert np.abs(p @ over_bonds(OnUnsatisfied(), target) - p).max() > 1e-3


def test_components_are_those_of_scipy():
    rng = np.random.default_rng(0)
    edges = np.unique(np.sort(rng.integers(0, 300, (400, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] < edges[:, 1]]
    path = np.stack([np.arange(299), np.arange(1, 300)], axis=1)[rng.permutation(299)]
    for chosen in (edges, path):
        bonds = rng.random(len(chosen)) < 0.9
        labels = np.asarray(jax.jit(partial(components, Incidence(chosen, 300)))(jnp.asarray(bonds)))
        graph = scipy.sparse.coo_matrix((np.ones(bonds.sum()), chosen[bonds].T), shape=(300, 300))
        number, expected = connected_components(graph, directed=False)
        smallest = np.array([np.flatnonzero(expected == c)[0] for c in range(number)])
        np.testing.assert_array_equal(labels, smallest[expected])


@pytest.mark.full
@pytest.mark.parametrize("case", TARGETS.values(), ids=TARGETS)
def test_it_is_certified(case):
    check_kernel(*case(), battery=False)


def test_auto_tries_it_where_no_ring_is_frustrated():
    ring = [(0, 1), (1, 2), (2, 3), (0, 3)]
    for weights, tried in [([1, 1, 1, 1], True), ([-1, 1, -1, 1], True), ([-1, 1, 1, 1], False), ([-1, -1, -1, -1], True)]:
        assert saltus.SwendsenWang.enters(saltus.targets.ising(ring, np.asarray(weights, float))) == tried
    assert not saltus.SwendsenWang.enters(saltus.targets.potts(ring, 3, [-1.0, 1.0, 1.0, 1.0]))
    assert saltus.SwendsenWang.enters(saltus.targets.potts(ring, 3, 1.0))
    assert not saltus.SwendsenWang.enters(quadratic(saltus.Binary(4)))


def test_targets_without_pairs_are_refused():
    for target, kernel in [
        (rugged(SPACES["binary"]), saltus.SwendsenWang()),
        (quadratic(SPACES["ordinal"]), saltus.SwendsenWang()),
        (rugged(SPACES["one-hot"]), saltus.SwendsenWang(saltus.Sparse([(0, 1)], 1.0))),
    ]:
        with pytest.raises(saltus.KernelError, match="Clusters need"):
            kernel.init(target, jnp.zeros(target.space.num_sites, jnp.int8))
