"""Diagnostics: equal to TFP and ArviZ where those are right, and plain about draws that say nothing."""

import contextlib
import functools
import importlib

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tensorflow_probability.substrates import numpy as tfp

import saltus
from saltus import diagnostics

BINARY = saltus.Binary(3)
UNEVEN = saltus.Ordinal(3, [-1.0, 0.0, 0.5, 4.0])
FAR = saltus.Ordinal(3, 1e6 + np.array([-1.0, 0.0, 0.5, 4.0]))
ONE_HOT = saltus.Categorical(3, 4)
CLOCK = saltus.Clock(3, 4)


def autoregression(rho, num_draws, shape=(), seed=0):
    """x_n = rho x_{n-1} + noise, started in stationarity."""
    noise = np.random.default_rng(seed).normal(size=(*shape, num_draws))
    x = np.empty_like(noise)
    x[..., 0] = noise[..., 0] / np.sqrt(1 - rho**2)
    for n in range(1, num_draws):
        x[..., n] = rho * x[..., n - 1] + noise[..., n]
    return x


def tfp_ess(x):
    """TFP's, in float64, with the guard on the autocorrelation time that TFP lacks."""
    n = x.shape[-1]
    draws_first = np.moveaxis(np.asarray(x, np.float64), -1, 0)
    tau = n / tfp.mcmc.effective_sample_size(draws_first, filter_beyond_positive_pairs=True)
    return n / np.maximum(tau, 1 / np.log10(n))


def assert_ess_is_that_of_tfp(estimator):
    for rho in (-0.9, -0.4, 0.0, 0.5, 0.95):
        for num_draws in (11, 100, 501):
            x = autoregression(rho, num_draws, (2, 3))
            np.testing.assert_allclose(estimator(x), tfp_ess(x), rtol=1e-10, err_msg=f"rho {rho}, N {num_draws}")


def test_ess_is_that_of_tfp():
    with jax.enable_x64(True):
        assert_ess_is_that_of_tfp(diagnostics.ess)


@pytest.mark.parametrize("rho", [-0.4, 0.0, 0.5, 0.95, 0.995])
@pytest.mark.parametrize("num_draws", [100, 1001])
@pytest.mark.parametrize("offset", [0, -1e6])
def test_float32_keeps_three_digits_of_ess(rho, num_draws, offset):
    x = (100 * autoregression(rho, num_draws, (5,)) + offset).astype(np.float32)
    found = diagnostics.ess(x)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, tfp_ess(x), rtol=1e-3)


