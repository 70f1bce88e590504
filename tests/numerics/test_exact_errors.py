"""The error metrics: against their definitions written as loops, in chunks, at 10^7 draws; planted bugs are seen."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus import diagnostics
from saltus._record import changed
from saltus.diagnostics import DistanceSeries, Tally
from saltus.errors import SaltusError, SpaceError

GRID = saltus.Ordinal(4, [-1.0, 0.0, 0.5, 4.0])
SPACES = [saltus.Binary(4), saltus.Spin(4), GRID, saltus.Categorical(4, 3), saltus.Clock(4, 5)]
NUMERIC = [space for space in SPACES if space.numeric]
PAIRS = [saltus.Binary(4), saltus.Spin(4), saltus.Ordinal(4, [-3.0, 0.5])]


def draws(space, chains=3, num=50, seed=0):
    """Codes whose sites depend on each other and differ in their marginals."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, space.num_values, (chains, num, space.num_sites))
    return np.where(rng.random(codes.shape) < 0.5, codes[..., :1], codes * (np.arange(space.num_sites) % 2))


def tally_of(space, codes):
    return Tally.empty(space, len(codes)).add(codes)


# ---- Tally -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_chunks_of_any_size_and_type_give_the_same_tally(space):
    codes = draws(space)
    whole = tally_of(space, codes)
    assert whole.num_draws == 50
    for sizes, dtype in (([1] * 50, np.int8), ([7, 40, 3], np.uint8), ([20, 30], np.uint64)):
        parts = Tally.empty(space, 3)
        for chunk in np.split(codes.astype(dtype), np.cumsum(sizes)[:-1], axis=1):
            parts = parts.add(chunk)
        np.testing.assert_array_equal(parts.counts, whole.counts)
        if space.numeric:
            np.testing.assert_allclose(parts.products, whole.products, rtol=1e-14)
    np.testing.assert_array_equal(tally_of(space, jnp.asarray(codes, jnp.int32)).counts, whole.counts)


def test_a_tally_is_immutable_and_a_tree():
    empty = Tally.empty(GRID, 3)
    full = empty.add(draws(GRID))
    assert (empty.num_draws, full.num_draws) == (0, 50)
    doubled = jax.tree.map(lambda a, b: a + b, full, full)
    assert doubled.num_draws == 100
    np.testing.assert_allclose(doubled.covariances, full.covariances, atol=1e-12)
    with pytest.raises(AttributeError):
        full.counts = empty.counts


@pytest.mark.parametrize("space", NUMERIC, ids=str)
def test_means_and_covariances_are_those_of_numpy(space):
    codes = draws(space)
    tally, s = tally_of(space, codes), space.values[codes]
    np.testing.assert_allclose(tally.means, s.mean(axis=1), atol=1e-12)
    for found, chain in zip(tally.covariances, s, strict=True):
        np.testing.assert_allclose(found, np.cov(chain.T, bias=True), atol=1e-12)


def test_dividing_by_one_less_would_be_seen():
    s = GRID.values[draws(GRID)]
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(tally_of(GRID, draws(GRID)).covariances[0], np.cov(s[0].T), rtol=1e-3)


def test_an_offset_of_the_grid_costs_no_digits():
    codes = draws(GRID)
    far = saltus.Ordinal(4, GRID.values + 1e7)
    np.testing.assert_allclose(tally_of(far, codes).covariances, tally_of(GRID, codes).covariances, atol=1e-7)


def test_ten_million_draws_lose_nothing():
    """In float32 a count stops at 2^24: one more draw would change nothing."""
    space, codes = saltus.Binary(2), np.array([[[1, 0]], [[1, 1]]])
    one = tally_of(space, codes)
    many = changed(one, counts=one.counts * 10**8, products=one.products * 10**8)
    more = many.add(np.zeros((2, 1, 2), int))
    assert more.num_draws == 10**8 + 1
    np.testing.assert_allclose(1 - more.means[:, 0], 1 / (10**8 + 1), rtol=1e-7)
    assert more.products[1, 0, 1] == 10**8
    assert np.float32(10**8) + np.float32(1) == np.float32(10**8)
    np.testing.assert_allclose(more.covariances[1], np.full((2, 2), 1e-8), rtol=1e-6)


