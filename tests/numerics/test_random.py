"""`saltus.random` is `jax.random` bit for bit; `unit` and `categorical` have the distributions they claim."""

import re

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from jax import lax

from saltus import random

KEY = jax.random.key(20240607)
KEYS = {"typed": KEY, "raw": jax.random.key_data(KEY)}
SHAPES = {"eager": [(), (7,), (3, 5), (1001,), (0,)], "jit": [(), (1001,)], "vmap": [(3, 5)]}
CASES = [(mode, shape) for mode, shapes in SHAPES.items() for shape in shapes]
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
}
NEW_KEYS = {
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
    """Bit for bit and by our own code; jit against jit, since a compiler may contract a * b + c in one program only."""
    assert random._unrolls(key, ())
    ours, theirs = (lambda key, r=r: draw(r, key, *args) for r in (random, jax.random))
    if mode == "vmap":  # against one key at a time: jax.random takes seconds to compile under vmap
        keys = jax.random.split(key, 3)
        assert_identical(jax.jit(jax.vmap(ours))(keys), jnp.stack([theirs(key) for key in keys]))
    else:
        wrap = jax.jit if mode == "jit" else lambda f: f
        assert_identical(wrap(ours)(key), wrap(theirs)(key))


def p_value(counts, weights):
    """Chi-square of counts against weights; cells expected below 10 are pooled, those of weight zero must be empty."""
    weights = np.asarray(weights, float)
    expected = weights / weights.sum() * counts.sum()
    if counts[expected == 0].any():
        return 0.0
    small = expected < 10
    counts, expected = (np.append(a[~small], a[small].sum()) for a in (counts, expected))
    return scipy.stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue


# Bit for bit


@pytest.mark.parametrize(("mode", "shape"), CASES, ids=str)
@pytest.mark.parametrize("draw", DRAWS)
def test_float32_draws_are_those_of_jax(draw, mode, shape):
    assert_unrolled(DRAWS[draw], mode, KEY, shape)


@pytest.mark.parametrize(("mode", "shape"), [("eager", (7,)), ("jit", (1001,)), ("vmap", (7,))], ids=str)
@pytest.mark.parametrize("draw", DRAWS_64)
def test_float64_draws_are_those_of_jax(draw, mode, shape):
    with jax.enable_x64(True):
        assert_unrolled(DRAWS_64[draw], mode, KEY, shape)


@pytest.mark.parametrize("draw", DRAWS)
def test_raw_keys_draw_the_same(draw):
    assert_unrolled(DRAWS[draw], "eager", KEYS["raw"], (7,))
    assert_identical(DRAWS[draw](random, KEYS["raw"], (7,)), DRAWS[draw](random, KEY, (7,)))


def test_raw_keys_pass_through_vmap():
    assert_unrolled(DRAWS["normal"], "vmap", KEYS["raw"], (7,))


@pytest.mark.parametrize(("mode", "form"), [("eager", "typed"), ("eager", "raw"), ("jit", "typed"), ("vmap", "raw")])
@pytest.mark.parametrize("make", NEW_KEYS)
def test_new_keys_are_those_of_jax_and_keep_their_form(make, mode, form):
    assert_unrolled(NEW_KEYS[make], mode, KEYS[form])


def test_float32_can_be_asked_for_under_x64():
    with jax.enable_x64(True):
        assert_unrolled(lambda r, key: r.normal(key, (7,), jnp.float32), "eager", KEY)


def test_new_keys_do_not_depend_on_x64():
    for name in ("split (2, 3)", "fold_in"):
        make = NEW_KEYS[name]
        expected = jax.random.key_data(make(random, KEY))
        with jax.enable_x64(True):
            assert_unrolled(make, "eager", KEY)
            np.testing.assert_array_equal(jax.random.key_data(make(random, KEY)), expected)


def test_keys_pass_through_scan():
    def walk(r):
        def step(key, i):
            key, draw = r.split(r.fold_in(key, i))
            return key, (r.normal(draw, (5,)), r.bits(draw, (), jnp.uint32))

        return jax.jit(lambda key: lax.scan(step, key, jnp.arange(6)))(KEY)

    jax.tree.map(assert_identical, walk(random), walk(jax.random))


def test_bounds_may_be_arrays_and_numbers_may_be_shapes():
    low = jnp.linspace(-1, 1, 5)
    assert_unrolled(lambda r, key: r.uniform(key, (3, 5), jnp.float32, low, 4.0), "jit", KEY)
    assert_unrolled(lambda r, key: r.uniform(key, 4), "eager", KEY)


def test_draws_work_inside_shard_map():
    mesh = jax.make_mesh((1,), ("chains",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("chains")
    keys = random.split(KEY, 4)
    draw = jax.vmap(lambda key: random.uniform(random.fold_in(key, 1), (7,)))
    assert_identical(jax.jit(jax.shard_map(draw, mesh=mesh, in_specs=spec, out_specs=spec))(keys), draw(keys))


def test_numbers_used_in_three_places_are_computed_once():
    """XLA:CPU would copy the 20 rounds into each use: count the exclusive ors of the optimised program."""

    def exclusive_ors(use):
        program = jax.jit(lambda key: use(random.uniform(key, (1000,)))).lower(KEY).compile().as_text()
        return len(re.findall(r" xor\(", program))

    assert exclusive_ors(lambda u: (u < 0.3, (u * u).sum(), (u + 1).max())) == exclusive_ors(lambda u: u) > 0


def test_keys_made_on_the_host_are_those_of_fold_in():
    numbers = np.array([0, 1, 77, 2**31 - 1])
    keys = jax.vmap(lambda i: jax.random.fold_in(KEY, i))(numbers)
    host = random.folded(np.asarray(KEYS["raw"]), numbers)
    assert_identical(host, jax.random.key_data(keys))
    again = jax.vmap(lambda key: jax.random.fold_in(key, 3))(keys)
    assert_identical(random.folded(host, [3]), jax.random.key_data(again))


def test_one_wrong_rotation_is_noticed(monkeypatch):
    words, theirs = KEYS["raw"], jax.random.bits(KEY, (5,), jnp.uint32)
    assert_identical(random._bits((5,), np.dtype("uint32"), words), theirs)
    monkeypatch.setattr(random, "_ROTATIONS", ((13, 15, 26, 6), (17, 29, 16, 23)))
    with pytest.raises(AssertionError):
        assert_identical(random._bits((5,), np.dtype("uint32"), words), theirs)


# Where jax.random takes over


def assert_handed_over(key):
    assert not random._unrolls(key, ())
    for draw in DRAWS.values():
        assert_identical(draw(random, key, (7,)), draw(jax.random, key, (7,)))
    for make in NEW_KEYS.values():
        assert_identical(make(random, key), make(jax.random, key))


def test_other_generators_are_handed_over():
    assert_handed_over(jax.random.key(3, impl="rbg"))
    assert not random._unrolls(jax.random.key(3, impl="unsafe_rbg"), ())
    with jax.default_prng_impl("rbg"):
        assert_handed_over(jax.random.PRNGKey(3))
        assert random._unrolls(KEY, ())
        assert not random._unrolls(KEYS["raw"], ())


def test_the_original_counters_are_handed_over():
    ours = random.bits(KEY, (7,))
    with jax.threefry_partitionable(False):
        assert_handed_over(KEY)
        assert not random._unrolls(KEYS["raw"], ())
        assert (random.bits(KEY, (7,)) != ours).any()


def test_arrays_beyond_32_bit_counters_are_handed_over():
    assert random._unrolls(KEY, (2**32 - 1,))
    assert not random._unrolls(KEY, (2**16, 2**16))
    assert jax.eval_shape(lambda key: random.bits(key, (2**16, 2**16)), KEY).shape == (2**16, 2**16)


def test_other_dtypes_are_handed_over():
    for dtype in (jnp.bfloat16, jnp.float16):
        assert_identical(random.uniform(KEY, (7,), dtype), jax.random.uniform(KEY, (7,), dtype))
        assert_identical(random.normal(KEY, (7,), dtype), jax.random.normal(KEY, (7,), dtype))
    assert_identical(random.bits(KEY, (7,), jnp.uint8), jax.random.bits(KEY, (7,), jnp.uint8))
    with pytest.warns(UserWarning, match="float64"):
        assert random.uniform(KEY, (7,), np.float64).dtype == jnp.float32


def test_mistakes_meet_the_errors_of_jax():
    with pytest.raises(ValueError, match="vmap"):
        random.uniform(random.split(KEY))
    with pytest.raises(TypeError, match="key"):
        random.uniform(0)
    with pytest.raises(TypeError, match="vmap"):
        random.fold_in(KEY, jnp.arange(3))


# unit


@pytest.mark.parametrize("x64", [False, True])
def test_unit_is_its_formula_and_stays_inside_at_extreme_bits(x64):
    with jax.enable_x64(x64):
        word, dtype, m = (jnp.uint64, jnp.float64, 63) if x64 else (jnp.uint32, jnp.float32, 31)
        top = 2 ** (m + 1)
        extreme = [0, 1, 2, 3, top - 1, top - 2, top - 2**8, top - 2**12, top // 2, top // 2 - 1]
        u = random._to_unit(jnp.array(extreme, word), np.dtype(dtype))
        assert u.dtype == dtype
        assert u[0] == u[1] == 2.0 ** -(m + 1)
        assert u[2] == u[3] == 1.5 * 2.0**-m
        assert u[4] == u[5] == 1 - jnp.finfo(dtype).epsneg
        assert ((u > 0) & (u < 1)).all()
        exact = (np.array(extreme, np.longdouble) // 2 + 0.5) / 2**m
        np.testing.assert_allclose(u, exact, rtol=float(jnp.finfo(dtype).eps))


@pytest.mark.parametrize("num", [1, 2, 7, 100])
def test_unit_uses_both_words_of_every_counter(num):
    """Bit for bit as the cipher of jax has them: first words, then second words."""
    half = -(-num // 2)
    counters = jnp.concatenate([jnp.zeros(half, jnp.uint32), jnp.arange(half, dtype=jnp.uint32)])
    words = jax.extend.random.threefry_2x32(jax.random.key_data(KEY), counters)
    expected = random._to_unit(words, np.dtype("float32"))[:num]
    np.testing.assert_array_equal(jax.jit(lambda key: random.unit(key, (num,)))(KEY), expected)
    with jax.debug_nans(True):
        np.testing.assert_array_equal(random.unit(KEY, (num,)), expected)


def test_unit_refuses_other_dtypes():
    with pytest.raises(TypeError, match="bfloat16"):
        random.unit(KEY, (), jnp.bfloat16)


@pytest.mark.parametrize("x64", [False, True])
def test_unit_is_uniform(x64):
    with jax.enable_x64(x64):
        u = random.unit(KEY, (2**18,))
    assert p_value(np.bincount((np.asarray(u) * 100).astype(int), minlength=100), np.ones(100)) > P_VALUE


def rare_events(draw, probabilities, rounds=16, n=2**23):
    """For each p: how unlikely (two-sided) the number of events draw(key) < p is in rounds * n draws."""

    def step(counts, key):
        u = draw(key, (n,))
        return counts + jnp.stack([(u < p).sum(dtype=jnp.int32) for p in probabilities]), None

    none = jnp.zeros(len(probabilities), jnp.int32)
    counts = jax.jit(lambda keys: lax.scan(step, none, keys)[0])(random.split(KEY, rounds))
    return [scipy.stats.binomtest(int(c), rounds * n, p).pvalue for c, p in zip(counts, probabilities, strict=True)]


def test_events_rarer_than_a_step_of_uniform_happen_as_often_as_they_should():
    assert min(rare_events(random.unit, [2e-8, 1.1e-7])) > P_VALUE  # 15 of the latter expected: none would be refused
    assert max(rare_events(random.uniform, [2e-8])) < P_VALUE  # its zero has probability 2^-23, six times too much


# gauss


def test_gauss_is_normal():
    """All at once, either half, the tails, and independence of the two that come from one counter."""
    x = np.asarray(jax.jit(lambda key: random.gauss(key, (2**21,)))(KEY), np.float64)
    first, second = x[: 2**20], x[2**20 :]
    for part in (x, first, second, np.abs(x), first**2 + second**2):
        law = {True: scipy.stats.norm, False: scipy.stats.halfnorm}[part.min() < 0] if part.max() < 8 else scipy.stats.chi2(2)
        assert scipy.stats.kstest(part, law.cdf, method="asymp").pvalue > P_VALUE
    assert scipy.stats.kstest(np.arctan2(first, second) / np.pi, scipy.stats.uniform(-1, 2).cdf, method="asymp").pvalue > P_VALUE
    for bound in (3.5, 4.5):
        assert scipy.stats.binomtest(int((x > bound).sum()), x.size, scipy.stats.norm.sf(bound)).pvalue > P_VALUE
    counts = np.histogram2d(scipy.stats.norm.cdf(first), scipy.stats.norm.cdf(second), bins=16, range=[[0, 1]] * 2)[0]
    assert p_value(counts.ravel(), np.ones(256)) > P_VALUE


def test_gauss_would_notice_a_wrong_angle():
    """Without the exchange, |x| of the first half is too large: the test above can fail."""
    x = np.abs(np.asarray(random.gauss(KEY, (2**16,)), np.float64)).reshape(2, -1)
    assert scipy.stats.kstest(x.max(axis=0), scipy.stats.halfnorm.cdf).pvalue < P_VALUE


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5)])
def test_gauss_has_the_shape_asked_for(shape):
    x = random.gauss(KEY, shape)
    assert x.shape == shape
    assert x.dtype == jnp.float32
    with jax.enable_x64(True):
        assert random.gauss(KEY, shape).dtype == jnp.float64


# categorical


def weights_of(k):
    """Weights over two decades, every third of them zero."""
    rng = np.random.default_rng(k)
    return np.where(np.arange(k) % 3 == 1, 0, 10 ** rng.uniform(-2, 0, k)).astype(np.float32)


def inverse_cdf(u, rows):
    """One uniform and one row of weights each."""
    return random.inverse_cdf(jnp.asarray(u)[None], jnp.asarray(rows).T)


def categorical(key, rows):
    return random.categorical(key, jnp.moveaxis(jnp.asarray(rows), -1, 0))


@pytest.mark.parametrize("k", [1, 3, 50, 64])
def test_inverse_cdf_gives_each_entry_its_share_of_all_uniforms(k):
    n, w = 2**14, weights_of(k)
    index = jax.jit(inverse_cdf)(np.arange(n, dtype=np.float32) / n, np.broadcast_to(w, (n, k)))
    counts = np.bincount(index, minlength=k)
    assert np.abs(counts - w / w.sum(dtype=float) * n).max() < 1 + 1e-2
    assert (counts[w == 0] == 0).all()


def draw_counts(key, weights, rows=2**10, rounds=64):
    """Counts of rows * rounds draws, all rows with the same weights."""

    def draw(key, weights):
        return categorical(key, jnp.broadcast_to(weights, (rows, weights.size)))

    index = jax.jit(lambda keys, w: lax.map(lambda key: draw(key, w), keys))(random.split(key, rounds), weights)
    assert index.dtype == jnp.int32
    return np.bincount(np.ravel(index), minlength=weights.size)


@pytest.mark.parametrize("k", [3, 50, 1000, 5000])
def test_categorical_has_its_distribution(k):
    w = weights_of(k)
    counts = draw_counts(KEY, w)
    assert counts.size == k
    assert p_value(counts, w) > P_VALUE
    assert p_value(counts, w**1.2) < P_VALUE  # a slightly different distribution is noticed


@pytest.mark.parametrize("k", [64, 65, 4097])
def test_categorical_finds_a_single_positive_weight(k):
    where = np.repeat([0, k // 2, k - 1], 50)
    draw = jax.jit(categorical)
    for scale in (1e-30, 1.0, 1e30):
        w = np.where(np.arange(k) == where[:, None], scale, 0).astype(np.float32)
        np.testing.assert_array_equal(draw(KEY, w), where)


def test_categorical_stays_inside_the_support_at_extreme_uniforms():
    w = weights_of(60)
    draw = jax.jit(inverse_cdf)
    overflows = w / w.max() * np.float32(3e38)
    w = np.stack([w, w * np.float32(1e-35), overflows, np.where(np.arange(60) < 40, w, 0)])
    for u in (0.0, 2.0**-23, 1 - 2.0**-23):
        index = np.asarray(draw(np.full(len(w), u, np.float32), w))
        assert (w[np.arange(len(w)), index] > 0).all()
    assert 0 <= categorical(KEY, jnp.zeros(60)) < 60


def test_categorical_takes_rows_by_axes_and_by_vmap():
    keys, draw = random.split(KEY, 2**14), jax.jit(categorical)
    w = np.broadcast_to(weights_of(100), (2**14, 2, 100))
    index = jax.jit(jax.vmap(categorical))(keys, w)
    assert_identical(index[:3], jnp.stack([draw(key, rows) for key, rows in zip(keys[:3], w[:3], strict=True)]))
    for column in index.T:
        assert p_value(np.bincount(column, minlength=100), weights_of(100)) > P_VALUE
    assert scipy.stats.chi2_contingency(np.histogram2d(*index.T, bins=4)[0]).pvalue > P_VALUE


@pytest.mark.parametrize("key", [KEYS["raw"], jax.random.key(0, impl="rbg")], ids=["raw", "rbg"])
def test_categorical_works_in_float64_and_with_any_key(key):
    with jax.enable_x64(True):
        w = weights_of(200).astype(np.float64)
        assert p_value(draw_counts(key, w, rounds=4), w) > P_VALUE


def test_categorical_resolves_rare_entries_as_unit_does():
    """`uniform` is 0 once in 2^23 draws and would pick an entry of any weight, however small."""
    weights = jnp.array([1e-20, 1.0, 1.0], jnp.float32)
    assert inverse_cdf([jnp.float32(0)], weights[None]) == 0  # what a uniform of 0 would do
    assert inverse_cdf([jnp.float32(2.0**-32)], weights[None]) == 1  # the smallest `unit`
    fine = random.unit(KEY, (1000,), jnp.float32)
    coarse = jnp.floor(fine * 2**23) / 2**23  # with the steps of `uniform`
    between = coarse + (fine - coarse) / 2
    rows = jnp.stack([between, 1 - between], axis=1)
    np.testing.assert_array_equal(categorical(KEY, rows), inverse_cdf(fine, rows))
    assert (categorical(KEY, rows) != inverse_cdf(coarse, rows)).any()
