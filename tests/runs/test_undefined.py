"""NaN, +inf and -inf: refused, counted where they are a fault, and never a chain stuck in silence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grid import KERNELS

import saltus

SPACE = saltus.Binary(4)
NAMES = ["NCG", "AVG", "PAVG-Dense", "GWG", "Gibbs-random", "Gibbs-systematic", "UniformMH-2"]


def with_value(bad):
    """log_prob that takes the value `bad` wherever the first two sites are both 1."""

    def log_prob(s):
        f = jnp.sum(s * jnp.array([0.3, -0.2, 0.5, 0.1]))
        return jnp.where(s[0] + s[1] > 1.5, bad, f)

    return log_prob


def run(kernel, target, steps=200, chains=32):
    codes = jnp.zeros((chains, 4), jnp.int32)
    x = jax.vmap(lambda c: kernel.init(target, c))(codes)

    def one(x, key):
        x, info = jax.vmap(lambda k, x: kernel.step(k, target, x))(jax.random.split(key, chains), x)
        return x, (x.codes, info)

    return jax.jit(lambda: jax.lax.scan(one, x, jax.random.split(jax.random.key(0), steps))[1])()


@pytest.mark.parametrize(
    ("name", "differences"),
    [(name, "gradient") for name in NAMES] + [(name, "exact") for name in ("NCG", "GWG")],  # the rest use no D
)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf], ids=str)
def test_bad_states_are_never_entered_and_the_rest_moves(name, differences, bad):
    kernel, target = KERNELS[name](SPACE), saltus.Target(with_value(bad), SPACE, differences=differences)
    codes, info = run(kernel, target)
    codes = np.asarray(codes)
    assert not ((codes[..., 0] == 1) & (codes[..., 1] == 1)).any()
    assert np.asarray(info.moved).any(axis=0).all()  # every chain moved
    seen = int(np.asarray(info.undefined).sum())
    if bad == -np.inf:
        assert seen == 0  # impossible is not a fault
    else:
        assert seen > 0


@pytest.mark.parametrize("space", [SPACE, saltus.Ordinal(4, [0.0, 1.0, 2.0]), saltus.Categorical(4, 3)], ids=str)
@pytest.mark.parametrize("scan", ["random", "systematic"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf], ids=str)
def test_gibbs_leaves_a_bad_start_and_is_right_afterwards(space, scan, bad):
    """Started where f is bad, it finds its way out, counts what is a fault, and caches the true f."""

    def log_prob(s):
        weight = jnp.sum(s.reshape(4, -1)[:, -1])
        return jnp.where(weight > 2.5, bad, 0.3 * weight)

    target = saltus.Target(log_prob, space)
    kernel = saltus.Gibbs(scan)
    x = kernel.init(target, jnp.full(4, space.num_values - 1, jnp.int32))
    keys = jax.random.split(jax.random.key(0), 60)
    x, info = jax.jit(lambda x: jax.lax.scan(lambda x, key: kernel.step(key, target, x), x, keys))(x)
    undefined = int(np.asarray(info.undefined).sum())
    assert np.isfinite(x.log_prob)
    np.testing.assert_allclose(x.log_prob, target.value(x.codes), rtol=1e-6)
    assert (undefined > 0) == (bad != -np.inf)


@pytest.mark.parametrize("space", [saltus.Ordinal(3, [0.0, 1.0, 2.0]), saltus.Categorical(3, 3)], ids=str)
@pytest.mark.parametrize("name", ["NCG", "AVG", "PAVG-Dense"])
def test_impossible_states_are_no_fault_with_exact_differences(space, name):
    def log_prob(s):
        r = s.reshape(3, -1)[:, -1]
        return jnp.where((r[1] == r[2]) & (r[0] != r[1]), -jnp.inf, 0.2 * jnp.sum(r))

    target, kernel = saltus.Target(log_prob, space, differences="exact"), KERNELS[name](space)

    def one(x, key):
        x, info = jax.vmap(lambda k, x: kernel.step(k, target, x))(jax.random.split(key, 64), x)
        return x, (x.log_prob, info.undefined)

    start = jax.vmap(lambda c: kernel.init(target, c))(jnp.zeros((64, 3), jnp.int32))
    _, (f, undefined) = jax.jit(lambda x: jax.lax.scan(one, x, jax.random.split(jax.random.key(0), 200)))(start)
    assert np.isfinite(f).all()
    assert int(np.asarray(undefined).sum()) == 0


@pytest.mark.parametrize("name", ["NCG", "AVG", "PAVG-Dense", "GWG"])
def test_a_gradient_that_is_nan_is_counted_at_every_step(name):
    """sqrt at 0: f is fine, its slope is not. The chain cannot move and says so."""
    target = saltus.Target(lambda s: jnp.sum(jnp.sqrt(s)) * 0 + jnp.sum(jnp.where(s > 0.5, 1.0, jnp.sqrt(s))), SPACE)
    _, info = run(KERNELS[name](SPACE), target, steps=20)
    assert not np.asarray(info.moved).any()
    assert (np.asarray(info.undefined) > 0).all()


def test_info_counts_what_it_says():
    target, kernel = saltus.Target(with_value(0.0), saltus.Spin(4)), saltus.NCG(3.0)
    codes, info = run(kernel, target)
    codes = np.concatenate([np.zeros((1, *codes.shape[1:]), int), np.asarray(codes)])
    changed = (codes[1:] != codes[:-1]).sum(-1)
    np.testing.assert_array_equal(info.moved, changed > 0)
    np.testing.assert_allclose(info.jump, 2.0 * changed)
    assert (np.asarray(info.changed_sites)[np.asarray(info.accepted)] == changed[np.asarray(info.accepted)]).all()
    assert (changed[~np.asarray(info.accepted)] == 0).all()
    assert np.asarray(info.accepted & ~info.moved).any()  # null proposals are accepted without moving
    rates = np.asarray(info.acceptance_rate)
    assert ((rates >= 0) & (rates <= 1)).all()
    assert np.asarray(info.accepted).mean() == pytest.approx(rates.mean(), abs=0.02)
