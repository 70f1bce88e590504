"""Runs on product spaces: a variable for each part, from every way to keep, choose and read draws."""

import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.spaces import Product

SPACE = saltus.Product(
    z=saltus.Binary(3), inner=saltus.Product(k=saltus.Categorical(2, 3), n=saltus.Ordinal(2, [0.0, 1.0, 2.5, 4.0]))
)
PARTS = ("z", "inner.k", "inner.n")


def log_prob(s):
    z, k, n = s["z"], s["inner"]["k"], s["inner"]["n"]
    return 0.4 * z.sum() * n[0] - 0.3 * ((n - 1.0) ** 2).sum() + (k[0] * k[1]).sum() + z[:2] @ k[:, 0] - 0.2 * n[1] * k[1, 2]


@pytest.fixture(scope="module")
def target():
    return saltus.Target(log_prob, SPACE, names={"z": ["a", "b", "c"]})


@pytest.fixture(scope="module")
def exact(target):
    """(codes, probabilities) of every state."""
    codes = np.asarray(saltus.testing.enumerate_states(target))
    return codes, saltus.testing.stationary(target)


def expected(exact, name):
    codes, p = exact
    piece = next(piece for piece in SPACE.pieces if piece.name == name)
    labels = piece.space.labels[codes[:, piece.sites]]
    return p @ (labels if piece.space.numeric else labels == 0)


def seen(values, name):
    return (values == 0 if name == "inner.k" else values).reshape(-1, values.shape[-1]).mean(0)


def assert_right(posterior, exact):
    for name in PARTS:
        np.testing.assert_allclose(seen(posterior[name].values, name), expected(exact, name), atol=0.12)


def test_draws_are_one_variable_for_each_part(target, exact):
    run = saltus.sample(target, saltus.Gibbs("systematic"), num_draws=1000, num_warmup=100, seed=1, progress=False)
    assert tuple(run.posterior.data_vars) == PARTS
    assert run.posterior["z"].dims == ("chain", "draw", "z_site")
    assert list(run.posterior["z"]["z_site"].values) == ["a", "b", "c"]
    assert run.posterior["inner.k"].dims == ("chain", "draw", "inner.k_site")
    assert run.posterior["inner.n"].dtype == np.float32
    assert_right(run.posterior, exact)
    text = str(saltus.summary(run))
    assert "z[a]" in text
    assert "inner.k[1]" in text
    assert run.attrs["verdict"] == "ok"


@pytest.mark.full
def test_a_tuned_sampler_and_a_race_are_right_on_a_product(target, exact):
    assert_right(saltus.sample(target, "ncg", seed=2, num_warmup=200, progress=False).posterior, exact)


@pytest.mark.full
def test_every_sampler_that_applies_is_right_on_a_product(target, exact):
    for name in ("auto", "avg", "pavg", "gwg", "gibbs", "uniform-mh", "tgs", "jump-process", "pas"):
        run = saltus.sample(target, name, seed=3, num_draws=2000, num_warmup=300, progress=False)
        assert_right(run.posterior, exact)


def test_a_store_and_a_checkpoint_give_the_same_draws(target, tmp_path):
    asked = dict(num_draws=60, num_warmup=20, thin=2, seed=4, progress=False)
    whole = saltus.sample(target, saltus.NCG(0.8), **asked)
    saltus.sample(target, saltus.NCG(0.8), store=tmp_path / "run.zarr", **asked)
    stored = saltus.open(tmp_path / "run.zarr")
    saltus.sample(target, saltus.NCG(0.8), checkpoint=tmp_path / "run.ckpt", **{**asked, "num_draws": 30})
    longer = saltus.resume(tmp_path / "run.ckpt", target, num_draws=60, progress=False)
    for name in PARTS:
        np.testing.assert_array_equal(whole.posterior[name], stored.posterior[name])
        np.testing.assert_array_equal(whole.posterior[name], longer.posterior[name])
        np.testing.assert_array_equal(whole.posterior[name][1, ::-7, 1:], stored.posterior[name][1, ::-7, 1:])
    assert list(stored.posterior["z"]["z_site"].values) == ["a", "b", "c"]
    assert saltus.summary(stored).verdict == saltus.summary(whole).verdict


def test_what_else_can_be_kept(target, exact):
    asked = dict(num_draws=800, num_warmup=50, thin=1, seed=5, progress=False)
    kernel = saltus.Gibbs("systematic")
    kept = saltus.sample(target, kernel, keep=["mean", "covariance", "pairs", "best"], **asked)
    codes, p = exact
    mean = p @ np.asarray(SPACE.ravel(SPACE.embed(codes)))
    np.testing.assert_allclose(kept.statistics["mean"].mean("chain"), mean, atol=0.12)
    assert kept.statistics["best_z"].dims == ("chain", "z_site")
    best = codes[np.argmax(p)]
    assert (kept.statistics["best_z"].values == SPACE.show(best)["z"]).all()
    told = saltus.sample(target, kernel, keep={"n": lambda s: s["inner"]["n"]}, **asked)
    np.testing.assert_allclose(told.posterior["n"].mean(("chain", "draw")), expected(exact, "inner.n"), atol=0.12)
    weighted = saltus.sample(target, saltus.TGS(), **asked)
    assert weighted["weighted_posterior"]["ess_z"].dims == ("z_site",)


@pytest.mark.full
def test_starts_check_and_evidence(target, exact):
    start = SPACE.show(exact[0][7])
    run = saltus.sample(target, saltus.NCG(0.5), initial=start, num_draws=4, num_warmup=0, thin=1, progress=False)
    np.testing.assert_array_equal(run["start"]["inner.n"][0], start["inner"]["n"])
    assert saltus.check(target, seed=0).trustworthy in (True, False)
    log_z = saltus.training.ais(target, saltus.Gibbs("systematic"), num_temperatures=50, num_chains=200, seed=0)
    f = np.array([float(target.value(jnp.asarray(c))) for c in exact[0][:1]])
    assert abs(log_z.log_z - (f[0] - np.log(exact[1][0]))) < 0.15


def message(call, *args, **kwargs):
    with pytest.raises(saltus.SaltusError) as caught:
        call(*args, **kwargs)
    return str(caught.value)


def test_bad_products_and_states():
    assert "no part" in message(Product)
    assert "z=3" in message(Product, z=3)
    assert "'a.b' twice" in message(Product, {"a.b": saltus.Binary(1), "a": Product(b=saltus.Binary(1))})
    assert "a part called ''" in message(Product, {"": saltus.Binary(1)})
    assert "a dict of ['z', 'inner']" in message(SPACE.encode, np.zeros(7))
    good = SPACE.show(np.zeros(7, int))
    assert "x['inner']['n']" in message(SPACE.encode, {**good, "inner": {**good["inner"], "n": [0.0, 9.0]}})
    assert "as many states of each" in message(SPACE.encode, {**good, "z": np.zeros((2, 3))})
    assert "parts that are not there" in message(saltus.Target, log_prob, SPACE, names={"w": ["a"]})
    reserved = saltus.Target(lambda s: s["lp"].sum(), Product(lp=saltus.Binary(2)))
    assert "called 'lp'" in message(saltus.sample, reserved, saltus.NCG(0.5), progress=False)
