"""What is to be doubted reaches a script: one warning of our own class, and one word of a fixed list."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import saltus
from saltus.judging import VERDICTS, judge, verdict_of
from saltus.judging.places import places_of, unlabelled_rhat

SPINS = saltus.Target(lambda s: 0.2 * jnp.sum(s[1:] * s[:-1]), saltus.Spin(6))
SETTINGS = {"num_draws": 1000, "num_warmup": 50, "thin": 1, "seed": 1, "progress": False}


def sampled(target, kernel, **settings):
    """A run, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = saltus.sample(target, kernel, **{**SETTINGS, **settings})
    return run, [w for w in caught if w.category is saltus.ConvergenceWarning]


def a_run(s, lp, acceptance=0.5, numeric=1, **attributes):
    """A run of these draws (chains, draws, sites), as `sample` would return it."""
    moved = np.concatenate([np.zeros((*s.shape[:1], 1), int), (s[:, 1:] != s[:, :-1]).sum(-1)], axis=1)
    stats = {"lp": lp, "acceptance_rate": np.full(lp.shape, acceptance), "jump": moved.astype(float), "changed_sites": moved}
    stats["accepted"] = np.ones(lp.shape, bool)
    dims = ("chain", "draw")
    coordinates = {"chain": np.arange(len(s)), "draw": np.arange(s.shape[1])}
    groups = {
        "posterior": xr.Dataset({"s": ((*dims, "site"), s)}, {**coordinates, "site": np.arange(s.shape[2])}),
        "sample_stats": xr.Dataset({name: (dims, x) for name, x in stats.items()}, coordinates),
    }
    told = {"inference_library": "saltus", "complete": 1, "numeric": numeric, "num_values": 2, "rejects": 1, "starts": "random"}
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update({**told, "sampler": "NCG(step_size=1)", **attributes})
    return tree


RNG = np.random.default_rng(0)


def noise(*shape):
    return RNG.normal(size=shape)


def spins(magnetisation, draws=1000, sites=20):
    """(chains, draws, sites), a chain for each magnetisation."""
    up = (1 + np.asarray(magnetisation)[:, None, None]) / 2
    return np.where(RNG.random((len(magnetisation), draws, sites)) < up, 1, -1)


def verdict(run):
    found = verdict_of(judge(run))
    assert found.word in VERDICTS
    return found


def test_a_good_run_is_ok_and_silent():
    run, warned = sampled(SPINS, saltus.NCG(4.0))
    assert run.attrs["verdict"] == "ok"
    assert not warned


def test_steps_that_are_too_small_are_to_be_larger(tmp_path):
    """A chain with acceptance 1 and jump 0 proposes its own state: a smaller step size is the wrong way round."""
    run, warned = sampled(SPINS, saltus.NCG(0.05), num_draws=200, store=tmp_path / "run.zarr")
    assert run.attrs["verdict"] == saltus.open(tmp_path / "run.zarr").attrs["verdict"] == "no moves"
    assert len(warned) == 1
    assert "A larger step_size" in str(warned[0].message)
    assert "smaller" not in str(warned[0].message)
    assert warned[0].filename == __file__
    assert issubclass(saltus.ConvergenceWarning, UserWarning)


def test_a_posterior_that_is_a_point_is_no_alarm():
    certain = saltus.Target(lambda s: 1e3 * jnp.sum(s), saltus.Spin(12))
    run, warned = sampled(certain, saltus.NCG(4.0), num_draws=100)
    assert run.attrs["verdict"] == "point mass"
    assert not warned
    page = str(saltus.summary(run))
    assert "Nothing stands out" in page
    assert "it has all the mass" in page


def test_a_point_that_chains_never_left_is_one():
    """They were started there: nobody knows whether there is anything else."""
    still = np.ones((4, 50, 12), int)
    there = xr.Dataset({"s": (("chain", "site"), still[:, 0])})
    run = a_run(still, np.zeros((4, 50)), acceptance=0.0, starts="given")
    run["start"] = xr.DataTree(there)
    assert verdict(run).word == "no moves"
    assert "smaller step_size" in verdict(run).advice
    run["start"] = xr.DataTree(there * -1)
    assert verdict(run).word == "point mass"
    assert verdict(a_run(still, np.zeros((4, 50)))).word == "point mass"
    assert verdict(a_run(still[..., :2], np.zeros((4, 50)), acceptance=0.0)).word == "no moves"  # by chance, perhaps
    assert verdict(a_run(still, np.zeros((4, 50)), acceptance=0.0, starts="")).word == "no moves"  # a run of 0.1


