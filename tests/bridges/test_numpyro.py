"""NumPyro models as their authors write them, against exact answers; and errors that name the site."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS, Gibbs
from numpyro.infer.gibbs import discrete_latent_sites

import saltus
from saltus.bridges import numpyro as bridge

SWEEP = saltus.Gibbs("systematic")


def die():
    z = numpyro.sample("z", dist.DiscreteUniform(1, 3))
    numpyro.sample("y", dist.Normal(1.0 * z, 1.0), obs=2.5)


def test_a_support_that_does_not_begin_at_zero():
    run = bridge.sample(die, sampler=SWEEP, num_draws=2000, num_warmup=10, progress=False)
    p = np.exp(-0.5 * (2.5 - np.arange(1, 4)) ** 2)
    seen = np.bincount(run.posterior.z.values.ravel(), minlength=4)[1:] / run.posterior.z.size
    np.testing.assert_allclose(seen, p / p.sum(), atol=0.03)
    assert run.posterior.z.dims == ("chain", "draw")
    assert "y" in run.log_likelihood


def wheel(logits):
    with numpyro.plate("spins", 2):
        numpyro.sample("k", dist.Categorical(logits=logits))


def test_fifty_categories():
    logits = jnp.linspace(-2, 2, 50)
    run = bridge.sample(wheel, logits, sampler=saltus.Gibbs("coloured"), num_draws=2500, num_warmup=10, progress=False)
    p = np.asarray(jax.nn.softmax(logits))
    assert run.posterior.k.dims == ("chain", "draw", "spins")
    assert abs(float(run.posterior.k.mean()) - p @ np.arange(50)) < 0.4
    assert set(np.unique(run.posterior.k)) <= set(range(50))


def unequal(n):
    with numpyro.plate("rows", 3):
        k = numpyro.sample("k", dist.Binomial(n, 0.5))
        numpyro.sample("y", dist.Normal(1.0 * k, 1.0), obs=jnp.array([1.0, 2.0, 0.0]))


def test_sizes_that_differ_from_element_to_element():
    n = np.array([2, 5, 1])
    run = bridge.sample(unequal, n, sampler=SWEEP, num_draws=2000, num_warmup=10, progress=False)
    for i, (size, y) in enumerate(zip(n, [1.0, 2.0, 0.0], strict=True)):
        values = np.arange(size + 1)
        log_p = np.asarray(dist.Binomial(int(size), 0.5).log_prob(values)) - 0.5 * (y - values) ** 2
        p = np.exp(log_p - log_p.max())
        assert abs(float(run.posterior.k[..., i].mean()) - (p / p.sum()) @ values) < 0.07


def spike_and_slab(X, y):
    with numpyro.plate("columns", X.shape[1]):
        z = numpyro.sample("z", dist.Bernoulli(0.3))
        b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    numpyro.deterministic("size", z.sum())
    numpyro.sample("y", dist.Normal(X @ (z * b), 0.7), obs=y)


def inclusion(X, y, slab=1.0, noise=0.7, prior=0.3):
    """By enumeration, the coefficients integrated out."""
    n, d = X.shape
    states = (np.arange(2**d)[:, None] >> np.arange(d)) & 1
    log_p = []
    for z in states:
        S = noise**2 * np.eye(n) + slab**2 * X[:, z == 1] @ X[:, z == 1].T
        log_p.append(-0.5 * np.linalg.slogdet(S)[1] - 0.5 * y @ np.linalg.solve(S, y) + z.sum() * np.log(prior / (1 - prior)))
    p = np.exp(np.array(log_p) - max(log_p))
    return (p / p.sum()) @ states


def test_spike_and_slab_with_collinear_columns_is_that_of_enumeration():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5))
    X[:, 1] = X[:, 0] + 0.3 * rng.normal(size=30)
    y = X[:, 0] - 0.5 * X[:, 3] + 0.7 * rng.normal(size=30)
    asked = dict(num_draws=3000, num_warmup=500, progress=False)
    run = bridge.sample(spike_and_slab, X.astype(np.float32), y.astype(np.float32), **asked)
    np.testing.assert_allclose(run.posterior.z.mean(("chain", "draw")), inclusion(X, y), atol=0.05)
    assert {"z", "b", "size"} <= set(run.posterior.data_vars)
    assert run.posterior.b.dims == ("chain", "draw", "columns")


def test_a_block_of_numpyros_own_gibbs():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 3)).astype(np.float32)
    y = (X[:, 0] + 0.7 * rng.normal(size=20)).astype(np.float32)
    blocks = Gibbs([(bridge.DiscreteKernel(spike_and_slab), discrete_latent_sites), (NUTS(spike_and_slab), None)])
    mcmc = MCMC(blocks, num_warmup=300, num_samples=1500, num_chains=2, chain_method=jax.vmap, progress_bar=False)
    mcmc.run(jax.random.key(0), X, y)
    seen = np.asarray(mcmc.get_samples()["z"]).mean(0)
    np.testing.assert_allclose(seen, inclusion(X.astype(float), y.astype(float)), atol=0.08)


def looked_up(probs, locs):
    c = numpyro.sample("c", dist.Categorical(probs))
    numpyro.sample("y", dist.Normal(locs[c], 1.0), obs=1.5)


def test_an_array_of_numpy_that_a_site_indexes():
    """Whole numbers are no data, and numpy's arrays refuse an index that JAX is tracing."""
    target = bridge.target(looked_up, np.array([0.2, 0.5, 0.3]), np.array([-2, 0, 2]))
    p = np.array([0.2, 0.5, 0.3]) * np.exp(-0.5 * (1.5 - np.array([-2, 0, 2])) ** 2)
    np.testing.assert_allclose(saltus.testing.stationary(target), p / p.sum(), rtol=1e-4)


