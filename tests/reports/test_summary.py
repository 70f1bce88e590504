"""`summary` reads any run, says what stands out and what to do, and never shows a NaN or calls a constant a success."""

import re

import arviz_stats
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import saltus
from saltus.reporting import rows

CHAIN = saltus.Target(lambda s: 0.2 * jnp.sum(s[1:] * s[:-1]), saltus.Spin(6))
WEIGHTS = jnp.array(np.random.default_rng(0).normal(size=(3, 4)), jnp.float32)
COLOURS = saltus.Target(lambda s: jnp.sum(WEIGHTS * s), saltus.Categorical(3, 4), names=["red", "green", "blue"])


def draw(target=CHAIN, kernel=None, **settings):
    kernel = saltus.NCG(4.0) if kernel is None else kernel
    return saltus.sample(
        target, kernel, **{"num_draws": 1000, "num_warmup": 50, "thin": 1, "seed": 1, "progress": False, **settings}
    )


def edited(run, attributes=(), draws=slice(None), chains=slice(None), **variables):
    """A copy with other attributes, fewer draws or chains, or other values of variables."""
    groups = {name: group.to_dataset() for name, group in run.children.items()}
    for home in {"posterior", "sample_stats"} & set(groups):
        group = groups[home].isel(draw=draws, chain=chains)
        groups[home] = group.assign({name: (group[name].dims, variables[name]) for name in set(variables) & set(group.data_vars)})
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update({**run.attrs, **dict(attributes)})
    return tree


def doubted(run, words):
    """The one doubt that has these words in it."""
    found = [doubt for doubt in saltus.summary(run).doubts if re.search(words, doubt)]
    assert len(found) == 1, f"{words}: {saltus.summary(run)}"
    readable(saltus.summary(run))
    return found[0]


def readable(summary):
    text = str(summary)
    assert "nan" not in text  # a number; the word is NaN
    assert max(map(len, text.splitlines())) <= 100
    return text


@pytest.fixture(scope="module")
def good():
    return draw()


@pytest.fixture(scope="module")
def colours():
    return draw(COLOURS, num_draws=400)


def frozen_values(run, chain=2):
    """The draws of a run with one chain held at its first."""
    s, lp, jump = (run[g][n].values.copy() for g, n in (("posterior", "s"), ("sample_stats", "lp"), ("sample_stats", "jump")))
    s[chain], lp[chain], jump[chain] = s[chain, :1], lp[chain, 0], 0
    return {"s": s, "lp": lp, "jump": jump}


# ---- what it says of a run that is well -------------------------------------------------------------------------


def test_a_good_run_has_no_doubts_and_its_numbers_are_those_of_the_diagnostics(good):
    s = saltus.summary(good)
    lp, draws = good.sample_stats.lp.values, good.posterior.s.values
    distance = np.abs(draws - draws[0, 0].astype(float)).sum(-1)
    for name, x in (("lp", lp), ("distance", distance)):
        assert s.ess[name] == pytest.approx(saltus.diagnostics.ess_of_chains(x))
        assert s.rhat[name] == pytest.approx(float(saltus.diagnostics.split_rhat(x)))
        assert s.ess_per_second[name] == pytest.approx(s.ess[name] / good.attrs["sampling_seconds"])
        assert s.ess_per_evaluation[name] == pytest.approx(s.ess[name] / 4000)
    assert [row.ess for row in s.table] == sorted(row.ess for row in s.table)
    for row in s.table:
        x = draws[..., int(row.name)].astype(float)
        assert row.mean == pytest.approx(x.mean())
        assert row.sd == pytest.approx(x.std(ddof=1))
        assert row.ess == pytest.approx(saltus.diagnostics.ess_of_chains(x))
        assert row.rhat == pytest.approx(float(saltus.diagnostics.split_rhat(x)))
        assert row.moves == (np.diff(x, axis=1) != 0).sum()
    assert s.doubts == []
    assert "Nothing stands out. That is not a proof." in readable(s)


def test_the_text_tells_what_ran(good):
    text = readable(saltus.summary(good))
    told = ["Spin(6)", "NCG(step_size=4)", "4 chains x 1000 draws", "thin 1", "50 warm-up steps", "seed 1", "complete", "sampling"]
    assert all(words in text for words in [*told, "Never moved, in any chain: 0 of 6 sites", "accepted", "jump"])
    assert "INCOMPLETE" not in text
    assert repr(saltus.summary(good)) == text


def test_sites_says_how_many_are_printed(good):
    assert len(saltus.summary(good, sites=2).table) == 6
    assert "and 4 more" in readable(saltus.summary(good, sites=2))
    assert "Worst" not in readable(saltus.summary(good, sites=0))
    with pytest.raises(saltus.SaltusError, match="`sites`"):
        saltus.summary(good, sites=-1)