def test_two_modes_are_called_two_modes():
    run = a_run(spins([0.8, -0.8, 0.8, -0.8]), noise(4, 1000))
    found = verdict(run)
    assert found.word == "modes"
    assert "two modes" in found.advice
    assert "chains 0, 2; 1, 3" in found.advice
    assert "all values reversed" in found.advice
    assert not any("more draws" in doubt for doubt in saltus.summary(run).doubts)
    three = a_run(np.concatenate([spins([0.8, -0.8]), spins([0.8, -0.8]) * np.where(np.arange(20) < 10, 1, -1)]), noise(4, 1000))
    assert "4 modes" in verdict(three).advice
    assert "reversed" not in verdict(three).advice


def test_modes_are_not_seen_where_there_are_none():
    """Chains that wander, chains that agree, and chains whose energies differ too."""
    slow = np.where(np.arange(1000) // 250 % 2 == 0, 0.8, -0.8)[None, :, None] * np.array([1, -1, 1, -1])[:, None, None]
    wandering = np.where(RNG.random((4, 1000, 20)) < (1 + slow * (np.arange(1000)[None, :, None] < 600)) / 2, 1, -1)
    assert not places_of(wandering.swapaxes(1, 2), True).groups
    assert not places_of(spins([0.3] * 4).swapaxes(1, 2), True).groups
    found = verdict(a_run(spins([0.8, -0.8, 0.8, -0.8]), noise(4, 1000) + 5 * np.array([1, -1, 1, -1])[:, None]))
    assert found.word == "chains disagree"


def test_permuted_labels_are_called_label_switching():
    names = np.array([[0, 1, 2], [1, 2, 0], [2, 1, 0], [0, 2, 1]])
    truth = np.repeat([0, 1, 2], [6, 8, 10])
    drawn = np.where(RNG.random((4, 500, 24)) < 0.9, truth, RNG.integers(3, size=(4, 500, 24)))
    switched = np.stack([own[chain] for own, chain in zip(names, drawn, strict=True)])
    lp = noise(4, 500)
    assert verdict(a_run(drawn, lp, numeric=0, num_values=3)).word == "ok"
    found = verdict(a_run(switched, lp, numeric=0, num_values=3))
    assert found.word == "label switching"
    assert saltus.summary(a_run(switched, lp, numeric=0, num_values=3)).doubts == [found.advice]
    for site in range(8):  # four chains that put other sites together are in modes of their own
        switched[:2, :, site] = switched[:2, :, 23]
    assert unlabelled_rhat(switched.swapaxes(1, 2)) > 1.1
    assert verdict(a_run(switched, lp, numeric=0, num_values=3)).word == "modes"


@pytest.mark.parametrize(
    ("word", "change"),
    [
        ("low ess", lambda s, lp: (np.tile(s[:1, :25], (4, 2, 1)), np.tile(lp[:1, :25], (4, 2)))),  # halves that agree
        ("too few draws", lambda s, lp: (s[:, :3], lp[:, :3])),
        ("chains disagree", lambda s, lp: (s, lp + 0.3 * np.arange(4)[:, None])),
        ("undefined", lambda s, lp: (s, np.where(lp > 3, np.nan, lp))),
        ("stuck chains", lambda s, lp: (np.where(np.arange(4)[:, None, None] == 1, s[:, :1], s), lp)),
    ],
)
def test_every_word_is_given_for_its_reason(word, change):
    assert verdict(a_run(*change(spins([0.1] * 4), noise(4, 1000)))).word == word


def test_undefined_proposals_are_a_verdict():
    run = a_run(spins([0.1] * 4), noise(4, 1000), undefined=3)
    assert verdict(run).word == saltus.summary(run).verdict == "undefined"


def test_a_quick_look_sees_the_same(monkeypatch):
    monkeypatch.setattr("saltus.judging.judged._LOOKED_AT", 2**12)
    for run in (a_run(spins([0.8, -0.8, 0.8, -0.8]), noise(4, 1000)), a_run(spins([0.1] * 4, 5000), noise(4, 5000))):
        assert verdict_of(judge(run, quick=True)).word == verdict_of(judge(run)).word


def test_seeds_of_independent_streams():
    seeds = saltus.random.seeds(0, 1000)
    assert len(set(seeds)) == 1000
    assert seeds[:3] == saltus.random.seeds(0, 3)
    assert not set(seeds) & set(saltus.random.seeds(1, 1000))
    assert all(0 <= seed < 2**64 for seed in seeds)
    for bad in ((-1, 2), ("a", 2), (0, 0), (0, 1.5), (True, 2)):
        with pytest.raises(saltus.RunError, match="not usable"):
            saltus.random.seeds(*bad)
