"""Clamped targets: the conditional law of the free sites, by every local model; shown in results; refused where impossible."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grid import assert_exact

import saltus
from saltus.engine.loop import advance
from saltus.testing import rugged, stationary

PRODUCT = saltus.Product(a=saltus.Binary(2), b=saltus.Categorical(2, 3))


def conditional(target, sites, codes):
    """p(free | fixed) by enumeration of the whole."""
    every, p = np.asarray(saltus.testing.enumerate_states(target)), stationary(target)
    here = (every[:, sites] == codes).all(axis=1)
    return p[here] / p[here].sum()


@pytest.mark.parametrize("differences", ["gradient", "exact"])
def test_a_clamped_target_is_the_conditional(differences):
    whole = rugged(saltus.Spin(4), differences=differences)
    clamped = whole.clamp([1, 3], [-1, 1])
    assert list(clamped.free) == [0, 2]
    np.testing.assert_allclose(stationary(clamped), conditional(whole, [1, 3], [0, 1]), atol=1e-6)


def test_kernels_are_exact_on_clamped_targets():
    with jax.enable_x64(True):
        assert_exact(saltus.NCG(0.7), rugged(saltus.Ordinal(3, [-1.0, 0.3, 1.0])).clamp([1], 0.3))
        assert_exact(saltus.NCG(0.7), rugged(PRODUCT).clamp([0, 3], [1, 2]))


def test_parts_of_a_product_by_name():
    whole = rugged(PRODUCT)
    clamped = whole.clamp({"b": [2, 0]})
    assert clamped.space == saltus.Product(a=saltus.Binary(2))
    np.testing.assert_allclose(stationary(clamped), conditional(whole, [2, 3], [2, 0]), atol=1e-6)


def test_closed_forms_and_other_values_without_recompiling():
    table = lambda params, s, codes: jnp.outer(params["h"], jnp.arange(3.0))  # noqa: E731
    space = saltus.Ordinal(4, [0.0, 1.0, 2.0])
    params = {"h": jnp.array([0.1, -0.4, 0.7, 0.2])}
    whole = saltus.Target(lambda p, s: p["h"] @ s, space, params, differences=saltus.Differences(table, exact=True), structure=None)
    first, second = whole.clamp([0, 2], [1, 2]), whole.clamp([0, 2], [0, 1])
    np.testing.assert_allclose(stationary(first), conditional(whole, [0, 2], [1, 2]), atol=1e-6)
    assert first.log_prob == second.log_prob


def test_results_show_the_fixed_sites(tmp_path):
    target = saltus.Target(lambda s: s[0] * s[1] - s[2], saltus.Binary(3), names=["x", "y", "z"]).clamp(["y"], [1])
    asked = dict(num_draws=50, num_warmup=5, thin=1, progress=False)
    run = saltus.sample(target, saltus.Gibbs("systematic"), **asked)
    assert list(run.posterior["site"].values) == ["x", "z"]
    assert run["constant_data"]["s"].values.tolist() == [1]
    assert run["constant_data"]["s_sites"].values.tolist() == [1]
    assert target.whole(run.posterior["s"].values).shape == (4, 50, 3)
    assert (target.whole(run.posterior["s"].values)[..., 1] == 1).all()
    saltus.sample(target, saltus.Gibbs("systematic"), store=tmp_path / "run.zarr", **asked)
    assert saltus.open(tmp_path / "run.zarr")["constant_data"]["s"].values.tolist() == [1]


def message(*args):
    target = saltus.Target(lambda s: s["a"].sum() + s["b"].sum(), PRODUCT)
    with pytest.raises(saltus.SaltusError) as caught:
        target.clamp(*args)
    return str(caught.value)


def test_bad_clamps():
    assert "cannot be clamped to 2" in message([0], [2])
    assert "cannot be clamped to 3" in message([3], 3)
    assert "`sites` is not usable" in message([9], [0])
    assert "`sites` is not usable" in message([0, 0], [0, 1])
    assert "does not fit" in message([0, 1], [0, 1, 1])
    assert "parts that are not there" in message({"c": [1]})
    assert "nothing is left" in message([0, 1, 2, 3], 0)
    assert "not one state" in message({"a": [[0, 1], [1, 0]]})


def test_a_set_of_values_for_each_chain_is_a_loop_that_compiles_once():
    whole, kernel = rugged(saltus.Binary(4)), saltus.Gibbs("systematic")
    values = [[0, 1], [1, 1], [1, 0]]
    with pytest.raises(saltus.TargetError, match="for v in values"):
        whole.clamp([1, 3], values)
    asked = dict(num_chains=1, num_draws=400, num_warmup=10, thin=1, progress=False)
    targets = [whole.clamp([1, 3], v) for v in values]
    advance.forget()
    runs = [saltus.sample(target, kernel, **asked) for target in targets]
    assert advance._cache_size() == 1
    for run, target, fixed in zip(runs, targets, values, strict=True):
        p = conditional(whole, [1, 3], fixed)
        seen = np.bincount(run.posterior.s.values.reshape(-1, 2) @ [2, 1], minlength=4) / 400
        np.testing.assert_allclose(seen, p, atol=0.12)
        assert target.whole(run.posterior.s.values)[0, 0, [1, 3]].tolist() == fixed
