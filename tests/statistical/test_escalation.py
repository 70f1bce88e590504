"""`sample(target)` of a target with two modes: sixteen chains disagree, the sampler is tempered, every chain sees both."""

import numpy as np
import pytest

import saltus
from saltus.engine.loop import advance, begin


def signs(run):
    """Per chain, whether the magnetisation had both signs."""
    m = run.posterior.s.values.sum(-1)
    return (m > 0).any(1) & (m < 0).any(1)


def test_an_ordered_magnet_shows_both_signs_in_every_chain():
    target = saltus.targets.ising((6, 6), 0.7)
    run = saltus.sample(target, seed=0, num_draws=400, num_warmup=200, progress=False)
    assert "Two modes, or more: 16 chains" in run.attrs["tuning"]
    assert "round trips of 16 ladders" in run.attrs["tuning"]
    assert repr(saltus.kernel_of(run)).startswith("Tempered(Gibbs")
    assert signs(run).all()
    rows = saltus.race_of(run).rows
    assert [row.sampler.split("(")[0] for row in rows] == ["Gibbs", "Tempered"]
    assert rows[0].verdict.startswith("chains disagree")
    assert "evaluations" in run.attrs["tuning"]


def test_four_chains_that_start_in_one_mode_are_not_enough_to_be_fooled():
    """All chains of the run begin at +1; the twelve others do not."""
    target = saltus.targets.ising((6, 6), 0.7)
    run = saltus.sample(target, seed=1, initial=np.ones(36, int), num_draws=400, num_warmup=200, progress=False)
    assert "Two modes, or more: 16 chains" in run.attrs["tuning"]
    assert signs(run).all()


def test_targets_that_do_not_need_it_pay_nothing():
    """One sampler, one program for race and run."""
    for program in (advance, begin):
        program.forget()
    run = saltus.sample(saltus.targets.ising((6, 6), 0.2), seed=0, num_draws=200, num_warmup=100, progress=False)
    assert len(saltus.race_of(run).rows) == 1
    assert "Two modes" not in run.attrs["tuning"]
    assert advance._cache_size() == 1
    assert begin._cache_size() == 1


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_sixteen_by_sixteen(seed):
    run = saltus.sample(saltus.targets.ising((16, 16), 0.6), seed=seed, progress=False)
    assert signs(run).all()
    m = np.abs(run.posterior.s.values.mean(-1))
    assert abs(m.mean() - 0.9736) < 0.01  # Yang's spontaneous magnetisation, (1 - sinh(2K)^-4)^(1/8), at K = 0.6
