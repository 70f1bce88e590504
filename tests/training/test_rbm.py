"""RBMs with sampled hidden units: block Gibbs certified, the marginal that of the summed model, training on data of v alone."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import saltus
from saltus import training
from saltus.spaces import Product
from saltus.training.models import conditional, rbm

SPACES = {
    "binary": saltus.Binary(3),
    "spin": saltus.Spin(3),
    "categories": saltus.Categorical(2, 3),
    "ordinal": saltus.Ordinal(2, [0.0, 0.5, 2.0]),
}
OPTIMISER = optax.adam(1e-2)
SETTINGS = dict(optimiser=OPTIMISER, num_updates=20, num_steps=2, batch_size=8, buffer_size=16, progress=False)


def far_from_zero(target, seed=0):
    rng = np.random.default_rng(seed)
    return target.replace(params=jax.tree.map(lambda p: jnp.asarray(rng.normal(size=p.shape), p.dtype), target.params))


@pytest.mark.parametrize("name", SPACES)
def test_summing_over_hidden_units_gives_the_other_model(name):
    both = far_from_zero(rbm(SPACES[name], 2, hidden="sampled"))
    summed = rbm(SPACES[name], 2).replace(params=both.params)
    f = np.asarray(jax.vmap(both.value)(both.space.enumerate())).reshape(-1, 4)
    marginal = np.asarray(jax.vmap(summed.value)(SPACES[name].enumerate()))
    np.testing.assert_allclose(np.logaddexp.reduce(f, axis=1), marginal, atol=1e-5)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "binary" else pytest.mark.full) for name in SPACES])
def test_two_coloured_gibbs_is_block_gibbs(name):
    target = far_from_zero(rbm(SPACES[name], 2, hidden="sampled"))
    report = saltus.testing.check_kernel(saltus.Gibbs("coloured"), target, battery=False)
    assert {"definition", "invariance"} <= set(report.ran)
    assert saltus.Gibbs("coloured").blocks(target).shape[0] == 2


def test_a_sweep_that_forgets_the_biases_is_seen():
    """Planted: v is drawn from Wh alone."""
    from dataclasses import dataclass

    from saltus.training.models.bipartite import Sides, closed_form

    @dataclass(frozen=True)
    class Forgetful(Sides):
        def draw_visible(self, u, params, codes, temper):
            return super().draw_visible(u, {**params, "visible": 0 * params["visible"]}, codes, temper)

    target = far_from_zero(rbm(saltus.Binary(3), 2, hidden="sampled"))
    right, wrong = closed_form(saltus.Binary(3)), Forgetful(saltus.Binary(3))
    halves = type(right.halves)(wrong)
    planted = target.replace(differences=type(right)(right.fn, True, right.both, right.table, halves))
    with pytest.raises(saltus.CheckError):
        saltus.testing.check_kernel(saltus.Gibbs("coloured"), planted, battery=False)


def test_either_side_is_drawn_given_the_other():
    target = far_from_zero(rbm(saltus.Binary(3), 2, hidden="sampled"))
    p = np.exp(np.asarray(jax.vmap(target.value)(target.space.enumerate()))).reshape(8, 4)
    v = np.repeat([[1, 0, 1]], 20000, axis=0)
    h = conditional(target, v=v)
    counts = np.bincount(h @ [2, 1], minlength=4) / len(h)
    np.testing.assert_allclose(counts, p[5] / p[5].sum(), atol=0.015)
    back = conditional(rbm(saltus.Binary(3), 2).replace(params=target.params), h=np.repeat([[1, 0]], 20000, axis=0), seed=1)
    np.testing.assert_allclose(np.bincount(back @ [4, 2, 1], minlength=8) / 20000, p[:, 2] / p[:, 2].sum(), atol=0.015)
    for wrong in ({}, dict(v=v, h=h)):
        with pytest.raises(saltus.TrainingError, match="One side"):
            conditional(target, **wrong)
    with pytest.raises(saltus.TrainingError, match="no RBM"):
        conditional(training.models.ising(saltus.Binary(3)), v=v)


def test_block_gibbs_learns_the_distribution_of_the_data():
    """Where training ends, the model's probabilities, enumerated, are near the frequencies of the data."""
    rng, space = np.random.default_rng(0), saltus.Binary(3)
    p = rng.dirichlet(np.ones(8))
    states = np.asarray(space.enumerate())
    data = states[rng.choice(8, 4000, p=p)]
    settings = {**SETTINGS, "num_updates": 2000, "batch_size": 100, "buffer_size": 500, "average": 0.99}
    found = training.pcd(
        rbm(space, 8, hidden="sampled", data=data), data, optimiser=optax.adam(2e-2), **_without(settings, "optimiser")
    )
    assert isinstance(found.kernel, saltus.Gibbs)
    assert found.kernel.scan == "coloured"
    summed = rbm(space, 8).replace(params=found.average_params)
    learned = saltus.testing.stationary(summed)
    frequencies = np.bincount(data @ [4, 2, 1], minlength=8) / len(data)
    assert 0.5 * np.abs(learned - frequencies).sum() < 0.06
    assert 0.5 * np.abs(np.full(8, 1 / 8) - frequencies).sum() > 0.2  # what it began with


