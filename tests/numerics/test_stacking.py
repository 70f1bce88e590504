"""Targets that differ in params only are one tree: they stack, vmap, and share what was compiled."""

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.targets import conv_ebm, ising, polynomial_mixture, potts, sparse_regression, third_order
from saltus.training import models

RING = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 4)), RNG.normal(size=6)


def mlp(seed):
    return equinox.nn.MLP(4, 1, 3, 1, activation=jax.nn.silu, key=jax.random.key(seed))


PAIRS = {
    "ising": (lambda: ising((4, 4), 0.3), lambda: ising((4, 4), 0.4, field=0.1)),
    "ising-odd": (lambda: ising((3, 3), 0.3), lambda: ising((3, 3), 0.4)),
    "ising-edges": (lambda: ising(RING, 0.3), lambda: ising(RING.copy(), 0.4)),
    "ising-graph": (
        lambda: ising(saltus.Graph.from_edges(RING, 4), 0.3),
        lambda: ising(saltus.Graph.from_edges(RING, 4), 0.4),
    ),
    "potts": (lambda: potts((4, 4), 3, 0.3), lambda: potts((4, 4), 3, 0.4)),
    "third_order": (lambda: third_order(0.1), lambda: third_order(0.5, seed=3)),
    "polynomial_mixture": (lambda: polynomial_mixture(2, 3), lambda: polynomial_mixture(2, 3)),
    "sparse_regression": (lambda: sparse_regression(X, Y), lambda: sparse_regression(X, 2 * Y, penalty=0.1)),
    "sparse_regression-exact": (
        lambda: sparse_regression(X, Y, differences="exact"),
        lambda: sparse_regression(X, 2 * Y, g=3.0, differences="exact"),
    ),
    "conv_ebm": (lambda: conv_ebm(width=1), lambda: conv_ebm(width=1, seed=1)),
    "models.ising": (lambda: models.ising(saltus.Spin(4)), lambda: models.ising(saltus.Spin(4), seed=1)),
    "models.potts": (lambda: models.potts(saltus.Categorical(3, 3)), lambda: models.potts(saltus.Categorical(3, 3), seed=1)),
    "models.rbm": (lambda: models.rbm(saltus.Binary(4), 3), lambda: models.rbm(saltus.Binary(4), 3, seed=1)),
    "models.network": (
        lambda: models.network(mlp(0), saltus.Binary(4)),
        lambda: models.network(mlp(1), saltus.Binary(4)),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_targets_stack_and_step_as_one_and_share_what_was_compiled(name):
    targets, kernel = [make() for make in PAIRS[name]], saltus.NCG(0.5)
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *targets)
    codes = targets[0].space.random(jax.random.key(0)).astype(targets[0].space.code_dtype)
    traced = []

    @jax.jit
    def step(key, target):
        traced.append(target)
        return kernel.step(key, target, kernel.init(target, codes))[0]

    keys = jax.random.split(jax.random.key(1), 2)
    alone = [step(key, target) for key, target in zip(keys, targets, strict=True)]
    assert len(traced) == 1
    together = jax.vmap(step)(keys, stack)
    for i, (one, target) in enumerate(zip(alone, targets, strict=True)):
        np.testing.assert_array_equal(together.codes[i], one.codes)
        np.testing.assert_allclose(together.log_prob[i], one.log_prob, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(one.log_prob, target.value(one.codes), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel", [saltus.Gibbs("coloured"), saltus.BlockGibbs()], ids=["gibbs", "block-gibbs"])
@pytest.mark.parametrize("make", [lambda J: ising((4, 4), J), lambda J: potts((4, 4), 3, J)], ids=["ising", "potts"])
def test_structure_stacks_too(kernel, make):
    targets = [make(0.2), make(0.5)]
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *targets)
    codes, keys = jnp.zeros(16, jnp.int8), jax.random.split(jax.random.key(1), 2)
    together = jax.vmap(lambda key, target: kernel.step(key, target, kernel.init(target, codes)))(keys, stack)[0]
    for i, target in enumerate(targets):
        np.testing.assert_allclose(together.log_prob[i], target.value(together.codes[i]), rtol=1e-4, atol=1e-4)


def test_other_lattices_and_graphs_are_other_functions():
    found = [ising((4, 4), 0.3), ising((2, 8), 0.3), ising(RING, 0.3), ising(RING[:3], 0.3)]
    assert len({target.log_prob for target in found}) == len(found)
    coloured = [saltus.Graph.from_edges(RING, 4, colours) for colours in ([0, 1, 0, 1], [0, 1, 2, 1])]
    a, b = (ising(graph, 0.3) for graph in coloured)
    assert a.log_prob is not b.log_prob
    assert [len(t.find(saltus.Graph).blocks) for t in (a, b)] == [2, 3]


def test_networks_of_other_shapes_or_activations_are_other_functions():
    a, b = models.network(mlp(0), saltus.Binary(4)), models.network(mlp(1), saltus.Binary(4))
    other = equinox.nn.MLP(4, 1, 3, 1, activation=jax.nn.relu, key=jax.random.key(0))
    assert a.log_prob == b.log_prob
    assert a.log_prob != models.network(other, saltus.Binary(4)).log_prob