def impossible_at_random(y):
    """Annotators who know the class of an item, or spam: nearly every random state has log-probability -inf."""
    with numpyro.plate("items", len(y), dim=-2):
        c = numpyro.sample("c", dist.Categorical(jnp.full(3, 1 / 3)))
        with numpyro.plate("positions", y.shape[1]):
            s = numpyro.sample("s", dist.Bernoulli(0.7))
            probs = jnp.where(s[..., None] == 0, jax.nn.one_hot(c, 3), 1 / 3)
            numpyro.sample("y", dist.Categorical(probs), obs=y)


def with_a_scale(y):
    impossible_at_random(y)
    numpyro.sample("scale", dist.HalfNormal(1.0))


@pytest.mark.parametrize("model", [impossible_at_random, with_a_scale])
def test_starts_where_nearly_every_state_is_impossible(model):
    y = np.random.default_rng(2).integers(0, 3, (12, 4))
    asked = dict(sampler=SWEEP, num_draws=1500, num_warmup=100, num_chains=2, progress=False)
    run = bridge.sample(model, y, **asked)
    each = np.stack([0.3 * (y == k) + 0.7 / 3 for k in range(3)]).prod(-1)  # (classes, items), spam summed out
    p = each / each.sum(0)
    for k in range(3):
        np.testing.assert_allclose((run.posterior.c.values[..., 0] == k).mean((0, 1)), p[k], atol=0.1)


def message(model, *args, call=bridge.sample):
    with pytest.raises(saltus.SaltusError) as caught:
        call(model, *args)
    return str(caught.value)


def poisson():
    numpyro.sample("count", dist.Poisson(3.0))


def dependent():
    n = numpyro.sample("n", dist.DiscreteUniform(1, 20))
    numpyro.sample("k", dist.Binomial(n, 0.5))


def continuous():
    numpyro.sample("x", dist.Normal(0, 1))


def both():
    numpyro.sample("x", dist.Normal(0, 1))
    numpyro.sample("z", dist.Bernoulli(0.5))


def broken():
    raise RuntimeError("no data")


def test_errors_name_the_site_and_the_way_out():
    text = message(poisson)
    assert "'count' ~ Poisson has no upper bound" in text
    assert "Categorical(logits=dist.Poisson" in text
    assert "The support of 'k' depends on another site" in message(dependent)
    assert "no discrete latent site" in message(continuous)
    assert "continuous sites" in message(both, call=bridge.target)
    assert "RuntimeError: no data" in message(broken)
    assert "not a function" in message(3)
    assert "not a kernel" in message(both, "ncg", call=bridge.DiscreteKernel)


def test_enumeration_markers_are_ignored_with_a_warning():
    def marked():
        numpyro.sample("z", dist.Bernoulli(0.5), infer={"enumerate": "parallel"})

    with pytest.warns(UserWarning, match="saltus samples z"):
        target = bridge.target(marked)
    assert target.space.num_sites == 1
