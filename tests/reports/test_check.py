"""`check` tells a good local model from a bad one, in words that help, and never shows a NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import saltus
from saltus.local import brute_force
from saltus.race.local_check import check
from saltus.race.local_check.fit import r_squared_of, spearman
from saltus.race.local_check.looking import choose_steps, single_site
from saltus.target import Point

RNG = np.random.default_rng(0)
D = 12
W = jnp.asarray(RNG.normal(size=D), jnp.float32)
A = jnp.asarray(RNG.normal(size=(D, D)) / 4, jnp.float32)


def family(params, s):
    """One program for many targets: a quadratic, and a value of its own where some sites sum to more than a limit."""
    f = params["scale"] * (s @ W + params["bend"] * s @ (A + A.T) @ s) + params["offset"]
    return jnp.where(jnp.sum(s * params["mask"]) > params["limit"], params["bad"], f)


def member(*, scale=1.0, bend=0.0, offset=0.0, bad=0.0, limit=1e9, sites=2, **options):
    mask = (np.arange(D) < sites).astype(np.float32)
    params = {"scale": scale, "bend": bend, "offset": offset, "bad": float(bad), "limit": float(limit), "mask": mask}
    return saltus.Target(family, saltus.Binary(D), params, **options)


def readable(found):
    text = str(found)
    assert "nan" not in text  # a number; the word is NaN
    assert max(map(len, text.splitlines())) <= 100
    assert text.splitlines()[-1].endswith(".")
    return " ".join(text.split())


def test_a_linear_target_is_predicted_perfectly_and_within_the_budget():
    found = check(member())
    assert found.trustworthy
    assert "Yes. The gradient predicts moves well (rank correlation 1.00" in readable(found)
    for fit in (found.random, found.typical):
        assert fit.num_states == 8
        assert fit.num_moves == 8 * D
        assert fit.rank_correlation == pytest.approx(1)
        assert fit.r_squared == pytest.approx(1)
        assert fit.zero_share == fit.far_off == fit.impossible == fit.undefined == fit.unpredicted == 0
        assert fit.largest_error < 1e-5
        assert fit.largest_change == pytest.approx(float(jnp.abs(W).max()), rel=1e-5)
        assert fit.nearby is None
    assert found.evaluations <= 4096


def test_exact_differences_are_so_by_construction_and_cheap_to_check():
    found = check(member(bend=1.0, bad=np.nan, limit=1.5, differences="exact"))
    assert found.trustworthy
    assert "Exact by construction" in readable(found)
    assert "log_prob is NaN or +inf after" in readable(found)
    assert found.typical.largest_error == 0
    assert found.evaluations <= 256


def test_the_same_seed_finds_the_same_and_another_looks_elsewhere():
    target = member(bend=1.0)
    assert check(target, seed=3) == check(target, seed=3)
    assert check(target, seed=3) != check(target, seed=4)
    assert check(target, seed=2**64 - 1) != check(target, seed=4)


def test_a_quadratic_with_curvature_of_its_own_is_predicted_well_but_not_perfectly():
    found = check(member(bend=0.5))
    assert found.trustworthy
    assert 0.8 < found.typical.rank_correlation < 1
    assert 0.01 < found.typical.largest_error < 3
    readable(found)


@pytest.mark.parametrize(("scale", "words"), [(1e30, "such moves are never made, or always"), (1e-30, "all but uniform")])
def test_scale_does_not_matter_to_the_numbers_and_is_named(scale, words):
    found = check(member(scale=scale))
    assert found.trustworthy
    assert found.typical.rank_correlation == pytest.approx(1)
    assert found.typical.r_squared == pytest.approx(1)
    assert words in readable(found)


def test_a_constant_is_called_one():
    found = check(member(scale=0.0, offset=3.0))
    assert found.trustworthy
    assert "log_prob is the same at every state looked at (3.00)" in readable(found)
    assert found.typical.rank_correlation is None


def test_changes_lost_in_rounding_are_not_judged():
    found = check(member(offset=1e9, scale=10.0))
    assert not found.trustworthy
    assert "lost in its rounding" in readable(found)
    assert found.typical.r_squared is None


def test_a_penalty_of_1e30_does_not_hide_the_other_moves():
    found = check(member(bad=-1e30, limit=1.5))
    assert found.trustworthy
    assert found.typical.rank_correlation > 0.8
    assert found.typical.largest_error > 1e29


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf], ids=str)
def test_bad_neighbours_are_left_out_and_counted(bad):
    found = check(member(bad=bad, limit=1.5), num_states=8)
    text = readable(found)
    assert found.trustworthy
    assert found.typical.rank_correlation == pytest.approx(1)
    if bad == -np.inf:
        assert found.random.impossible > 0
        assert found.random.undefined == 0
        assert "impossible (-inf) and were left out" in text
    else:
        assert found.random.undefined > 0
        assert found.random.impossible == 0
        assert "log_prob is NaN or +inf after" in text


@pytest.mark.parametrize(("bad", "words"), [(np.nan, "log_prob is NaN at all of 800 random"), (-np.inf, "pass initial=")])
def test_nowhere_to_look_is_said_and_no_error(bad, words):
    found = check(member(bad=bad, limit=-1))
    assert not found.trustworthy
    assert words in readable(found)
    assert found.typical.num_states == 0
    assert found.typical.rank_correlation is None


def test_states_may_be_given_where_random_ones_are_impossible():
    """One of twelve sites at most: chains stay inside the constraint, and single-site moves are judged there."""
    target = member(bad=-np.inf, limit=1.5, sites=D)
    for found in (check(target, initial=np.eye(D)[:3]), check(target.replace(initial=np.eye(D, dtype=int)[0]))):
        assert found.trustworthy
        assert found.typical.num_states == 8
        assert found.typical.impossible > 0
        assert "impossible (-inf) and were left out" in readable(found)


def test_a_constraint_that_no_single_site_move_respects_is_called_one():
    log_prob = lambda s: jnp.where(jnp.sum(s) == 3, s @ W, -jnp.inf)  # noqa: E731
    found = check(saltus.Target(log_prob, saltus.Binary(D)), initial=np.arange(D) < 3)
    assert not found.trustworthy
    assert "Every state one site away" in readable(found)


@pytest.mark.parametrize(
    "log_prob",
    [lambda s: jnp.sum(jnp.where(s.astype(int) == 1, W, 0)), lambda s: jnp.sum(jnp.stack([-W, W])[s.astype(int), jnp.arange(D)])],
    ids=["cast", "indexing"],
)
def test_a_blocked_gradient_is_seen_with_the_way_out(log_prob):
    found = check(saltus.Target(log_prob, saltus.Binary(D)), small=True)
    assert not found.trustworthy
    assert found.evaluations <= 256
    assert found.typical.zero_share == 1
    assert found.typical.rank_correlation == 0
    assert found.blind_sites == tuple(range(D))
    text = readable(found)
    assert f"The gradient is zero at {D} of {D} sites" in text
    assert "an integer cast, indexing" in text
    assert "target.replace(differences='exact')" in text


def test_some_blocked_sites_are_named():
    names = [f"x{i}" for i in range(D)]
    target = saltus.Target(lambda s: s[2:] @ W[2:] + 3 * jnp.sum(jnp.round(s[:2])), saltus.Binary(D), names=names)
    found = check(target)
    assert found.blind_sites == (0, 1)
    assert found.typical.zero_share == pytest.approx(2 / D)
    assert f"It is zero at 2 of {D} sites though log_prob changes there (x0, x1)" in readable(found)


def test_a_gradient_that_is_nan_is_not_trusted():
    found = check(saltus.Target(lambda s: jnp.sum(W * jnp.sqrt(s)), saltus.Binary(D)))
    assert not found.trustworthy
    assert found.typical.unpredicted > 0
    assert found.typical.undefined == 0
    text = readable(found)
    assert "The gradient is NaN or infinite at" in text
    assert "differences='exact'" in text


def test_sparse_regression_the_gradient_sees_the_prior_only():
    """A rough guide at typical states, as its docstring says: it orders moves, and explains nothing of their sizes."""
    target = saltus.targets.sparse_regression(num_appended=0)
    found = check(target, seed=1)
    assert 0.3 < found.typical.rank_correlation < 0.9
    assert found.typical.r_squared < 0.5
    assert found.typical.largest_error > 2
    assert found.typical.zero_share < 0.1
    assert "differences='exact'" in readable(found)


def test_a_slab_that_overshoots_is_not_trusted_though_it_ranks():
    """Terms that saturate, as in a marginal likelihood: their slopes at 0 are many times the true changes."""
    target = saltus.Target(lambda s: 4 * jnp.sum(jnp.log1p(jnp.exp(2 * W) * 40 * s)) - 16 * jnp.sum(s), saltus.Binary(D))
    found = check(target)
    assert not found.trustworthy
    assert found.typical.far_off >= 0.5
    assert "differences='exact'" in readable(found)


def wiggle(params, s):
    """Each site has a wiggle of its own between 0 and 1, which the gradient sees and no move does."""
    return jnp.sum(params["slopes"] * s + params["wiggles"] * jnp.sin(2 * jnp.pi * s) / (2 * jnp.pi))


@pytest.mark.parametrize("size", [0.5, 1.0])
@pytest.mark.parametrize("noise", [0.0, 0.8])
def test_worse_than_nothing_is_never_trusted_however_well_it_ranks(size, noise):
    """One verdict from one judgement, whether 768 moves are looked at or, as a race does, 48."""
    wiggles = size * (W + noise * np.random.default_rng(1).normal(size=D))
    target = saltus.Target(wiggle, saltus.Binary(D), {"slopes": 0.3 * W, "wiggles": jnp.asarray(wiggles, jnp.float32)})
    for found in (check(target), check(target, small=True)):
        assert found.typical.rank_correlation >= 0.5
        assert found.typical.far_off < 0.5
        assert found.typical.r_squared < 0
        assert not found.trustworthy
        assert "No. The gradient ranks moves" in readable(found)
        assert "worse than none" in readable(found)
        assert "little is lost" not in readable(found)


def test_far_from_quadratic_is_a_bad_guide():
    w = jnp.asarray(4 * RNG.normal(size=(4, 6, 4)), jnp.float32)
    found = check(saltus.Target(lambda s: 4 * jnp.sum(jnp.sin(jnp.sum(w * s, axis=(1, 2)))), saltus.Categorical(6, 4)))
    assert not found.trustworthy
    assert found.typical.r_squared < 0
    assert "target.replace(differences='exact') (19 evaluations a step), or saltus.Gibbs()" in readable(found)


def test_one_hot_states_are_predicted():
    table = jnp.asarray(RNG.normal(size=(5, 4)), jnp.float32)
    found = check(saltus.Target(lambda s: jnp.sum(table * s), saltus.Categorical(5, 4)))
    assert found.trustworthy
    assert found.typical.num_moves == 8 * 5 * 3
    assert found.typical.r_squared == pytest.approx(1)
    readable(found)


def test_distant_values_do_not_condemn_a_gradient_that_is_right_nearby():
    """One site of 5000 values, a parabola: a step away the slope is right, across the space it is not."""
    found = check(saltus.Target(lambda s: -(((s[0] - 3000) / 50) ** 2), saltus.Ordinal(1, np.arange(5000.0))))
    assert found.trustworthy
    assert found.typical.num_moves == 8 * 96
    assert found.typical.nearby.rank_correlation > 0.95
    assert found.typical.rank_correlation < 0.8
    text = readable(found)
    assert "moves of one hop well" in text
    assert "steps will have to be small" in text


def test_one_site_of_two_values():
    found = check(saltus.Target(lambda s: 2 * s[0], saltus.Binary(1)))
    assert found.trustworthy
    assert found.random.num_moves == 8
    readable(found)


def test_hessian_diag_is_exact_on_a_quadratic_and_looks_at_fewer_states_where_it_is_dear():
    space = saltus.Ordinal(300, [0.0, 1.0, 2.5])
    found = check(saltus.Target(lambda s: jnp.sum(s[1:] * s[:-1] - s[1:] ** 2), space, differences="hessian_diag"))
    assert found.trustworthy
    assert found.typical.r_squared == pytest.approx(1, abs=1e-4)
    assert found.typical.num_states == 1
    readable(found)


CLOSED = saltus.Differences(lambda params, s, codes: jnp.stack([0 * W, W], axis=1), exact=True)
ROUGH = saltus.Differences(CLOSED.fn)


def paired(params, s):
    return s @ W + params * s[0] * s[1]


@pytest.mark.parametrize(("exact", "pair"), [(True, 0.0), (True, 1.0), (False, 1.0)], ids=["right", "wrong", "approximate"])
def test_closed_forms_are_compared_too(exact, pair):
    target = saltus.Target(paired, saltus.Binary(D), pair, differences=CLOSED if exact else ROUGH, verify=False)
    found = check(target)
    assert found.trustworthy == (not exact or pair == 0)
    words = "exact, as declared" if pair == 0 else "declared exact and are not" if exact else "The closed form predicts moves well"
    assert words in readable(found)
    assert found.typical.largest_error == pytest.approx(pair, abs=1e-5)


def test_the_library_s_ising_model_is_exact():
    found = check(saltus.targets.ising((4, 4), 0.4))
    assert found.trustworthy
    assert found.random.rank_correlation == pytest.approx(1)
    assert found.random.zero_share == 0  # many true changes are 0 up to rounding


def test_numbers_agree_with_brute_force_over_the_whole_space():
    space = saltus.Ordinal(2, [0.0, 1.0, 3.0])
    target = saltus.Target(lambda s: jnp.sin(3 * s[0] + s[1]) + s[0] * s[1] ** 2, space)
    found = check(target, num_states=64, num_moves=8)  # nine states: all of them are among 64

    @jax.jit
    @jax.vmap
    def tables(codes):
        x = target.point(codes)
        true = brute_force(target, codes, x.log_prob, jnp.arange(2))[0] - x.log_prob
        predicted = [target.moves(x).each(jnp.full(2, v)) for v in range(3)]
        return true, jnp.stack(predicted, axis=1)

    true, predicted = (np.asarray(x) for x in tables(space.enumerate()))
    assert found.random.largest_change == pytest.approx(np.abs(true).max(), rel=1e-4)
    assert found.random.largest_error == pytest.approx(np.abs(true - predicted).max(), rel=1e-4)
    assert found.random.num_moves == 64 * 4


def test_ranks_and_r_squared_are_the_textbook_ones():
    t, none = RNG.normal(size=50).round(1), np.zeros(50)
    p = (t + RNG.normal(size=50)).round(1)
    assert spearman(t, p, none, none) == pytest.approx(stats.spearmanr(t, p)[0])
    assert r_squared_of(t, p, none) == pytest.approx(1 - np.mean((t - p) ** 2) / t.var())


def test_the_walk_to_typical_states_leaves_the_target_invariant():
    f, num = np.array([0.0, 1.5, -1.0, 0.5, 2.0, -0.5]), 2**14
    space = saltus.Ordinal(1, np.arange(6.0))
    target = saltus.Target(lambda s: jnp.interp(s[0], jnp.arange(6.0), jnp.asarray(f, jnp.float32)), space)
    p = np.exp(f) / np.exp(f).sum()
    rng = np.random.default_rng(1)
    codes = jnp.asarray(rng.choice(6, size=(num, 1), p=p), jnp.int32)
    x = jax.vmap(lambda c: Point(c, target.value(c)))(codes)
    step = jax.jit(jax.vmap(lambda x, *move: single_site(target, x, *move)))
    for move in zip(*choose_steps(space, {"num_steps": 3, "num_states": num}, rng), strict=True):
        x = step(x, *move)
    assert (np.asarray(x.codes) != np.asarray(codes)).mean() > 0.3
    assert stats.chisquare(np.bincount(np.asarray(x.codes)[:, 0], minlength=6), num * p).pvalue > 1e-6


def test_x64_sees_what_float32_rounds_away():
    with jax.enable_x64(True):
        target = saltus.Target(lambda s: jnp.sum(s * jnp.arange(1.0, 5.0)) + 1e8, saltus.Binary(4))
        found = check(target)
    assert found.trustworthy
    assert found.typical.rank_correlation == pytest.approx(1)


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (saltus.RunError, {"seed": -1}),
        (saltus.RunError, {"seed": 0.5}),
        (saltus.RunError, {"num_states": 0}),
        (saltus.RunError, {"num_moves": 2.5}),
        (saltus.RunError, {"num_steps": True}),
        (saltus.RunError, {"small": 1}),
        (saltus.SpaceError, {"initial": np.full(D, 2)}),
        (saltus.SpaceError, {"initial": np.zeros((0, D))}),
        (saltus.SpaceError, {"initial": np.zeros(D + 1)}),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(error, arguments):
    with pytest.raises(error, match="expected"):
        check(member(), **arguments)


def test_what_is_no_target_and_a_start_that_is_impossible_are_refused():
    with pytest.raises(saltus.TargetError, match="not a target"):
        check(lambda s: 0.0)
    with pytest.raises(saltus.SpaceError, match="not a possible start"):
        check(member(bad=-np.inf, limit=1.5), initial=np.ones(D))
