"""Steps between draws: enough for 400 effective draws within a minute, plenty within four seconds, odd where parity asks."""

import re
from dataclasses import replace

import numpy as np
import pytest

import saltus
from saltus.diagnostics.worth import Worth, series, worth
from saltus.engine.arguments import read_settings
from saltus.race.thinning import CAP_SECONDS, ENOUGH, GOOD, GOOD_SECONDS, PLENTY, PLENTY_SECONDS, choose_thin, hurried
from saltus.race.trial_run import TrialRun

SETTINGS = read_settings(
    saltus.Spin(3), num_draws=1000, num_warmup=1000, num_chains=4, seed=0, thin="auto", keep="draws", keep_warmup=False
)[0]


def thin(steps, per_step=1e-6, parity=False):
    return choose_thin(Worth(steps, 1.0, "energy"), SETTINGS, per_step, parity)


def autoregressive(tau, chains=4, n=20_000, seed=0):
    """(chains, n) with autocorrelation time τ = (1 + φ) / (1 - φ)."""
    phi = (tau - 1) / (tau + 1)
    noise = np.random.default_rng(seed).normal(size=(chains, n))
    x = np.empty_like(noise)
    x[:, 0] = noise[:, 0] / np.sqrt(1 - phi**2)
    for t in range(1, n):
        x[:, t] = phi * x[:, t - 1] + noise[:, t]
    return x


def test_cheap_steps_give_plenty():
    assert thin(1.0).thin == 1
    assert thin(100.0).thin == PLENTY * 100 / 4000
    assert "2000 effective draws" in thin(100.0).why


@pytest.mark.parametrize("steps", [0.3, 1.0, 40.0])
def test_no_more_effective_draws_are_promised_than_draws(steps):
    """An effective draw may take less than a step."""
    found = thin(steps)
    promised = int(re.search(r"expect about (\d+) effective", found.why)[1])
    assert promised == min(round(found.thin * 4000 / steps), 4000)


def test_dear_steps_give_enough():
    assert thin(100.0, per_step=PLENTY_SECONDS / 20 / 1000).thin == GOOD * 100 / 4000
    assert thin(100.0, per_step=GOOD_SECONDS / 10 / 1000).thin == np.ceil(2 * ENOUGH * 100 / 4000)
    assert thin(100.0, per_step=CAP_SECONDS / 15 / 1000).thin == np.ceil(1.25 * ENOUGH * 100 / 4000)


def test_the_cap_holds_and_is_told():
    found = thin(10_000.0, per_step=1e-3)
    assert CAP_SECONDS / 1e-3 / 1000 == 60
    assert found.thin == 32  # the power of two below
    assert "more than 60 s" in found.why
    assert thin(1e9, per_step=10.0).thin == 1


def test_a_time_limit_thins_less_and_says_so():
    chosen = thin(100.0)
    assert hurried(chosen, SETTINGS, 1e-6, False, np.inf) == chosen
    assert hurried(chosen, SETTINGS, 1e-4, False, 60.0) == chosen
    short = hurried(chosen, SETTINGS, 1e-3, False, 20.0)
    assert short.thin == 16
    assert "the time limit leaves no time for more" in short.why
    assert hurried(chosen, SETTINGS, 1e-3, True, 20.0).thin == 15
    assert hurried(chosen, SETTINGS, 1.0, False, 0.0).thin == 1


def test_parity_asks_for_odd_distances():
    assert thin(40.0, parity=True).thin % 2 == 1


def test_what_cannot_be_known_gives_one():
    assert choose_thin(None, SETTINGS, 1e-6, False).thin == 1
    assert thin(np.inf).thin == 1


@pytest.mark.parametrize("tau", [1.0, 10.0, 100.0])
def test_worth_finds_the_autocorrelation_time(tau):
    found = worth({"energy": autoregressive(tau)})
    assert found.steps == pytest.approx(tau, rel=0.3)
    assert found.rhat < 1.05