def _without(settings, name):
    return {key: value for key, value in settings.items() if key != name}


def test_categories_train_save_sample_and_are_filled_in(tmp_path):
    space = saltus.Categorical(4, 3)
    data = np.random.default_rng(0).integers(3, size=(40, 4))
    model = rbm(space, 3, hidden="sampled", data=data)
    found = training.pcd(model, data, **SETTINGS, checkpoint=tmp_path / "c")
    assert set(found.buffer) == {"v", "h"}
    again = training.load(found.save(tmp_path / "m.npz"), model)
    assert np.array_equal(again.buffer["v"], found.buffer["v"])
    drawn = found.sample(5, num_steps=3)
    assert drawn["v"].shape == (5, 4)
    assert drawn["h"].shape == (5, 3)
    known = np.array([True, False, True, False])
    filled = found.infill(data[:6], known, num_steps=3)
    assert np.array_equal(filled[:, known], data[:6, known])
    assert not np.array_equal(filled, data[:6])
    cd = training.cd(model, data, **_without(SETTINGS, "buffer_size"))
    assert cd.complete


def test_infilling_samples_the_conditional():
    """Three of four sites drawn given one, against enumeration; for a model with hidden units, and for one without."""
    space = saltus.Binary(4)
    model = far_from_zero(rbm(space, 2, hidden="sampled"), seed=4)
    summed = rbm(space, 2).replace(params=model.params)
    p = saltus.testing.stationary(summed)[8:]  # site 0 is 1
    states = np.repeat([[1, 0, 0, 0]], 8000, axis=0)
    known = np.array([True, False, False, False])
    for target, kernel in ((model, saltus.Gibbs("coloured")), (summed, saltus.NCG(1.0))):
        trained = training.Trained(target, None, states[:2], {"jump": np.zeros(0)}, kernel)
        filled = trained.infill(states, known, num_steps=60)
        assert (filled[:, 0] == 1).all()
        counts = np.bincount(filled[:, 1:] @ [4, 2, 1], minlength=8)
        chi2 = ((counts - 8000 * p / p.sum()) ** 2 / (8000 * p / p.sum())).sum()
        assert chi2 < 45  # of 7 degrees of freedom: p = 1e-7


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(hidden="guessed"), "hidden"),
        (dict(space=Product(a=saltus.Binary(2))), "visible units"),
        (dict(num_hidden=0), "num_hidden"),
        (dict(seed="a"), "seed"),
    ],
)
def test_bad_input(change, words):
    with pytest.raises(saltus.TrainingError, match=words):
        rbm(**{**dict(space=saltus.Binary(3), num_hidden=2), **change})
