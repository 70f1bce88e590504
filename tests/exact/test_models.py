"""Models to train: f by its definition, differences and structure exact, params that never retrace."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.training import models

RNG = np.random.default_rng(0)


def with_random_params(target):
    return target.replace(params=jax.tree.map(lambda p: jnp.asarray(RNG.normal(size=p.shape) / 2), target.params))


def values(target):
    return np.asarray(jax.vmap(target.value)(target.space.enumerate()))


@pytest.mark.parametrize("space", [saltus.Spin(5), saltus.Binary(5), saltus.Ordinal(5, [-0.5, 1.0])], ids=str)
def test_ising_has_no_half_and_no_diagonal(space):
    with jax.enable_x64(True):
        target = with_random_params(models.ising(space))
        x = 2.0 * np.asarray(space.enumerate()) - 1
        G, h = (np.asarray(target.params[name]) for name in ("coupling", "field"))
        J = (G + G.T) / 2
        np.fill_diagonal(J, 0)
        np.testing.assert_allclose(values(target), np.einsum("ni,ij,nj->n", x, J, x) + x @ h, atol=1e-12)
        once = models.boltzmann(space, 2 * G, h)
        np.testing.assert_allclose(values(once), values(target), atol=1e-12)


def test_each_pair_counts_once_as_in_targets_ising():
    J = np.triu(RNG.normal(size=(5, 5)), 1)
    with jax.enable_x64(True):
        x = jnp.asarray(saltus.Spin(5).enumerate())
        found, lattice = models.boltzmann(saltus.Spin(5), J + J.T), saltus.targets.ising(J)
        np.testing.assert_allclose(jax.vmap(found.value)(x), jax.vmap(lattice.value)(x), atol=1e-12)
    with pytest.warns(DeprecationWarning, match=r"boltzmann\(space, 2 \* coupling, field\)"):
        models.ising(saltus.Spin(3))


def test_rbm_sums_out_its_hidden_units():
    with jax.enable_x64(True):
        target = with_random_params(models.rbm(saltus.Binary(4), 3))
        W, b, c = (np.asarray(target.params[name]) for name in ("weights", "visible", "hidden"))
        joint = [
            np.log(sum(np.exp(v @ b + h @ c + v @ W @ h) for h in map(np.array, itertools.product((0, 1), repeat=3))))
            for v in np.asarray(target.space.enumerate(), float)
        ]
        np.testing.assert_allclose(values(target), joint, atol=1e-12)


def test_an_rbm_begins_where_independent_sites_fit_the_data():
    data = RNG.random((4000, 3)) < [0.2, 0.5, 0.9]
    for space, shown in ((saltus.Binary(3), data.astype(int)), (saltus.Spin(3), 2 * data.astype(int) - 1)):
        target = models.rbm(space, 2, data=shown)
        target = target.replace(params={**target.params, "weights": jnp.zeros((3, 2))})
        p = saltus.testing.stationary(target)
        np.testing.assert_allclose(p @ np.asarray(space.enumerate()), data.mean(0), atol=1e-3)


def test_potts_counts_every_pair_once():
    space = saltus.Categorical(3, 3)
    with jax.enable_x64(True):
        target = with_random_params(models.potts(space))
        G, h = np.asarray(target.params["coupling"]).reshape(3, 3, 3, 3), np.asarray(target.params["field"])
        J = (G + G.transpose(2, 3, 0, 1)) / 2
        pairs = [(0, 1), (0, 2), (1, 2)]
        by_hand = [sum(J[i, c[i], j, c[j]] for i, j in pairs) + sum(h[i, c[i]] for i in range(3)) for c in space.enumerate()]
        np.testing.assert_allclose(values(target), by_hand, atol=1e-12)


MODELS = {
    "ising-spin": lambda: models.ising(saltus.Spin(4)),
    "ising-binary": lambda: models.ising(saltus.Binary(4)),
    "ising-two-numbers": lambda: models.ising(saltus.Ordinal(4, [-0.5, 1.0])),
    "boltzmann": lambda: models.boltzmann(saltus.Binary(4)),
    "potts": lambda: models.potts(saltus.Categorical(2, 3)),
    "rbm": lambda: models.rbm(saltus.Binary(4), 3),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_a_model_says_of_itself_is_true(name):
    """`verify` tests differences and structure at random states, for new params too."""
    target = with_random_params(MODELS[name]())
    saltus.Target(
        target.log_prob, target.space, target.params, differences=target.differences, structure=target.structure_of, verify=True
    )
    wrong = jax.tree.map(lambda p: 2 * p, target.params)
    structure = (lambda params: target.structure_of(wrong)) if target.structure_of else saltus.Quadratic(0.0, np.zeros((4, 4)))
    with pytest.raises(saltus.TargetError, match="quadratic"):
        saltus.Target(target.log_prob, target.space, target.params, structure=structure)


@pytest.mark.parametrize("name", ["ising-spin", "ising-binary", "potts"])
def test_block_gibbs_is_certified_for_new_params(name):
    saltus.testing.check_kernel(saltus.BlockGibbs(), with_random_params(MODELS[name]()), battery=False)


@pytest.mark.parametrize("name", ["ising-binary", "potts"])
def test_the_same_space_gives_the_same_functions(name):
    """So that two calls share a compilation."""
    a, b = MODELS[name](), MODELS[name]()
    assert jax.tree.structure(a) == jax.tree.structure(b)


def test_equinox_modules():
    eqx = pytest.importorskip("equinox")
    net = eqx.nn.MLP(4, "scalar", 8, 1, key=jax.random.key(0))
    target = models.network(net, saltus.Binary(4))
    s = jnp.array([0.0, 1.0, 1.0, 0.0])
    assert float(target.log_prob_of(s)) == float(net(s))
    doubled = target.replace(params=jax.tree.map(lambda p: 2 * p, target.params))
    assert float(models.module_of(doubled)(s)) == float(doubled.log_prob_of(s)) != float(net(s))
    with pytest.raises(saltus.TrainingError, match="no parameters"):
        models.network(jnp.sum, saltus.Binary(4))
    with pytest.raises(saltus.TargetError, match="one number"):
        models.network(eqx.nn.MLP(4, 2, 8, 1, key=jax.random.key(0)), saltus.Binary(4))


def test_bad_input():
    with pytest.raises(saltus.TrainingError, match="two values"):
        models.ising(saltus.Categorical(3, 3))
    with pytest.raises(saltus.TrainingError, match="does not fit"):
        models.ising(saltus.Spin(3), np.zeros((4, 4)))
    with pytest.raises(saltus.TrainingError, match="visible units"):
        models.rbm(saltus.Product(a=saltus.Binary(2), b=saltus.Binary(2)), 2)
    with pytest.raises(saltus.TrainingError, match="num_hidden"):
        models.rbm(saltus.Binary(3), 0)
    with pytest.raises(saltus.TrainingError, match="categories"):
        models.potts(saltus.Binary(3))