def test_categories_have_a_most_frequent_value_and_no_mean(colours):
    s = saltus.summary(colours)
    draws = colours.posterior.s.values
    for row in s.table:
        x = draws[..., ["red", "green", "blue"].index(row.name)]
        assert row.mean is None
        assert row.share == pytest.approx((x == row.value).mean())
        assert row.value == np.argmax(np.bincount(x.ravel()))
        assert row.ess == pytest.approx(saltus.diagnostics.ess_of_chains(x == row.value))
    assert s.ess["distance"] == pytest.approx(saltus.diagnostics.ess_of_chains((draws != draws[0, 0]).sum(-1)))
    text = readable(s)
    assert "most frequent" in text
    assert "sites unlike s0" in text
    assert "green" in text


def test_any_names_of_categories_give_the_same(colours):
    """The meaning of a category's index is none: renaming them changes no figure."""
    other = np.array([7, 3, 100, 5])[colours.posterior.s.values]
    a, b = saltus.summary(colours), saltus.summary(edited(colours, s=other))
    assert [(row.name, row.share, row.ess, row.rhat) for row in a.table] == [
        (row.name, row.share, row.ess, row.rhat) for row in b.table
    ]


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_runs_from_disk_give_the_same_page(good, tmp_path):
    stored = draw(store=tmp_path / "run.zarr")
    again = saltus.open(tmp_path / "run.zarr")
    good.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    good.to_zarr(tmp_path / "plain.zarr")
    with saltus.open(tmp_path / "run.nc") as file:
        pages = [str(saltus.summary(edited(file, dict(good.attrs)))), str(saltus.summary(file))]
    pages.append(str(saltus.summary(saltus.open(tmp_path / "plain.zarr"))))
    assert pages == [str(saltus.summary(good))] * 3
    assert str(saltus.summary(stored)) == str(saltus.summary(again))
    assert saltus.summary(stored).table == saltus.summary(good).table


def test_blocks_and_batches_change_nothing(good, colours, monkeypatch):
    before = [saltus.summary(run) for run in (good, colours)]
    monkeypatch.setattr(rows, "_READ_AT_ONCE", 4 * 6 * 50)
    monkeypatch.setattr(rows, "_COMPUTED_AT_ONCE", 2000)
    for old, run in zip(before, (good, colours), strict=True):
        new = saltus.summary(run)
        assert [row.name for row in new.table] == [row.name for row in old.table]
        np.testing.assert_allclose([row.ess for row in new.table], [row.ess for row in old.table], rtol=1e-6)
        assert (new.still, new.rhat, [row.moves for row in new.table]) == (old.still, old.rhat, [row.moves for row in old.table])


def test_many_sites_are_sampled_evenly_and_it_says_so(good, monkeypatch):
    monkeypatch.setattr(rows, "_MOST_ROWS", 3)
    s = saltus.summary(good)
    assert {row.name for row in s.table} == {"0", "2", "5"}
    assert "of 3 of 6, evenly spaced" in readable(s)


# ---- what it survives -------------------------------------------------------------------------------------------


def test_observables_have_rows_of_their_own():
    observables = {"m": lambda s: s.mean(), "two": lambda s: s[:4].reshape(2, 2), "up": lambda s: s[0] > 0, "one": lambda s: 1.0}
    run = draw(num_draws=200, keep=observables)
    s = saltus.summary(run, sites=20)
    assert {row.name for row in s.table} == {"m", "two[0, 0]", "two[0, 1]", "two[1, 0]", "two[1, 1]", "up", "one"}
    m = next(row for row in s.table if row.name == "m")
    assert m.ess == pytest.approx(saltus.diagnostics.ess_of_chains(run.posterior.m.values))
    assert s.table[-1].name == "one"
    assert re.search(r"one +1\.00 +0\.00 +constant", readable(s))
    assert set(s.ess) == {"lp"}


def test_observables_that_are_not_numbers_are_left_out():
    s = saltus.summary(draw(num_draws=20, keep={"phase": lambda s: jnp.exp(1j * s[0]), "first": lambda s: s[0]}))
    assert [row.name for row in s.table] == ["first"]
    assert "left out: phase" in readable(s)


def test_statistics_leave_the_energy_and_what_was_kept():
    s = saltus.summary(draw(num_draws=200, keep=("mean", "best")))
    assert s.table == []
    assert set(s.ess) == {"lp"}
    assert "means differ most between chains at site" in readable(s)
    assert "best log_prob found: 1, by chain" in readable(s)


