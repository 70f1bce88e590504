"""`saltus.random` is `jax.random` bit for bit; `unit` and `categorical` have the distributions they claim."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from jax import lax

from saltus import random

KEY = jax.random.key(20240607)
KEYS = {"typed": KEY, "raw": jax.random.key_data(KEY)}
SHAPES = [(), (7,), (3, 5), (1001,), (0,)]
MODES = {
    "eager": lambda f: f,
    "jit": jax.jit,
    "vmap": lambda f: lambda key: jax.jit(jax.vmap(f))(jax.random.split(key, 4)),
}
DRAWS = {
    "bits": lambda r, key, shape: r.bits(key, shape, jnp.uint32),
    "uniform": lambda r, key, shape: r.uniform(key, shape),
    "uniform(-3.3, 0.7)": lambda r, key, shape: r.uniform(key, shape, jnp.float32, -3.3, 0.7),
    "normal": lambda r, key, shape: r.normal(key, shape),
}
DRAWS_64 = {
    "bits": lambda r, key, shape: r.bits(key, shape, jnp.uint64),
    "uniform": lambda r, key, shape: r.uniform(key, shape),
    "uniform(-3.3, 0.7)": lambda r, key, shape: r.uniform(key, shape, jnp.float64, -3.3, 0.7),
    "normal": lambda r, key, shape: r.normal(key, shape),
    "normal float32": lambda r, key, shape: r.normal(key, shape, jnp.float32),
}
NEW_KEYS = {
    "split": lambda r, key: r.split(key),
    "split 5": lambda r, key: r.split(key, 5),
    "split (2, 3)": lambda r, key: r.split(key, (2, 3)),
    "fold_in": lambda r, key: r.fold_in(key, 12345),
    "fold_in 2^32 - 1": lambda r, key: r.fold_in(key, 2**32 - 1),
}
P_VALUE = 1e-6


@pytest.fixture(autouse=True)
def strict_promotion():
    with jax.numpy_dtype_promotion("strict"):
        yield


def assert_identical(ours, theirs):
    """Same form of key or dtype, same shape, same bits."""
    assert ours.dtype == theirs.dtype
    if jnp.issubdtype(ours.dtype, jax.dtypes.prng_key):
        ours, theirs = jax.random.key_data(ours), jax.random.key_data(theirs)
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.tobytes() == theirs.tobytes()


def assert_unrolled(draw, mode, key, *args):
    """Bit for bit, and by our own code: in the same mode, since a compiler may contract a * b + c in one and not another."""
    assert random._unrolls(key, ())
    ours, theirs = (MODES[mode](lambda key, r=r: draw(r, key, *args))(key) for r in (random, jax.random))
    assert_identical(ours, theirs)


def p_value(counts, weights):
    """Chi-square of counts against weights; cells expected below 10 are pooled, and a count where none can be is fatal."""
    expected = np.asarray(weights, float) / np.sum(weights, dtype=float) * counts.sum()
    if counts[expected == 0].any():
        return 0.0
    small = expected < 10
    counts, expected = (np.append(a[~small], a[small].sum()) for a in (counts, expected))
    return scipy.stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue


# Bit for bit


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", SPACES_OF_SHAPES if False else SHAPES, ids=str)
@pytest.mark.parametrize("draw", DRAWS)
def test_float32_draws_are_those_of_jax(draw, shape, mode):
    assert_unrolled(DRAWS[draw], mode, KEY, shape)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(), (3, 5), (1001,)], ids=str)
@pytest.mark.parametrize("draw", DRAWS_64)
def test_float64_draws_are_those_of_jax(draw, shape, mode):
    with jax.enable_x64(True):
        assert_unrolled(DRAWS_64[draw], mode, KEY, shape)