# ---- marginals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("direction", ["p||q", "q||p"])
def test_exact_frequencies_have_no_divergence(space, direction):
    tally = tally_of(space, np.repeat(np.asarray(space.enumerate())[None], 2, axis=0))
    uniform = np.full((space.num_sites, space.num_values), 1 / space.num_values)
    np.testing.assert_allclose(diagnostics.marginal_kl(tally, uniform, direction), [0, 0], atol=1e-12)


def kl_by_loops(tally, p, swapped=False):
    found = []
    for counts in tally.counts:
        total = 0.0
        for p_i, n_i in zip(p, counts, strict=True):
            q_i = (n_i + 1e-5) / (n_i + 1e-5).sum()
            a, b = (q_i, p_i) if swapped else (p_i, q_i)
            total += sum(x * np.log(x / y) for x, y in zip(a, b, strict=True) if x > 0)
        found.append(total / len(p))
    return found


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_kl_is_its_definition_in_both_directions(space):
    tally = tally_of(space, draws(space, num=12))
    p = np.random.default_rng(5).dirichlet(np.ones(space.num_values), space.num_sites)
    forward, backward = (diagnostics.marginal_kl(tally, p, direction) for direction in ("p||q", "q||p"))
    np.testing.assert_allclose(forward, kl_by_loops(tally, p), rtol=1e-10)
    np.testing.assert_allclose(backward, kl_by_loops(tally, p, swapped=True), rtol=1e-10)
    assert (np.abs(forward - backward) > 0.01).all()  # so a swapped direction is seen
    np.testing.assert_array_equal(diagnostics.marginal_kl(tally, p), forward)


def test_values_never_visited_dominate_one_direction_only():
    space = saltus.Binary(2)
    tally, p = tally_of(space, np.zeros((1, 1000, 2), int)), np.full((2, 2), 0.5)
    expected = 0.5 * np.log(0.5) + 0.5 * np.log(0.5 * (1000 + 2e-5) / 1e-5)
    np.testing.assert_allclose(diagnostics.marginal_kl(tally, p), expected, rtol=1e-6)
    np.testing.assert_allclose(diagnostics.marginal_kl(tally, p, "q||p"), np.log(2), rtol=1e-6)
    impossible = np.array([[0.5, 0.5], [0.0, 1.0]])
    assert diagnostics.marginal_kl(tally, impossible, "q||p") == np.inf
    assert np.isfinite(diagnostics.marginal_kl(tally, impossible))


def test_covariance_and_marginal_errors_are_their_definitions():
    codes = draws(GRID)
    tally, s = tally_of(GRID, codes), GRID.values[codes]
    truth, means = np.diag([1.0, 2.0, 3.0, 4.0]), np.array([0.1, 0.2, 0.3, 0.4])
    expected = [np.sqrt(((np.cov(chain.T, bias=True) - truth) ** 2).sum()) for chain in s]
    np.testing.assert_allclose(diagnostics.covariance_error(tally, truth), expected, rtol=1e-10)
    errors = np.abs(s.mean(axis=1) - means)
    np.testing.assert_allclose(diagnostics.marginal_error(tally, means), errors.mean(axis=1), rtol=1e-10)
    np.testing.assert_allclose(diagnostics.marginal_error(tally, means, [3, 1]), errors[:, [3, 1]].mean(axis=1), rtol=1e-10)


# ---- pairs -----------------------------------------------------------------------------------------------------


def pairwise_by_loops(codes, table, domain, sites, leave_out_diagonal=False):
    pairs = list(itertools.product(sites, sites))
    if domain == "code":
        pairs = [(i, j) for a, i in enumerate(sites) for j in sites[a + leave_out_diagonal :]]
    found = []
    for chain in codes:
        total = 0.0
        for (i, j), k, l in itertools.product(pairs, (0, 1), (0, 1)):
            total += abs(np.mean((chain[:, i] == k) & (chain[:, j] == l)) - table[i, j, k, l])
        found.append(total / len(pairs))
    return found


def pair_table_of(codes):
    table = np.empty((codes.shape[-1],) * 2 + (2, 2))
    for i, j, k, l in np.ndindex(*table.shape):
        table[i, j, k, l] = np.mean((codes[..., i] == k) & (codes[..., j] == l))
    return table