def test_worth_sees_chains_that_never_meet():
    """Each chain alone looks perfect: only together do they show that no mode was ever left."""
    x = autoregressive(1.0, n=1000) + 5 * np.arange(4)[:, None]
    found = worth({"energy": x})
    assert found.rhat > 2
    assert found.steps > 1000
    assert worth({"energy": x[:1]}).steps < 2


def test_constants_say_nothing():
    assert worth({"energy": np.ones((4, 100)), "other": autoregressive(2.0, n=100)}).worst == "other"
    assert worth({"energy": np.ones((4, 100))}).worst == "everything is constant"


def test_series_are_energies_and_distances():
    space = saltus.Ordinal(2, [0.0, 1.0, 5.0])
    codes = np.array([[[0, 0], [0, 2]], [[0, 1], [1, 2]]])
    found = series(space, codes, np.array([[1.0, 3.0], [2.0, 4.0]]), codes[0])
    assert np.array_equal(found["energy"], [[1.0, 2.0], [3.0, 4.0]])
    assert np.array_equal(found["distance from a state of chain 0"], [[5.0, 6.0]])  # of chain 1 alone


def test_distances_from_a_chains_own_past_would_mislead():
    """A slow walk leaves where it was: that trend is no disagreement, and only the others' distances are looked at."""
    rng = np.random.default_rng(0)
    codes = np.empty((400, 4, 1000), int)
    codes[0] = rng.integers(2, size=(4, 1000))
    for t in range(1, 400):  # one random site of each chain is drawn anew: τ is about 2000 steps
        codes[t] = codes[t - 1]
        codes[t, np.arange(4), rng.integers(1000, size=4)] = rng.integers(2, size=4)
    space = saltus.Binary(1000)
    found = worth(series(space, codes, np.zeros((400, 4)), codes[0]))
    mixed = np.abs(codes - codes[0, 0]).sum(-1).T.astype(float)  # chain 0 leaves its own state, the others never were near it
    assert found.steps < 10_000
    assert worth({"all chains": mixed}).steps > 3 * found.steps


def test_a_run_chooses_once_and_says_so(tmp_path):
    target = saltus.targets.ising((6, 6), 0.35)
    slow = saltus.NCG(0.3)
    settings = dict(num_draws=200, num_warmup=400, num_chains=2, seed=0, progress=False)
    run = saltus.sample(target, slow, **settings, store=tmp_path / "run.zarr", checkpoint=tmp_path / "c")
    assert run.attrs["thin"] > 1
    assert "in the warm-up" in run.attrs["thinning"]
    assert f"thin {run.attrs['thin']}" in str(saltus.summary(run))
    again = saltus.sample(target, slow, **settings, thin=run.attrs["thin"])
    assert np.array_equal(again.posterior.s, run.posterior.s)
    assert saltus.resume(tmp_path / "c", target, num_draws=300, progress=False).attrs["thin"] == run.attrs["thin"]


def test_gwg_gets_odd_distances():
    target = saltus.targets.ising((6, 6), 0.35)
    run = saltus.sample(target, saltus.GWG(), num_draws=50, num_warmup=300, progress=False)
    assert run.attrs["thin"] % 2 == 1


def test_chains_apart_are_not_called_too_short():
    """Chain by chain they made thousands of effective draws: that they disagree is no lack of time."""
    rng = np.random.default_rng(0)
    apart = worth({"energy": rng.normal(size=(4, 10_000)) + 5 * np.arange(4)[:, None]})
    slow = worth({"energy": np.cumsum(rng.normal(size=(4, 1000)), axis=1)})
    trial = TrialRun(apart, 10_000, 1e-5, 0.5, 1.0, 4, np.zeros((4, 1)))
    assert apart.rhat > 2
    assert not trial.too_short
    assert replace(trial, worth=slow, steps=1000).too_short