def textbook_ess(x, divide_by_pairs_seen=True, pair=2):
    """The definition, lag by lag, and two ways to get it wrong: dividing every lag by N, and stopping at a single lag."""
    n = x.shape[-1]
    x = x - x.mean(-1, keepdims=True)
    products = np.stack([(x[..., : n - k] * x[..., k:]).sum(-1) for k in range(n)], axis=-1)
    covariances = products / (n - np.arange(n) if divide_by_pairs_seen else n)
    rho = (covariances / covariances[..., :1])[..., : n // 2 * 2]
    positive = rho.reshape(*x.shape[:-1], -1, pair).sum(-1) >= 0
    kept = np.repeat(np.logical_and.accumulate(positive, axis=-1), pair, axis=-1)
    tau = -1 + 2 * (kept * (1 - np.arange(rho.shape[-1]) / n) * rho).sum(-1)
    return n / np.maximum(tau, 1 / np.log10(n))


def test_the_comparison_with_tfp_sees_planted_bugs():
    assert_ess_is_that_of_tfp(textbook_ess)
    for bug in ({"divide_by_pairs_seen": False}, {"pair": 1}):
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            assert_ess_is_that_of_tfp(functools.partial(textbook_ess, **bug))


def chains_apart(spread, num_draws=1000, rho=0.5, chains=4):
    return autoregression(rho, num_draws, (chains,)) + spread * np.arange(chains)[:, None]


def one_stuck_chain(num_draws=1000):
    x = autoregression(0.5, num_draws, (4,))
    x[2] = x[2, 0]
    return x


OF_CHAINS = {
    "independent": autoregression(0.0, 1000, (4,)),
    "alternating": autoregression(-0.7, 1000, (4,)),
    "slow": autoregression(0.98, 2001, (3,)),
    "slower than the chain is long": autoregression(0.9999, 500, (4,)),
    "a little apart": chains_apart(0.5),
    "far apart": chains_apart(50.0),
    "one stuck": one_stuck_chain(),
    "two modes, never left": np.repeat([[-1.0], [1.0]], 2, axis=0) + 0.01 * autoregression(0.3, 1000, (4,)),
    "drifting": autoregression(0.5, 800, (4,)) + np.linspace(0, 8, 800),
    "one chain": autoregression(0.8, 999, (1,)),
    "ten draws": autoregression(0.5, 10, (4,)),
}


@pytest.mark.parametrize("case", OF_CHAINS)
def test_ess_of_chains_is_that_of_arviz(case):
    x = OF_CHAINS[case]
    expected = arviz_stats.ess(x, method="mean", chain_axis=0, draw_axis=1)
    np.testing.assert_allclose(diagnostics.ess_of_chains(x), expected, rtol=1e-8)


def test_a_sum_over_chains_would_not_pass_for_the_ess_of_chains():
    """What was shown before: thousands of effective draws beside an R-hat of 50."""
    for case in ("far apart", "two modes, never left", "one stuck", "drifting"):
        x = OF_CHAINS[case]
        assert diagnostics.ess(x).sum() > 2 * diagnostics.ess_of_chains(x), case
    assert diagnostics.split_rhat(OF_CHAINS["far apart"]) > 30
    assert diagnostics.ess_of_chains(OF_CHAINS["far apart"]) < 5


def test_ess_of_chains_keeps_the_axes_between_and_takes_chains_in_blocks(monkeypatch):
    x = np.stack([OF_CHAINS["far apart"], OF_CHAINS["independent"], OF_CHAINS["one stuck"]], axis=1)
    each = [diagnostics.ess_of_chains(x[:, i]) for i in range(3)]
    np.testing.assert_allclose(diagnostics.ess_of_chains(x), each, rtol=1e-12)
    monkeypatch.setattr(importlib.import_module("saltus.diagnostics.ess"), "_AT_ONCE", 1)
    np.testing.assert_allclose(diagnostics.ess_of_chains(x), each, rtol=1e-12)


@pytest.mark.parametrize("num_draws", [1, 3])
def test_ess_of_chains_of_hardly_any_draws_says_nothing(num_draws):
    assert diagnostics.ess_of_chains(np.arange(4.0 * num_draws).reshape(4, num_draws)) == 0


@pytest.mark.parametrize("num_draws", [4, 5, 9])
def test_ess_of_chains_of_few_draws_is_no_success(num_draws):
    """ArviZ gives N log10(N) to fewer than ten draws, whatever they are."""
    x = np.repeat([[0.0], [1.0]], num_draws, axis=1) + 1e-3 * autoregression(0.5, num_draws, (2,))
    assert 0 < diagnostics.ess_of_chains(x) < 4


def test_ess_of_chains_of_what_says_nothing_is_zero():
    assert diagnostics.ess_of_chains(np.ones((4, 100))) == 0
    assert diagnostics.ess_of_chains(np.repeat([[0.0], [1.0]], 100, axis=1)) == 0  # each at a place of its own
    for bad in (np.nan, np.inf):
        x = autoregression(0.5, 100, (2, 3))
        x[1, 1, 7] = bad
        found = diagnostics.ess_of_chains(x)
        assert found[1] == 0
        assert found[0] > 1


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_ess_of_chains_does_not_depend_on_unit_or_offset(unit):
    x = OF_CHAINS["a little apart"]
    np.testing.assert_allclose(diagnostics.ess_of_chains(unit * x), diagnostics.ess_of_chains(x), rtol=1e-9)
    np.testing.assert_allclose(diagnostics.ess_of_chains(-1e6 + 1e-3 * x), diagnostics.ess_of_chains(x), rtol=1e-5)


@pytest.mark.parametrize("num_draws", [20, 1000])
def test_alternating_chains_are_capped(num_draws):
    x = np.tile([0.0, 1.0], num_draws // 2)
    np.testing.assert_allclose(diagnostics.ess(x), num_draws * np.log10(num_draws), rtol=1e-6)


def test_ess_in_jit_and_vmap():
    x = autoregression(0.8, 200, (4, 3)).astype(np.float32)
    expected = np.asarray(diagnostics.ess(x))
    assert expected.shape == (4, 3)
    np.testing.assert_allclose(jax.jit(diagnostics.ess)(x), expected, rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(diagnostics.ess)(x), expected, rtol=1e-5)
    np.testing.assert_allclose(diagnostics.ess(x[2, 1]), expected[2, 1], rtol=1e-5)
    np.testing.assert_allclose(diagnostics.autocorrelation_time(x), 200 / expected, rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_ess_and_rhat_do_not_depend_on_the_unit(unit):
    x = autoregression(0.8, 200, (2,)).astype(np.float32)
    y = x * np.float32(unit)
    np.testing.assert_allclose(diagnostics.ess(y), diagnostics.ess(x), rtol=1e-3)
    np.testing.assert_allclose(diagnostics.split_rhat(y), diagnostics.split_rhat(x), rtol=1e-5)


def test_float64_draws_with_a_large_offset_keep_their_digits_without_x64():
    x = autoregression(0.8, 200, (2,))
    y = -1e6 + 1e-4 * x
    np.testing.assert_allclose(diagnostics.ess(y), diagnostics.ess(x), rtol=1e-3)
    np.testing.assert_allclose(diagnostics.split_rhat(y), diagnostics.split_rhat(x), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int32, np.float16])
def test_ess_of_small_types_is_that_of_their_numbers(dtype):
    x = np.random.default_rng(0).integers(0, 2, (2, 50)) * (1 if dtype == np.bool_ else 120)
    for given in (x.astype(dtype), jnp.asarray(x.astype(dtype))):
        np.testing.assert_allclose(diagnostics.ess(given), diagnostics.ess(x.astype(np.float32)), rtol=1e-6)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e6 - 0.1, 3e-39, 1e38])