@pytest.mark.parametrize("space", PAIRS, ids=str)
@pytest.mark.parametrize("domain", ["code", "paper"])
@pytest.mark.parametrize("sites", [None, [0, 2, 3]])
def test_pairwise_error_is_its_definition(space, domain, sites):
    codes, table = draws(space), pair_table_of(draws(space, seed=9))
    found = diagnostics.pairwise_error(tally_of(space, codes), table, domain, sites)
    np.testing.assert_allclose(found, pairwise_by_loops(codes, table, domain, sites or [0, 1, 2, 3]), rtol=1e-10)
    if domain == "code":
        planted = pairwise_by_loops(codes, table, domain, sites or [0, 1, 2, 3], leave_out_diagonal=True)
        assert (np.abs(found - planted) > 1e-3).any()


def test_a_transposed_table_would_be_seen():
    space, codes = saltus.Binary(4), draws(saltus.Binary(4))
    table = pair_table_of(draws(space, seed=9))
    tally = tally_of(space, codes)
    right, wrong = (diagnostics.pairwise_error(tally, t) for t in (table, table.transpose(0, 1, 3, 2)))
    assert (np.abs(right - wrong) > 1e-3).any()


def test_the_domains_have_210_and_400_pairs_of_20_sites():
    """A table that is wrong at one pair (0, 1), in both orders, by 1 in all: each domain dilutes it by its own number of pairs."""
    space = saltus.Binary(20)
    codes = np.random.default_rng(0).integers(0, 2, (1, 100, 20))
    table = pair_table_of(codes)
    table[0, 1] += 0.25
    table[1, 0] += 0.25
    tally = tally_of(space, codes)
    np.testing.assert_allclose(diagnostics.pairwise_error(tally, table), 1 / 210, rtol=1e-10)
    np.testing.assert_allclose(diagnostics.pairwise_error(tally, table, "paper"), 2 / 400, rtol=1e-10)


# ---- truth -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_exact_moments_are_sums_over_all_states(space):
    target = saltus.testing.rugged(space)
    moments, p = saltus.testing.exact_moments(target), saltus.testing.stationary(target)
    codes = np.asarray(space.enumerate())
    expected = [[p[codes[:, i] == v].sum() for v in range(space.num_values)] for i in range(4)]
    np.testing.assert_allclose(moments.marginals, expected, atol=1e-12)
    if not space.numeric:
        assert moments.means is moments.covariance is moments.pair_table is None
        return
    np.testing.assert_allclose(moments.means, p @ space.values[codes], atol=1e-12)
    np.testing.assert_allclose(moments.covariance, np.cov(space.values[codes].T, bias=True, aweights=p), atol=1e-12)
    assert (moments.pair_table is None) == (space.num_values > 2)
    if moments.pair_table is not None:
        for i, j, k, l in np.ndindex(4, 4, 2, 2):
            np.testing.assert_allclose(moments.pair_table[i, j, k, l], p[(codes[:, i] == k) & (codes[:, j] == l)].sum(), atol=1e-12)


def test_exact_moments_of_a_product():
    space = saltus.Product(b=saltus.Binary(2), a=saltus.Ordinal(1, [0.1, 0.3, 1.0]))
    moments = saltus.testing.exact_moments(saltus.Target(lambda s: s["a"].sum() + s["b"].sum(), space))
    weights = np.exp([0.1, 0.3, 1.0]) / np.exp([0.1, 0.3, 1.0]).sum()
    np.testing.assert_allclose(moments.means, [np.e / (1 + np.e)] * 2 + [weights @ [0.1, 0.3, 1.0]], atol=1e-7)
    assert moments.pair_table is None


def test_the_truth_of_the_regression_is_that_of_its_enumeration():
    with jax.enable_x64(True):
        target = saltus.targets.sparse_regression(num_copies=2, num_appended=1)
        moments = saltus.testing.exact_moments(target)
    np.testing.assert_allclose(target.truth.means, moments.means, atol=1e-8)
    np.testing.assert_allclose(target.truth.pair_table, moments.pair_table, atol=1e-8)