def test_no_evaluations_are_said_to_be_none():
    quadratic = saltus.Quadratic(np.zeros(6), 0.2 * (np.eye(6, k=1) + np.eye(6, k=-1)))
    run = draw(saltus.Target(CHAIN.log_prob, saltus.Spin(6), structure=quadratic), saltus.BlockGibbs(), num_draws=100)
    s = saltus.summary(run)
    assert s.ess_per_evaluation["lp"] is None
    assert "no evaluations" in readable(s)
    assert "no accept step" in readable(s)


@pytest.mark.parametrize("num_draws", [1, 2, 3])
def test_too_few_draws_are_said_to_be(good, colours, num_draws):
    for run in (good, colours):
        few = edited(run, draws=slice(num_draws))
        assert "few draws" in readable(saltus.summary(few))
        assert doubted(few, "too few to judge").startswith(f"{num_draws} draw")
        assert not any("R-hat is" in doubt or "ESS is" in doubt for doubt in saltus.summary(few).doubts)


def test_no_draws_at_all(good):
    """What an interrupt in warm-up leaves, in memory and after slicing."""
    empty = xr.DataTree.from_dict({"kernel": good["kernel"].to_dataset()})
    empty.attrs.update({**good.attrs, "complete": 0, "incomplete_because": "interrupted"})
    for run in (empty, edited(good, empty.attrs, draws=slice(0))):
        s = saltus.summary(run)
        assert (s.ess, s.table) == ({}, [])
        assert "No draws" in readable(s)
        doubted(run, "incomplete .interrupted.: 0 of 1000 draws")


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_an_undefined_energy_is_a_word_and_a_doubt(good, bad):
    lp = good.sample_stats.lp.values.copy()
    lp[1, 7] = bad
    run = edited(good, lp=lp)
    assert re.search(r"energy \(lp\) +- +- +undefined", readable(saltus.summary(run)))
    assert "lp" in doubted(run, "NaN or infinite at some draws")


@pytest.mark.parametrize("other", [None, "run.zarr", xr.Dataset(), xr.DataTree(), {"posterior": 1}])
def test_what_is_no_run_is_refused(other, good):
    with pytest.raises(saltus.SaltusError, match=r"not a run of saltus\.\n  expected"):
        saltus.summary(other)


def test_part_of_a_run_and_runs_of_others_are_refused(good):
    with pytest.raises(saltus.SaltusError, match="as a whole"):
        saltus.summary(good["posterior"])
    with pytest.raises(saltus.SaltusError, match="made by pymc"):
        saltus.summary(edited(good, {"inference_library": "pymc"}))


# ---- what it doubts ---------------------------------------------------------------------------------------------


def test_a_frozen_chain_is_named(good):
    run = edited(good, **frozen_values(good))
    doubt = doubted(run, "1 of 4 chains never moved: 2")
    assert "initial=" in doubt
    assert saltus.summary(run).frozen == [2]
    doubted(run, "R-hat is far above")


def test_a_frozen_chain_of_a_real_run_is_named():
    """One chain begins in a mode that single flips cannot leave."""
    deep = saltus.Target(lambda s: jnp.where(jnp.all(s > 0), 1e4, 0.0), saltus.Spin(6), differences="exact")
    initial = np.array([[-1] * 6, [1] * 6])
    run = draw(deep, saltus.UniformMH(1), num_draws=50, num_warmup=0, num_chains=2, initial=initial, seed=0)
    doubted(run, "1 of 2 chains never moved: 1")
    kept = draw(deep, saltus.UniformMH(1), num_draws=50, num_warmup=0, num_chains=2, initial=initial, seed=0, keep="mean")
    doubted(kept, "1 of 2 chains never moved: 1")


def test_chains_that_all_stand_still():
    hard = saltus.Target(lambda s: 1e5 * jnp.sum(s), saltus.Spin(6))
    run = draw(hard, saltus.UniformMH(1), num_draws=50, num_warmup=0, initial=np.ones(6))
    doubted(run, "No chain ever moved")
    s = saltus.summary(run)
    assert all(row.constant for row in s.table)
    assert readable(s).count("constant") == 2 + 6
    assert not any("R-hat" in doubt or "ESS is" in doubt for doubt in s.doubts)


def test_constant_sites_come_last_and_are_never_numbers(good, colours):
    for run in (good, colours):
        s = run.posterior.s.values.copy()
        s[..., 1] = 1
        held = edited(run, s=s)
        row = saltus.summary(held).table[-1]
        assert row.constant
        assert row.name == str(run.posterior.site.values[1])
        line = next(line for line in readable(saltus.summary(held)).splitlines() if line.split()[:1] == [row.name])
        assert line.split()[-3:] == ["constant", "-", "0"]
        assert "certain, or stuck" in doubted(held, "1 of . sites have one value")


