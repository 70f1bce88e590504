"""Bad input to `sample`: each message is read, and random nonsense gives a saltus error or a valid run."""

import warnings

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import saltus

TARGET = saltus.Target(lambda s: 0.3 * jnp.sum(s), saltus.Spin(4), structure=None)
KERNEL = saltus.UniformMH(1)


def draw(target=TARGET, sampler=KERNEL, **arguments):
    return saltus.sample(target, sampler, **{"num_draws": 5, "num_warmup": 2, "num_chains": 2, "progress": False, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_draws": 0}, r"`num_draws` is not usable(?s:.*)integer >= 1"),
        ({"num_draws": 2.5}, "`num_draws` is not usable"),
        ({"num_draws": True}, "`num_draws` is not usable"),
        ({"num_chains": -1}, "`num_chains` is not usable"),
        ({"num_chains": "4"}, "`num_chains` is not usable"),
        ({"num_warmup": -1}, r"`num_warmup` is not usable(?s:.*)integer >= 0"),
        ({"num_draws": 2**31}, "too long"),
        ({"thin": 0}, r'`thin` is not usable(?s:.*)"auto"'),
        ({"thin": "some"}, "`thin` is not usable"),
        ({"seed": -1}, "`seed` is not usable"),
        ({"seed": 0.5}, "`seed` is not usable"),
        ({"seed": jax.random.PRNGKey(0)}, r"`seed` is not usable(?s:.*)not a key"),
        ({"progress": 1}, "`progress` is not usable"),
        ({"time_limit": 0}, "`time_limit` is not usable"),
        ({"time_limit": float("nan")}, "`time_limit` is not usable"),
        ({"keep": "averages"}, "`keep` is not known"),
        ({"keep": "means"}, r"`keep` is not known(?s:.*)did you mean 'mean'"),
        ({"keep": {}}, "not a dict of observables"),
        ({"keep": {"s": jnp.sum}}, "a meaning of its own"),
        ({"keep": {"m": 3}}, "not a dict of observables"),
        ({"keep": {"a/b": jnp.sum}}, "not a dict of observables"),
        ({"keep": {"": jnp.sum}}, "not a dict of observables"),
        ({"keep": {"m": lambda s: s[10] + "x"}}, "The observable 'm' fails"),
        ({"checkpoint": 3}, "`checkpoint` is not a path"),
        ({"store": ""}, "`store` is not a path"),
        ({"overwrite": "yes"}, "`overwrite` is not usable"),
        ({"keep_warmup": None}, "`keep_warmup` is not usable"),
        ({"checkpoint_every": -1}, "`checkpoint_every` is not usable"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(saltus.RunError, match=message):
        draw(**arguments)


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        ("ngc", r"`sampler` is not known(?s:.*)did you mean 'ncg'"),
        ("block_gibs", "did you mean 'block-gibbs'"),
        (7, "`sampler` is not known"),
        (None, "`sampler` is not known"),
        (int, "`sampler` is not known"),
        (saltus.BlockGibbs(), "needs a quadratic target"),
        (saltus.PAVG(1.0, np.eye(5)), r"preconditioner does not fit Spin\(4\)"),
        (saltus.NCG(1.0, penalty=np.ones(3)), r"does not fit Spin\(4\)"),
        (saltus.UniformMH(9), "larger than"),
        (saltus.Gibbs("coloured"), "which sites interact"),
    ],
)
def test_samplers_are_checked(sampler, message):
    with pytest.raises(saltus.KernelError, match=message):
        draw(sampler=sampler)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        (np.zeros(4), "these look like bits"),
        (np.ones(5), r"not a state of Spin\(4\)"),
        (np.ones((3, 4)), "does not fit the chains(?s:.*)3 states"),
        (np.ones((1, 2, 4)), "does not fit the chains"),
        (np.full(4, np.nan), "NaN"),
        ("up", "not a state"),
        ([[1, 1], [1]], "not a state"),
        (object(), "not a state"),
    ],
)
def test_initial_states_are_checked(initial, message):
    with pytest.raises(saltus.SpaceError, match=message):
        draw(initial=initial)


def test_impossible_initial_states_say_which_chains():
    half = saltus.Target(lambda s: jnp.where(s[0] > 0, jnp.sum(s), -jnp.inf), saltus.Spin(4))
    start = np.ones((3, 4), int)
    start[1, 0] = -1
    with pytest.raises(saltus.SpaceError, match=r"-inf at chain 1: 1 of 3 chains"):
        draw(half, initial=start, num_chains=3)
    undefined = saltus.Target(lambda s: jnp.log(s[0]), saltus.Spin(4))
    with pytest.raises(saltus.SpaceError, match=r"nan at chain 1: 1 of 3 chains"):
        draw(undefined, initial=start, num_chains=3)


def test_a_target_that_is_nan_everywhere():
    with pytest.raises(saltus.TargetError, match="NaN everywhere"):
        draw(saltus.Target(lambda s: jnp.sum(s) * jnp.nan, saltus.Spin(4)))


def test_a_target_with_no_possible_start():
    with pytest.raises(saltus.TargetError, match=r"No random state(?s:.*)initial="):
        draw(saltus.Target(lambda s: jnp.where(jnp.sum(s) > 9, 0.0, -jnp.inf), saltus.Spin(4)))


@pytest.mark.parametrize("target", [None, lambda s: 0.0, "target"])
def test_what_is_no_target(target):
    with pytest.raises(saltus.TargetError, match="`target` is not a target"):
        draw(target)