def test_independent_draws_approach_every_truth():
    """Errors of exact draws fall as 1/sqrt(N); those of a wrong model do not."""
    target = saltus.targets.polynomial_mixture(2)
    codes = target.truth.sample(jax.random.key(0), 40_000).reshape(4, 10_000, 20)
    few, many = tally_of(target.space, codes[:, :100]), tally_of(target.space, codes)
    for metric, truth in ((diagnostics.covariance_error, target.truth.covariance), (diagnostics.marginal_error, target.truth.mean)):
        assert metric(many, truth).mean() < 0.3 * metric(few, truth).mean()
    # The expected divergence of N independent draws is (k - 1) / 2N, once every value has been seen.
    assert diagnostics.marginal_kl(many, target.truth.marginals).mean() < 0.01
    assert diagnostics.marginal_kl(many, np.full((20, 50), 0.02)).mean() > 0.1


# ---- effective sample size of the distance ---------------------------------------------------------------------


def autoregression(phi, shape, seed=0):
    noise = np.random.default_rng(seed).normal(size=shape)
    x = noise / np.sqrt(1 - phi**2)
    for n in range(1, shape[-1]):
        x[..., n] = phi * x[..., n - 1] + noise[..., n]
    return x


@pytest.mark.parametrize(
    ("phi", "num_draws", "mean", "deviation"),
    [(0.0, 10**5, 1 / 0.99, 0.014), (0.0, 10**3, 1 / 0.95, 0.1), (0.9, 10**5, 19.3, 0.8), (0.9, 10**3, 18.9, 5.4)],
)
def test_ess_of_noise_and_of_autoregressions(phi, num_draws, mean, deviation):
    """N/ESS against values found independently (mean and deviation over chains), to four standard errors of both means."""
    chains = 40
    tau = num_draws / diagnostics.distance_ess(autoregression(phi, (chains, num_draws)))
    assert abs(tau.mean() - mean) < 4 * np.sqrt(2) * deviation / np.sqrt(chains) + 0.006 * mean
    assert 0.5 * deviation < tau.std(ddof=1) < 2 * deviation


def test_distance_ess_is_the_ess_of_the_distance():
    codes = draws(GRID, num=200)
    series = np.asarray(diagnostics.distance(GRID, codes, codes[0, 0]), np.float64)
    expected = diagnostics.ess(series)
    np.testing.assert_allclose(diagnostics.distance_ess(codes, GRID, codes[0, 0]), expected, rtol=1e-10)
    np.testing.assert_allclose(diagnostics.distance_ess(series), expected, rtol=1e-10)


def test_a_constant_chain_counts_nothing():
    codes = draws(GRID, num=200)
    codes[1] = codes[1, :1]
    found = diagnostics.distance_ess(codes, GRID, codes[0, 0])
    assert found[1] == 0
    assert (found[[0, 2]] > 1).all()
    np.testing.assert_array_equal(DistanceSeries(GRID, codes[0, 0]).add(codes).ess(), found)


def slow_codes(num_draws, chains=8):
    """Binary chains that resample one of twenty sites a step: t has an autocorrelation time of 39 steps."""
    rng = np.random.default_rng(3)
    state = rng.integers(0, 2, (chains, 20))
    codes = np.empty((chains, num_draws, 20), np.int8)
    for n in range(num_draws):
        state[np.arange(chains), rng.integers(0, 20, chains)] = rng.integers(0, 2, chains)
        codes[:, n] = state
    return codes


def test_a_thinned_series_is_every_nth_draw_whatever_the_chunks():
    space, codes = saltus.Binary(20), slow_codes(1000)
    reference = codes[0, 0]
    t = np.asarray(diagnostics.distance(space, codes, reference))
    for sizes in ([1000], [1] * 1000, [300, 1, 699], [64, 64, 872]):
        series = DistanceSeries(space, reference, capacity=100)
        for chunk in np.split(codes, np.cumsum(sizes)[:-1], axis=1):
            series = series.add(chunk)
        assert (series.num_draws, series.stride) == (1000, 16)
        np.testing.assert_array_equal(series.values, t[:, ::16])


def test_a_thinned_series_has_nearly_the_ess_of_the_whole():
    space, codes = saltus.Binary(20), slow_codes(20_000)
    whole = DistanceSeries(space, codes[0, 0], capacity=20_000).add(codes)
    thinned = DistanceSeries(space, codes[0, 0], capacity=2500).add(codes)
    assert (whole.stride, thinned.stride) == (1, 8)
    np.testing.assert_allclose(whole.ess().mean(), 20_000 / 39, rtol=0.1)
    np.testing.assert_allclose(thinned.ess().mean(), whole.ess().mean(), rtol=0.05)
    far_thinned = DistanceSeries(space, codes[0, 0], capacity=200).add(codes)
    assert far_thinned.ess().mean() < 0.6 * whole.ess().mean()