def test_sites_where_chains_stay_apart(good):
    s = good.posterior.s.values.copy()
    s[..., 4] = np.array([1, 1, -1, 1])[:, None]
    run = edited(good, s=s)
    doubted(run, "At 1 of 6 sites each chain keeps its first value.*: 4")
    first = saltus.summary(run).table[0]
    assert (first.name, first.ess, first.rhat) == ("4", 0, np.inf)
    assert not any("have one value" in doubt for doubt in saltus.summary(run).doubts)


def test_disagreeing_chains_a_little_and_a_lot(good):
    lp = good.sample_stats.lp.values
    unlike = np.array([0, 0, 0, 1])[:, None] * lp.std()
    doubted(edited(good, lp=lp + 0.5 * unlike), r"R-hat is above 1\.01: energy 1\.0")
    doubted(edited(good, lp=lp + 3 * unlike), r"R-hat is far above 1\.01: energy [12]")


def test_effective_draws_respect_chains_that_disagree(good):
    """As ArviZ counts them: an R-hat of 50 and an ESS of thousands cannot both be right."""
    lp = good.sample_stats.lp.values
    run = edited(good, lp=lp + 100 * lp.std() * np.arange(len(lp))[:, None])
    s = saltus.summary(run)
    assert s.rhat["lp"] > 50
    assert s.ess["lp"] == pytest.approx(arviz_stats.ess(run.sample_stats.lp.values, method="mean", chain_axis=0, draw_axis=1))
    assert s.ess["lp"] < 10
    assert "ESS is below 100" in doubted(run, "ESS is below")


def test_few_effective_draws(good):
    doubted(edited(good, draws=slice(100)), "ESS is below 400: .*times as many draws")
    doubted(edited(good, draws=slice(12)), "ESS is below 100")


def test_a_constant_energy_though_chains_move():
    run = draw(saltus.Target(lambda s: 0.0 * s.sum(), saltus.Spin(6)), saltus.NCG(8.0), num_draws=200)
    doubted(run, "energy is the same at every draw")
    assert re.search(r"energy \(lp\) .*constant", readable(saltus.summary(run)))


def test_rare_acceptance():
    """All 12 sites redrawn, from a state with one site down: of 4096 proposals, the 12 like it and the one above are taken."""
    up = saltus.Target(lambda s: 3 * jnp.sum(s), saltus.Spin(12))
    run = draw(up, saltus.UniformMH(12), num_warmup=0, initial=np.where(np.arange(12) == 0, -1, 1))
    assert run.sample_stats.acceptance_rate.mean() < 0.01
    assert "step_size or radius" in doubted(run, r"Only 0\.\d+ % of proposals are accepted")


def test_timid_steps():
    doubted(draw(kernel=saltus.NCG(0.4), num_draws=200), "steps are timid")


def test_undefined_evaluations():
    holes = saltus.Target(lambda s: jnp.where(s[0] + s[1] > 1, jnp.nan, 0.2 * jnp.sum(s)), saltus.Spin(6))
    run = draw(holes, num_draws=100, initial=-np.ones(6))
    assert f"at {run.attrs['undefined']} proposed states" in doubted(run, "log_prob was NaN")


@pytest.mark.filterwarnings("ignore:GWG flips")
def test_even_thin_of_gwg(good):
    run = draw(kernel=saltus.GWG(), num_draws=20, thin=2)
    assert "such as 3" in doubted(run, "GWG flips one site")
    for num_values, seen in ((2, True), (20, False)):
        told = saltus.summary(edited(run, {"num_values": num_values})).doubts
        assert any("GWG flips" in doubt for doubt in told) == seen
    assert not any("GWG flips" in doubt for doubt in saltus.summary(edited(run, {"thin": 3})).doubts)


def test_one_chain(good):
    doubted(edited(good, chains=slice(1)), "One chain")


def test_why_a_run_is_incomplete(good):
    stopped = edited(good, {"complete": 0, "incomplete_because": "time limit", "num_draws": 5000})
    assert "1000 of 5000 draws" in doubted(stopped, "incomplete .time limit.")
    assert "INCOMPLETE (time limit)" in str(saltus.summary(stopped))


def test_a_store_whose_run_was_killed(tmp_path):
    """Only what is known before the first step was written. Of format 3, which has no checksum of what is edited here."""
    import zarr

    draw(num_draws=30, store=tmp_path / "run.zarr")
    root = zarr.open_group(tmp_path / "run.zarr", mode="r+")
    late = ("compile_seconds", "warmup_seconds", "sampling_seconds", "sampling_time", "incomplete_because", "undefined")
    root.attrs.put({name: value for name, value in root.attrs.items() if name not in late} | {"complete": 0, "saltus_store": 3})
    run = saltus.open(tmp_path / "run.zarr")
    doubted(run, "still running, or killed")
    assert "not recorded" in readable(saltus.summary(run))
    assert saltus.summary(run).ess_per_second["lp"] is None
