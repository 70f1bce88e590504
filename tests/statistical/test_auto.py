"""`saltus.sample(target, seed=0)`: converges, says which sampler and why, and is frozen before the first kept draw."""

import json
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.diagnostics.worth import Worth, series, worth
from saltus.race.contest import Contest, Entry
from saltus.race.entrants import Entrant, find_entrants
from saltus.race.trial_run import TrialRun

W = jnp.asarray(np.random.default_rng(0).normal(size=20))


def everything_agrees(run, space):
    """R-hat of the energy and of distances from a state of each chain is below 1.01."""
    codes = np.asarray(space.encode(run.posterior.s.values)).swapaxes(0, 1)
    return worth(series(space, codes, run.sample_stats.lp.values.T, codes[len(codes) // 2])).rhat < 1.01


def errors_in_standard_errors(run, exact, rarely=20):
    """|mean - exact| over its Monte-Carlo error. Sites that changed less than `rarely` have no error to speak of, but must
    be where they belong: within 1 % of the largest distance between values."""
    x = run.posterior.s.values.astype(np.float64)
    effective = saltus.diagnostics.ess(x.swapaxes(1, 2)).sum(axis=0)
    spread, error = x.reshape(-1, x.shape[-1]).std(axis=0), np.abs(x.mean(axis=(0, 1)) - exact)
    varies = (x[:, 1:] != x[:, :-1]).sum(axis=(0, 1)) >= rarely
    assert (error[~varies] <= 0.01 * max(np.ptp(x), 1)).all()
    return (error * np.sqrt(effective) / np.where(spread > 0, spread, 1))[varies]


TARGETS = {
    "ising": (lambda: saltus.targets.ising((10, 10), 0.4), lambda t: np.zeros(100)),
    "poly2": (lambda: saltus.targets.polynomial_mixture(2, 20), lambda t: t.truth.mean),
    "regression": (lambda: saltus.targets.sparse_regression(), lambda t: t.truth.marginals),
}


@pytest.mark.parametrize("name", list(TARGETS))
def test_one_line_converges(name):
    make, truth = TARGETS[name]
    target = make()
    run = saltus.sample(target, seed=0, progress=False)
    assert everything_agrees(run, target.space)
    z = errors_in_standard_errors(run, truth(target))
    assert z.max() < 4.5  # of at most a hundred sites: p < 1e-3
    assert min(saltus.summary(run).ess.values()) > 400
    if name == "ising":  # the exact correlation of neighbours (Kaufman 1949)
        s = run.posterior.s.values.reshape(4, 1000, 10, 10).astype(float)
        edge = (s * np.roll(s, 1, axis=3)).mean(axis=(2, 3))
        effective = saltus.diagnostics.ess(edge).sum()
        assert abs(edge.mean() - 0.59255) < 4 * edge.std() / np.sqrt(effective)


@pytest.mark.full
def test_where_it_does_not_converge_it_says_so():
    target = saltus.targets.polynomial_mixture(4, 20)
    run = saltus.sample(target, seed=0, progress=False)
    assert everything_agrees(run, target.space) or saltus.summary(run).doubts
    assert errors_in_standard_errors(run, target.truth.mean).max() < 4.5


@pytest.fixture(scope="module")
def small():
    target = saltus.testing.rugged(saltus.Binary(5))
    return target, saltus.sample(target, num_draws=200, num_warmup=200, seed=0, progress=False)


def test_the_frozen_kernel_is_certified(small):
    target, run = small
    saltus.testing.check_kernel(saltus.kernel_of(run), target)


def test_kernel_and_start_reproduce_the_draws(small, tmp_path):
    """Which is also the proof that nothing about the kernel changes after the freeze."""
    target, run = small
    for same in (run, _from_disk(run, tmp_path)):
        again = saltus.sample(
            target,
            saltus.kernel_of(same),
            num_draws=200,
            num_warmup=200,
            initial=same["start"].s.values,
            thin=same.attrs["thin"],
            seed=0,
            progress=False,
        )
        assert np.array_equal(again.posterior.s, run.posterior.s)
        assert np.array_equal(again.sample_stats.lp, run.sample_stats.lp)


def _from_disk(run, folder):
    run.to_netcdf(folder / "run.nc")
    return saltus.open(folder / "run.nc")


@pytest.mark.filterwarnings("ignore:The gradient is a bad guide")
def test_a_repeated_call_and_resume_go_on_from_the_freeze(tmp_path):
    target = saltus.testing.rugged(saltus.Binary(5))
    settings = dict(num_draws=200, num_warmup=200, seed=0, progress=False)
    whole = saltus.sample(target, checkpoint=tmp_path / "c", **settings)
    kernel, start = saltus.kernel_of(whole), whole["start"].s.values
    part = saltus.sample(
        target, kernel, initial=start, thin=whole.attrs["thin"], checkpoint=tmp_path / "d", store=tmp_path / "d.zarr", **settings
    )
    for again in (saltus.sample(target, checkpoint=tmp_path / "c", **settings), saltus.resume(tmp_path / "c", target)):
        assert np.array_equal(again.posterior.s, whole.posterior.s)
        assert again.attrs["race"] == whole.attrs["race"]
    assert np.array_equal(part.posterior.s, whole.posterior.s)
    assert np.array_equal(saltus.open(tmp_path / "d.zarr")["start"].s, start)


def test_the_result_tells_the_race(small):
    _, run = small
    table = saltus.race_of(run)
    assert sum(row.chosen for row in table.rows) == 1
    assert [row.sampler for row in table.rows] == ["Gibbs(systematic)"]  # fast enough: no other is worth compiling
    assert "were not needed" in run.attrs["tuning"]
    assert "R-hat" in str(table)
    assert "chosen" in str(table)
    assert repr(saltus.kernel_of(run)) in run.attrs["tuning"]
    assert "evaluations of log_prob" in run.attrs["tuning"]
    assert json.loads(run.attrs["race"])
    assert "steps" in run.attrs["thinning"]
    with pytest.raises(saltus.SaltusError, match="has no race"):
        saltus.race_of(saltus.sample(small[0], saltus.Gibbs(), num_draws=5, num_warmup=5, progress=False))


@pytest.fixture
def all_enter(monkeypatch):
    """However short the run, every sampler is worth a try."""
    monkeypatch.setattr("saltus.race.contest._SAVED", 1e9)


def test_a_useless_gradient_is_seen_and_left_out(all_enter):
    target = saltus.Target(lambda s: jnp.sum(W * (2 * s.astype(jnp.int32) - 1)), saltus.Binary(20), structure=None)
    run = saltus.sample(target, seed=0, num_draws=500, num_warmup=200, progress=False)
    assert "gradient is zero at 20 of 20 sites" in run.attrs["tuning"]
    raced = [row.sampler for row in saltus.race_of(run).rows]
    assert raced.index("NCG by exact differences") < raced.index("NCG")
    exact = 1 / (1 + np.exp(-2 * np.asarray(W)))
    assert errors_in_standard_errors(run, exact).max() < 4.5


def test_a_named_sampler_is_warned_about_a_useless_gradient():
    target = saltus.Target(lambda s: jnp.sum(W[:6] * s.astype(jnp.int32)), saltus.Binary(6))
    with pytest.warns(UserWarning, match="gradient is zero at 6 of 6 sites") as caught:
        saltus.sample(target, saltus.NCG(1.0), num_draws=5, num_warmup=5, progress=False)
    assert caught[0].filename == __file__
    quiet = saltus.Target(lambda s: jnp.sum(W[:6] * s), saltus.Binary(6))
    warnings.simplefilter("error")  # until the end of this test
    warnings.simplefilter("ignore", saltus.ConvergenceWarning)  # of five draws
    for trusted, kernel in ((quiet, saltus.NCG(1.0)), (target, saltus.Gibbs()), (target, saltus.Informed(saltus.NCG(1.0)))):
        saltus.sample(trusted, kernel, num_draws=5, num_warmup=5, progress=False)


ODD = {
    "constant": (lambda s: 0.0 * jnp.sum(s), saltus.Binary(6)),
    "one site": (lambda s: jnp.sum(s), saltus.Spin(1)),
    "enormous": (lambda s: 1e30 * jnp.sum(s), saltus.Spin(5)),
    "tiny": (lambda s: 1e-30 * jnp.sum(s), saltus.Spin(5)),
    "mostly impossible": (lambda s: jnp.where(jnp.sum(s) > 7, jnp.sum(s), -jnp.inf), saltus.Binary(10)),
    "hard constraint": (lambda s: jnp.where(jnp.sum(s) == 5, jnp.sum(s * W[:10]), -jnp.inf), saltus.Binary(10)),
    "undefined in places": (lambda s: jnp.log(jnp.sum(s) - 2), saltus.Binary(8)),
    "many values": (lambda s: -jnp.sum((s / 1000) ** 2), saltus.Ordinal(2, np.arange(5000) - 2500.0)),
}


@pytest.mark.parametrize("name", list(ODD))
def test_odd_targets_are_sampled_all_the_same(name):
    log_prob, space = ODD[name]
    target = saltus.Target(log_prob, space)
    run = saltus.sample(target, num_draws=300, num_warmup=200, seed=0, progress=False)
    s = run.posterior.s.values
    if name == "enormous":  # one state has all the mass: nothing should move, and the summary says that nothing did
        assert (s == 1).all()
        assert "No chain ever moved" in saltus.summary(run).doubts[0]
        return
    assert (run.sample_stats.jump.values > 0).any()
    if space.num_values**space.num_sites <= 1024:
        states = saltus.testing.enumerate_states(target)
        f = np.asarray(jax.vmap(target.value)(states), np.float64)
        p = np.where(np.isfinite(f), np.exp(f - f[np.isfinite(f)].max()), 0)
        exact = (p / p.sum()) @ np.asarray(space.show(states))
        assert errors_in_standard_errors(run, exact).max(initial=0) < 4.5


def test_a_warm_up_too_short_to_race_says_what_was_skipped():
    target = saltus.testing.rugged(saltus.Binary(4))
    run = saltus.sample(target, num_draws=20, num_warmup=30, progress=False)
    assert run.attrs["tuning"].startswith("Skipped the race: a warm-up of 30 steps is too short")
    assert "Gibbs" in run.attrs["sampler"]


def test_who_enters():
    found = saltus.Target(lambda s: jnp.sum(s), saltus.Binary(8))
    assert [e.name for e in find_entrants(found, "").first] == ["Gibbs(coloured)", "BlockGibbs", "NCG"]
    plain = found.replace(structure=None)
    field = find_entrants(plain, "")
    assert [e.name for e in field.first] == ["NCG", "Gibbs(systematic)"]
    assert "GWG by exact differences" in [e.name for e in field.others]
    assert [e.name for e in find_entrants(plain, "no good").first] == ["NCG by exact differences", "Gibbs(systematic)"]
    ising = find_entrants(saltus.targets.ising((4, 4), 0.2), "")
    assert [e.name for e in ising.first] == ["Gibbs(coloured)", "SwendsenWang", "BlockGibbs", "NCG"]
    assert not any(e.differences for e in ising.others)  # its own are exact
    large = find_entrants(saltus.Target(lambda s: jnp.sum(s), saltus.Binary(3000), structure=None), "")
    assert "3001 evaluations a step" in large.out["exact differences"]
    order = sorted([Entrant(saltus.PAVG), Entrant(saltus.Gibbs), Entrant(saltus.NCG, "exact")], key=lambda e: e.simplicity)
    assert [e.kind for e in order] == [saltus.Gibbs, saltus.PAVG, saltus.NCG]


def contest(*trials):
    """A race in which (class, effective draws a second, R-hat, jump) were measured."""
    entries = []
    for kind, rate, rhat, jump in trials:
        trial = TrialRun(Worth(4 / rate if rate else np.inf, rhat, "energy"), 100, 1.0, 0.5, jump, 4, np.zeros((4, 1)))
        entries.append(Entry(Entrant(kind), kind, trial, 0, 0.0, 0.0))
    return Contest(None, None, None, np.inf, None, entered=entries)


@pytest.mark.parametrize(
    ("trials", "winner"),
    [
        ([(saltus.NCG, 100, 1.0, 1), (saltus.PAVG, 300, 1.0, 1)], saltus.PAVG),
        ([(saltus.NCG, 100, 1.0, 1), (saltus.PAVG, 300, 1.2, 1)], saltus.NCG),  # chains that disagree cannot win
        ([(saltus.PAVG, 105, 1.0, 1), (saltus.NCG, 100, 1.0, 1)], saltus.NCG),  # a tie goes to the simpler
        ([(saltus.NCG, 10, 1.4, 1), (saltus.PAVG, 30, 1.2, 1)], saltus.PAVG),  # nobody agrees: the best of those that nearly do
        ([(saltus.NCG, 90, 9.0, 1), (saltus.PAVG, 30, 3.0, 1)], saltus.PAVG),  # nobody nearly does: the nearest
        ([(saltus.NCG, 0, np.inf, 0), (saltus.UniformMH, 1, 1.3, 1)], saltus.UniformMH),  # whoever moves
        ([(saltus.NCG, 0, np.inf, 0), (saltus.Gibbs, 0, np.inf, 0)], saltus.Gibbs),  # nobody moves: the simplest
    ],
)
def test_who_wins(trials, winner):
    assert contest(*trials).winner().entrant.kind is winner


def test_a_time_limit_holds_for_the_race_too():
    target, began = saltus.targets.polynomial_mixture(4, 20), time.monotonic()
    run = saltus.sample(target, seed=0, time_limit=45, progress=False)  # without a limit it takes a minute and more
    assert time.monotonic() - began < 60  # what compiles cannot be interrupted
    assert run.posterior.sizes["draw"] > 0
    with pytest.warns(UserWarning, match="`time_limit` left no time for all of the race"):
        short = saltus.sample(target, seed=0, time_limit=5, num_draws=10, num_warmup=100, progress=False)
    assert short.attrs["tuning"].startswith("Skipped the race: a time limit of less than 15 s")
    assert short.attrs["cut"].startswith("the race")


def test_a_race_that_is_late_before_its_first_entrant_takes_what_needs_no_tuning():
    pause = 0.0

    def slow(s):
        time.sleep(pause)  # whenever it is traced: once for the starts, once to burn in, and then half of the time is over
        return jnp.sum(s)

    target, pause = saltus.Target(slow, saltus.Binary(6)), 12.0
    with pytest.warns(UserWarning, match="`time_limit` left no time for all of the race"):
        run = saltus.sample(target, time_limit=34, num_draws=50, num_warmup=100, progress=False)
    assert "half of the time limit was over" in run.attrs["tuning"]
    assert repr(saltus.kernel_of(run)).startswith("Gibbs")
    assert run.posterior.sizes["draw"] >= 1


def test_a_log_prob_without_a_gradient_is_sampled_by_those_that_need_none(all_enter):
    def log_prob(s):
        return jax.lax.while_loop(lambda c: c[0] < 6, lambda c: (c[0] + 1, c[1] + W[c[0]] * s[c[0]]), (0, 0.0))[1]

    run = saltus.sample(saltus.Target(log_prob, saltus.Binary(6)), num_draws=500, num_warmup=200, progress=False)
    assert "cannot be differentiated" in run.attrs["tuning"]
    assert errors_in_standard_errors(run, 1 / (1 + np.exp(-np.asarray(W[:6])))).max() < 4.5


def test_a_gradient_that_is_nan_is_told_and_left_for_last(all_enter):
    target = saltus.Target(lambda s: jnp.sum(W[:6] * s) + jnp.linalg.norm(s - s), saltus.Binary(6))
    run = saltus.sample(target, num_draws=100, num_warmup=200, progress=False)
    assert "NaN or infinite" in run.attrs["tuning"]
    raced = [row.sampler for row in saltus.race_of(run).rows]
    assert raced.index("NCG by exact differences") < raced.index("NCG")


def test_other_words_are_refused_before_anything_is_tuned(tmp_path):
    target = saltus.Target(lambda s: jnp.sum(W[:4] * s), saltus.Binary(4))
    settings = dict(num_draws=5, num_warmup=120, checkpoint=tmp_path / "c", progress=False)
    saltus.sample(target, saltus.Gibbs(), **settings)
    for sampler in ("auto", "ncg"):
        with pytest.raises(saltus.StorageError, match=r"another `sampler`(?s:.*)Gibbs"):
            saltus.sample(target, sampler, **settings)


def test_what_was_given_must_be_given_again(tmp_path):
    target = saltus.Target(lambda s: jnp.sum(W[:4] * s), saltus.Binary(4))
    settings = dict(num_draws=20, num_warmup=120, checkpoint=tmp_path / "c", progress=False)
    first = saltus.sample(target, "gwg", initial=np.zeros(4, int), **settings)
    with pytest.raises(saltus.StorageError, match="another `initial`"):
        saltus.sample(target, "gwg", initial=np.ones(4, int), **settings)
    with pytest.raises(saltus.StorageError, match="another `adaptation`"):
        saltus.sample(target, "gwg", initial=np.zeros(4, int), adaptation="paper", **settings)
    assert np.array_equal(saltus.sample(target, "gwg", initial=np.zeros(4, int), **settings).posterior.s, first.posterior.s)


def test_an_impossible_start_is_refused_before_the_race():
    target = saltus.Target(lambda s: jnp.where(s[0] > 0, jnp.sum(s), -jnp.inf), saltus.Binary(4))
    with pytest.raises(saltus.SpaceError, match="not a possible start"):
        saltus.sample(target, initial=np.zeros(4, int), progress=False)
    with pytest.raises(saltus.KernelError, match="`sampler` is not known"):
        saltus.sample(target, saltus.Informed, progress=False)