def test_mean_and_error():
    x = np.array([1.0, 2.0, 6.0])
    mean, error = diagnostics.mean_and_error(x)
    assert mean == 3
    np.testing.assert_allclose(error, np.sqrt(7 / 3))
    mean, error = diagnostics.mean_and_error(np.stack([x, 2 * x], axis=1))
    np.testing.assert_allclose(error, np.sqrt([7 / 3, 28 / 3]))
    assert np.isnan(diagnostics.mean_and_error([2.0])[1])


# ---- bad input -------------------------------------------------------------------------------------------------

BINARY, ONE_HOT = (tally_of(space, draws(space)) for space in (SPACES[0], SPACES[3]))
ORDINAL = tally_of(GRID, draws(GRID))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Tally.empty("Binary", 3), "`space` is not a space"),
        (lambda: Tally.empty(GRID, 0), "`num_chains` is not usable"),
        (lambda: BINARY.add(draws(SPACES[0], chains=2)), r"expected  shape \(3, draws, 4\)\n  found     shape \(2, 50, 4\)"),
        (lambda: BINARY.add(draws(SPACES[0])[0]), r"codes of shape \(chain, draw, site\)"),
        (lambda: BINARY.add(draws(SPACES[0]) + 1), "not codes of Binary"),
        (lambda: BINARY.add(draws(SPACES[0]) * 1.0), "encode"),
        (lambda: Tally.empty(GRID, 3).means, "empty.*\n.*\n  hint      tally = tally.add"),
        (lambda: diagnostics.marginal_kl(Tally.empty(GRID, 3), np.full((4, 4), 0.25)), "The tally is empty"),
        (lambda: ONE_HOT.covariances, "Categories and directions have no covariance(.|\n)*Categorical(.|\n)*marginal_kl"),
        (lambda: diagnostics.covariance_error(ONE_HOT, np.eye(4)), "Categories and directions have no covariance"),
        (lambda: diagnostics.marginal_error(ONE_HOT, np.zeros(4)), "Categories and directions have no means"),
        (lambda: diagnostics.pairwise_error(ORDINAL, np.zeros((4, 4, 2, 2))), "Pairs are those of two values"),
        (lambda: diagnostics.pairwise_error(BINARY, np.zeros((4, 4))), r"`pair_table` does not fit(.|\n)*\(4, 4, 2, 2\)"),
        (lambda: diagnostics.pairwise_error(BINARY, np.zeros((4, 4, 2, 2)), "all"), "`domain` is not known"),
        (lambda: diagnostics.pairwise_error(BINARY, np.zeros((4, 4, 2, 2)), sites=[0, 4]), "`sites` are not sites"),
        (lambda: diagnostics.marginal_error(BINARY, np.zeros(4), sites=[1, 1]), "`sites` are not sites"),
        (lambda: diagnostics.marginal_error(BINARY, [0, 0, 0, np.nan]), "1 entries that are not finite"),
        (lambda: diagnostics.marginal_kl(BINARY, np.ones((4, 2))), "`marginals` are not probabilities"),
        (lambda: diagnostics.marginal_kl(BINARY, np.full((4, 2), 0.5), "forward"), r"'p\|\|q' or 'q\|\|p'"),
        (lambda: diagnostics.distance_ess(draws(GRID)), "Codes alone have no distance"),
        (lambda: diagnostics.distance_ess(np.zeros(10)), r"floats \(chain, draw\)"),
        (lambda: DistanceSeries(GRID, [0, 0, 0]), "Ordinal"),
        (lambda: DistanceSeries(GRID, [0, 0, 0, 0], capacity=1), "`capacity` is not usable"),
        (lambda: DistanceSeries(GRID, [0, 0, 0, 0]).ess(), "The series is empty"),
        (lambda: DistanceSeries(GRID, [0] * 4).add(draws(GRID)).add(draws(GRID, chains=2)), r"\(3, draws, 4\)"),
        (lambda: DistanceSeries(GRID, [0] * 4).add(draws(GRID)[0]), r"\(chains, draws, 4\)"),
        (lambda: diagnostics.mean_and_error(1.0), "one number per chain"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises((SaltusError, SpaceError), match=words):
        call()