@pytest.mark.parametrize("sampler", ["auto", "ncg", KERNEL], ids=str)
@pytest.mark.parametrize("stored", [False, True])
def test_no_time_limit_is_too_short_for_a_draw(tmp_path, sampler, stored):
    store = {"store": tmp_path / "s.zarr"} if stored else {}
    with pytest.warns(
        UserWarning, match=r"`time_limit` left no time for all of .*the warm-up \(0 of 200 steps were made\)"
    ) as told:
        run = draw(sampler=sampler, num_warmup=200, num_draws=10**6, thin=3, time_limit=1e-6, **store)
    assert len(told) == 1
    assert run.posterior.sizes["draw"] >= 1
    assert "the warm-up (0 of 200 steps were made)" in run.attrs["cut"]
    assert ("the race" in run.attrs["cut"]) == (sampler == "auto")
    assert ("the tuning" in run.attrs["cut"]) == (sampler == "ncg")
    assert (run.attrs["complete"], run.attrs["incomplete_because"], run.attrs["num_warmup"]) == (0, "time limit", 0)


def test_nothing_is_cut_where_there_is_time():
    assert draw().attrs["cut"] == ""
    assert draw(time_limit=600).attrs["cut"] == ""


def test_every_call_with_a_checkpoint_makes_a_step(tmp_path):
    """Otherwise repeating a call with too short a limit would never end. Warm-up is not cut: the next call goes on with it."""
    for _ in range(2):
        with pytest.warns(UserWarning, match="repeat the call"):
            draw(num_warmup=3, time_limit=1e-6, checkpoint=tmp_path / "c")
    run = draw(num_warmup=3, checkpoint=tmp_path / "c")
    assert np.array_equal(run.posterior.s, draw(num_warmup=3).posterior.s)


def test_a_time_limit_within_warm_up_is_progress_with_a_checkpoint(tmp_path):
    with pytest.warns(UserWarning, match="repeat the call"):
        part = draw(num_warmup=10**8, time_limit=1, checkpoint=tmp_path / "c")
    assert "these draws are states of the warm-up, and saltus.resume goes on" in part.attrs["cut"]
    assert part.attrs["complete"] == 0
    assert part.sample_stats.sizes["draw"] == part.posterior.sizes["draw"] == 1
    with pytest.warns(UserWarning, match=r"the warm-up \(\d+ of 100000000 steps were made\)"):
        short = draw(num_warmup=10**8, time_limit=1)
    assert short.posterior.sizes["draw"] >= 1


def test_what_exists_is_replaced_only_by_a_run_that_can_start(tmp_path):
    first = draw(checkpoint=tmp_path / "c", store=tmp_path / "s.zarr").posterior.s.values  # read before it is replaced
    files = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    nowhere = saltus.Target(lambda s: jnp.sum(s) * jnp.nan, saltus.Spin(4))
    with pytest.raises(saltus.TargetError, match="NaN everywhere"):
        draw(nowhere, checkpoint=tmp_path / "c", store=tmp_path / "s.zarr", overwrite=True)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == files
    again = draw(checkpoint=tmp_path / "c", store=tmp_path / "s.zarr", overwrite=True)
    assert np.array_equal(again.posterior.s, first)


def test_store_and_checkpoint_need_two_places(tmp_path):
    for store in (tmp_path / "c", tmp_path / "c" / "s.zarr"):
        with pytest.raises(saltus.RunError, match="`store` lies in `checkpoint`"):
            draw(checkpoint=tmp_path / "c", store=store)


def test_an_even_thin_with_gwg_warns_of_parity():
    with pytest.warns(UserWarning, match="even or odd"):
        draw(sampler=saltus.GWG(), thin=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", saltus.ConvergenceWarning)  # of five draws
        draw(sampler=saltus.GWG(), thin=3)


def test_names_and_classes_will_do():
    expected = draw(sampler=saltus.Gibbs("systematic")).posterior.s  # where a sweep is affordable
    for sampler in ("gibbs", "Gibbs", saltus.Gibbs):
        assert np.array_equal(draw(sampler=sampler).posterior.s, expected)


NONSENSE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 6),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(-1, 2), max_size=5),
    st.sampled_from([np.nan, np.ones(4), np.ones((2, 4)), -np.ones(4, int), object(), {}, (), b"x", 10**30, jnp.ones(3), len]),
    st.dictionaries(st.text(max_size=2), st.sampled_from([jnp.sum, jnp.max, len, 3]), max_size=2),
)
ARGUMENTS = ("num_draws", "num_warmup", "num_chains", "seed", "initial", "thin", "progress", "time_limit", "keep")
ARGUMENTS += ("keep_warmup", "overwrite", "checkpoint_every", "sampler", "target")


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(name=st.sampled_from(ARGUMENTS), value=NONSENSE, other=st.sampled_from(ARGUMENTS), another=NONSENSE)
def test_nonsense_gives_a_saltus_error_or_a_valid_run(name, value, other, another):
    arguments = {"num_draws": 5, "num_warmup": 2, "num_chains": 2, "progress": False, "target": TARGET, "sampler": KERNEL}
    arguments |= {name: value, other: another}
    try:
        run = saltus.sample(arguments.pop("target"), arguments.pop("sampler"), **arguments)
    except saltus.SaltusError:
        return
    stats = run["sample_stats"]
    assert stats.sizes["draw"] == arguments["num_draws"]
    assert stats.sizes["chain"] == arguments["num_chains"]
    assert np.isfinite(stats["lp"]).all()
    if "posterior" in run.children and "s" in run["posterior"]:
        assert np.isin(run["posterior"]["s"], [-1, 1]).all()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(value=NONSENSE, name=st.sampled_from(["checkpoint", "store"]))
def test_nonsense_for_paths(value, name, tmp_path_factory):
    import os

    here = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("nonsense"))
    try:
        draw(**{name: value})
    except saltus.SaltusError:
        pass
    finally:
        os.chdir(here)