@pytest.mark.parametrize("num_draws", [4, 999])
def test_a_constant_chain_says_nothing(x64, value, num_draws):
    with jax.enable_x64(True) if x64 else contextlib.nullcontext():
        x = jnp.full((2, num_draws), value)
        for given in (x, np.asarray(x)):
            np.testing.assert_array_equal(diagnostics.ess(given), [0, 0])
            np.testing.assert_array_equal(diagnostics.split_rhat(given), 0)


def test_one_rounding_step_at_a_large_offset_is_no_constant():
    x = np.full(100, -1e6, np.float32)
    x[50:] = np.nextafter(x[50:], np.float32(0))
    assert 0 < diagnostics.ess(x) < 5
    np.testing.assert_allclose(diagnostics.ess(x), tfp_ess(x), rtol=1e-3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 17])
def test_undefined_draws_never_look_good(bad, place):
    x = autoregression(0.5, 100, (2,))
    x[0, place] = bad
    for given in (x, jnp.asarray(x, jnp.float32)):
        found = np.asarray(diagnostics.ess(given))
        assert found[0] == 0
        assert found[1] > 1
        assert diagnostics.split_rhat(given) == np.inf
    assert diagnostics.ess(np.full(10, bad)) == 0
    assert diagnostics.split_rhat(np.full((2, 10), bad)) == np.inf


@pytest.mark.parametrize("num_draws", [1, 2, 3])
def test_fewer_than_four_draws_say_nothing(num_draws):
    x = autoregression(0.5, num_draws, (2, 3))
    np.testing.assert_array_equal(diagnostics.ess(x), np.zeros((2, 3)))
    np.testing.assert_array_equal(diagnostics.split_rhat(x), np.full(3, np.inf))


