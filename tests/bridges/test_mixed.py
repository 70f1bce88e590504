"""saltus.mixed against answers by enumeration and quadrature, with one program for many data sets; and what it refuses."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import saltus
from saltus.bridges.alternating import draw, warm

Y = np.array([-1.2, 0.3, 2.0, 2.4, -0.5], np.float32)


def clusters(s, x, y):
    """Two clusters with unknown centre and share: z_i ~ Bernoulli(w), y_i ~ N(m z_i, 1), m ~ N(0, 4), w ~ Beta(2, 2)."""
    z, m, w = s, x["m"], x["w"]
    prior = -(m**2) / 8 + jnp.log(w) + jnp.log1p(-w)
    return prior + jnp.sum(z * jnp.log(w) + (1 - z) * jnp.log1p(-w)) - 0.5 * jnp.sum((y - m * z) ** 2)


def exact(y):
    """(E z_i, E m, E w): z summed out, then a grid of w and m."""
    m, w = np.linspace(-8, 8, 801)[:, None, None], np.linspace(0.0005, 0.9995, 1000)[None, :, None]
    one, zero = np.log(w) - 0.5 * (y - m) ** 2, np.log1p(-w) - 0.5 * y**2
    log_p = (np.logaddexp(one, zero).sum(-1, keepdims=True) + stats.norm.logpdf(m, 0, 2) + stats.beta.logpdf(w, 2, 2))[..., 0]
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    given = 1 / (1 + np.exp(zero - one))
    return np.einsum("mw,mwi->i", p, given), (p * m[..., 0]).sum(), (p * w[..., 0]).sum()


@pytest.fixture(scope="module")
def run():
    asked = dict(transforms={"w": "unit"}, num_draws=3000, num_warmup=600, seed=3, progress=False)
    return saltus.mixed(clusters, saltus.Binary(5), {"m": (), "w": ()}, (jnp.asarray(Y),), **asked)


def test_means_are_those_of_quadrature(run):
    z, m, w = exact(Y)
    np.testing.assert_allclose(run.posterior.s.mean(("chain", "draw")), z, atol=0.03)
    assert abs(float(run.posterior.m.mean()) - m) < 0.12
    assert abs(float(run.posterior.w.mean()) - w) < 0.02


def test_the_tree_is_one_that_people_read(run):
    assert set(run.posterior.data_vars) == {"s", "m", "w"}
    assert {"lp", "diverging", "energy", "tree_depth"} <= set(run.sample_stats.data_vars)
    assert run.attrs["sampler"].startswith("Gibbs")
    rows = {row.name for row in saltus.summary(run).table}
    assert "m" in rows


def test_another_data_set_of_the_same_shape_compiles_nothing():
    asked = dict(transforms={"w": "unit"}, num_draws=20, num_warmup=40, progress=False)
    saltus.mixed(clusters, saltus.Binary(5), {"m": (), "w": ()}, (jnp.asarray(Y),), **asked)
    before = warm._cache_size(), draw._cache_size()
    saltus.mixed(clusters, saltus.Binary(5), {"m": (), "w": ()}, (jnp.asarray(Y[::-1].copy()),), seed=5, **asked)
    assert (warm._cache_size(), draw._cache_size()) == before


def test_transforms_integrate_to_one():
    """A log_prob that is flat on a simplex and an interval: means are those of uniform laws."""
    run = saltus.mixed(
        lambda s, x: 0.0 * s.sum() + 0.0 * x["p"].sum() + 0.0 * x["u"],
        saltus.Binary(2),
        {"p": (3,), "u": ()},
        transforms={"p": "simplex", "u": (2.0, 5.0)},
        num_draws=2000,
        num_warmup=500,
        progress=False,
    )
    np.testing.assert_allclose(run.posterior.p.mean(("chain", "draw")), 1 / 3, atol=0.02)
    np.testing.assert_allclose(run.posterior.p.var(("chain", "draw")), 1 / 18, atol=0.01)
    assert abs(float(run.posterior.u.mean()) - 3.5) < 0.06


def message(*args, **kwargs):
    with pytest.raises(saltus.SaltusError) as caught:
        saltus.mixed(*args, progress=False, **kwargs)
    return str(caught.value)


def test_bad_input():
    space, shapes = saltus.Binary(2), {"m": ()}
    f = lambda s, x: s.sum() * x["m"]  # noqa: E731
    assert "is not a function" in message(3, space, shapes)
    assert "space" in message(f, 3, shapes)
    assert "has no number in it" in message(f, space, {})
    assert "`continuous` is not usable" in message(f, space, 5)
    assert "names what is not there" in message(f, space, shapes, transforms={"k": "unit"})
    assert "is not known" in message(f, space, shapes, transforms={"m": "cubic"})
    assert "same name" in message(f, saltus.Product(m=space), shapes)
    assert "`data` is not a tuple" in message(f, space, shapes, {"y": 1})
    assert "target_acceptance" in message(f, space, shapes, target_acceptance=1.5)
    assert "carry weights" in message(f, space, shapes, sampler="tgs")
    assert "No possible start" in message(lambda s, x: jnp.nan * x["m"], space, shapes)