@pytest.mark.parametrize("num_draws", [4, 101, 400])
@pytest.mark.parametrize("spread", [0, 3])
def test_split_rhat_is_that_of_arviz(num_draws, spread):
    x = autoregression(0.7, num_draws, (4, 2, 3))
    x += spread * np.arange(4)[:, None, None, None]
    expected = arviz_stats.rhat(x, method="split", chain_axis=0, draw_axis=-1)
    with jax.enable_x64(True):
        np.testing.assert_allclose(diagnostics.split_rhat(x), expected, rtol=1e-10)
    np.testing.assert_allclose(jax.jit(diagnostics.split_rhat)(jnp.asarray(x)), expected, rtol=1e-6)
    np.testing.assert_allclose(diagnostics.split_rhat(x[:, 0, 0]), expected[0, 0], rtol=1e-6)


def test_split_rhat_of_one_chain_compares_its_halves():
    x = autoregression(0.9, 101)
    expected = arviz_stats.rhat(np.stack([x[:50], x[-50:]]), method="identity")
    np.testing.assert_allclose(diagnostics.split_rhat(x[None]), expected, rtol=1e-6)


def test_split_rhat_by_hand():
    x = np.array([[0.0, 2.0, 9.0, 1.0, 3.0]])  # halves 0, 2 and 1, 3: W = 2, B/n = 1/2
    np.testing.assert_allclose(diagnostics.split_rhat(x), np.sqrt(0.5 + 0.25), rtol=1e-6)


def test_split_rhat_of_constant_halves():
    stuck = np.array([[0.1] * 10, [0.7] * 10])  # neither is a binary fraction
    assert diagnostics.split_rhat(stuck) == np.inf
    assert diagnostics.split_rhat(stuck[:1]) == 0
    assert diagnostics.split_rhat(np.array([[1.0, 1.0, 5.0, 1.0, 1.0]])) == 0  # only the dropped draw differs
    assert diagnostics.split_rhat(np.array([[0.1] * 5 + [0.7] * 5])) == np.inf
    both = np.stack([stuck, autoregression(0.2, 10, (2,))], axis=1)
    assert np.isfinite(diagnostics.split_rhat(both)).tolist() == [False, True]


CODES = np.array([[0, 1, 1], [0, 0, 1], [1, 0, 0]], np.int8)
WIDE = np.array([[0, 3, 1], [2, 3, 1], [1, 0, 1]], np.uint8)


@pytest.mark.parametrize(
    ("space", "codes", "from_first", "between"),
    [
        (BINARY, CODES, [0, 1, 3], 1.5),
        (saltus.Spin(3), CODES, [0, 2, 6], 3),
        (saltus.Ordinal(3, [0, 2, 4, 6]), WIDE, [0, 4, 8], 6),
        (UNEVEN, WIDE, [0, 1.5, 6], 3.5),
        (FAR, WIDE, [0, 1.5, 6], 3.5),
        (ONE_HOT, WIDE, [0, 2, 4], 3),
        (CLOCK, WIDE, [0, 2, 4], 3),
    ],
    ids=str,
)
def test_distance_and_jump_by_hand(space, codes, from_first, between):
    np.testing.assert_allclose(diagnostics.distance(space, codes, codes[0]), from_first, atol=1e-6)
    np.testing.assert_allclose(diagnostics.jump(space, codes), between, rtol=1e-6)
    batch = jnp.asarray(np.stack([codes, codes[[0, 0, 0]]]))
    np.testing.assert_allclose(diagnostics.distance(space, batch, codes[0]), [from_first, [0, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda c: diagnostics.jump(space, c))(batch), [between, 0], rtol=1e-6)


@pytest.mark.parametrize(
    "space", [saltus.Spin(5), saltus.Ordinal(5, [0.0, 0.1, 2.0]), saltus.Categorical(5, 3), saltus.Clock(5, 5)], ids=str
)
def test_distance_is_l1_in_the_embedded_space(space):
    codes = np.random.default_rng(0).integers(0, space.num_values, (20, 5))
    s = space.values[codes]
    expected = np.abs(s - s[3]).reshape(20, -1).sum(-1)
    with jax.enable_x64(True):
        np.testing.assert_allclose(diagnostics.distance(space, codes, codes[3]), expected, rtol=1e-12, atol=1e-12)


def test_acceptance_by_changes_by_hand():
    changed = np.array([[0, 1, 1, 2], [3, 4, 5, 8], [9, 16, 17, 1]])
    accepted = np.array([[1, 1, 0, 0], [1, 0, 1, 1], [0, 0, 0, 0]], bool)
    assert diagnostics.acceptance_by_changes(changed, accepted) == [
        ("0", 1, 1.0),
        ("1", 3, 1 / 3),
        ("2", 1, 0.0),
        ("3-4", 2, 0.5),
        ("5-8", 2, 1.0),
        ("9-16", 2, 0.0),
        ("17-32", 1, 0.0),
    ]


def test_acceptance_by_changes_leaves_out_empty_bins():
    rows = diagnostics.acceptance_by_changes(jnp.asarray([0, 0, 7]), jnp.asarray([True, True, False]))
    assert [row.label for row in rows] == ["0", "5-8"]
    assert diagnostics.acceptance_by_changes([2, 2], [0.5, 0.25]) == [("2", 2, 0.375)]


def test_never_moving_by_hand():
    codes = np.zeros((2, 4, 5), np.int8)
    codes[1, :, 1] = 3  # chains differ, neither moves
    codes[0, 3, 2] = 1  # the last draw of the first chain
    codes[1, 1, 3] = 1  # there and back
    codes[1, 0, 4] = 1  # the first draw only
    for given in (codes, codes.tolist(), jnp.asarray(codes)):
        np.testing.assert_array_equal(diagnostics.never_moving(given), [True, True, False, False, False])


def test_never_moving_over_several_blocks(monkeypatch):
    monkeypatch.setattr(diagnostics.moves, "_BLOCK", 20)
    codes = np.random.default_rng(0).integers(0, 50, (3, 101, 6)) == 0
    codes[:, :, 4] = True
    expected = (codes == codes[:, :1]).all(axis=(0, 1))
    assert expected.tolist() == [False] * 4 + [True, False]
    np.testing.assert_array_equal(diagnostics.never_moving(codes), expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda: diagnostics.ess([]),
        lambda: diagnostics.ess(1.0),
        lambda: diagnostics.ess(np.zeros((2, 0))),
        lambda: diagnostics.ess(np.zeros(10, complex)),
        lambda: diagnostics.ess(["a", "b"]),
        lambda: diagnostics.split_rhat(np.zeros(10)),
        lambda: diagnostics.split_rhat(np.zeros((0, 10))),
        lambda: diagnostics.jump(BINARY, np.zeros(3, int)),
        lambda: diagnostics.jump(BINARY, np.zeros((1, 3), int)),
        lambda: diagnostics.jump(BINARY, np.full((2, 3), 2)),
        lambda: diagnostics.jump(BINARY, np.zeros((2, 4), int)),
        lambda: diagnostics.distance(BINARY, np.zeros((0, 3), int), np.zeros(3, int)),
        lambda: diagnostics.distance(BINARY, np.zeros((2, 3)), np.zeros(3, int)),
        lambda: diagnostics.distance(BINARY, np.zeros((2, 3), int), np.zeros((2, 3), int)),
        lambda: diagnostics.distance(BINARY, np.zeros((2, 3), int), [0, 0, -1]),
        lambda: diagnostics.acceptance_by_changes([], []),
        lambda: diagnostics.acceptance_by_changes([1, 2], [True]),
        lambda: diagnostics.acceptance_by_changes([-1], [True]),
        lambda: diagnostics.acceptance_by_changes([1.5], [True]),
        lambda: diagnostics.acceptance_by_changes([1], [np.nan]),
        lambda: diagnostics.never_moving(np.zeros((4, 3))),
        lambda: diagnostics.never_moving(np.zeros((4, 0, 3))),
    ],
)
def test_unusable_input_is_an_error_that_teaches(call):
    with pytest.raises(saltus.SaltusError, match=r"expected(.|\n)*found"):
        call()
