"""Ladders: found from rejections, frozen, and carried through runs, checkpoints and stores."""

import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.tuning.ladder import respaced

WELLS = saltus.Target(lambda s: 1.5 * jnp.abs(jnp.sum(s)) + 0.1 * jnp.sum(s), saltus.Spin(10))  # all up, or all down


def exact_mean():
    """Of the mean spin, by enumeration."""
    s = 2 * np.array(list(np.ndindex(*[2] * 10))) - 1
    f = 1.5 * np.abs(s.sum(1)) + 0.1 * s.sum(1)
    return np.average(s.mean(1), weights=np.exp(f))


def test_rungs_are_respaced_to_an_equal_barrier():
    """A barrier of known shape, Λ(β) = 4 √β, seen through 40 rungs."""
    betas = np.linspace(0, 1, 41)
    found = respaced(betas, np.diff(4 * np.sqrt(betas)), 9)
    np.testing.assert_allclose(found, np.linspace(0, 1, 9) ** 2, atol=0.01)
    level = respaced(betas, np.zeros(40), 5)  # nothing is ever refused
    np.testing.assert_allclose(level, np.linspace(0, 1, 5), atol=1e-6)


@pytest.mark.full
def test_a_ladder_is_found_and_crosses_between_two_wells():
    found = saltus.find_ladder(WELLS, saltus.Gibbs("systematic"), seed=1)
    assert found.ladder[0] == 0
    assert found.ladder[-1] == 1
    assert len(found.ladder) <= 2 * found.swaps.barrier + 4
    assert found.swaps.rejection.max() < 0.8
    assert found.swaps.round_trips > 20
    run = saltus.sample(WELLS, found.kernel, num_draws=2000, num_chains=4, num_warmup=100, progress=False)
    row = saltus.observables(run, {"m": lambda s: s.mean()})["m"]
    assert abs(row.mean - exact_mean()) < 4 * row.error < 0.3
    down = (run.posterior.s.values.sum(-1) < 0).mean(1)
    assert (down > 0.02).all()  # every chain has seen both wells; 14 % of the mass is in the lower one


@pytest.mark.full
def test_by_name_and_by_class():
    run = saltus.sample(WELLS, "tempered", num_draws=1000, num_chains=4, progress=False)
    assert isinstance(saltus.kernel_of(run), saltus.Tempered)
    tuned = saltus.tune(WELLS, saltus.Tempered, seed=3)
    again = saltus.tune(WELLS, saltus.Tempered, seed=3)
    np.testing.assert_array_equal(tuned.kernel.ladder, again.kernel.ladder)
    assert "rungs" in str(tuned.report)
    part = saltus.tune(WELLS, saltus.Tempered(saltus.NCG, [0, 0.2, 1])).kernel
    assert isinstance(part.kernel, saltus.NCG)


def test_swaps_come_with_the_run_and_in_its_summary():
    run = draw(saltus.Tempered(saltus.NCG(2.0), [0, 0.4, 1]), thin=1)
    assert run.attrs["round_trips"] >= 0
    assert 0 <= run.attrs["barrier"] <= 2
    assert "240 steps" in run.attrs["swaps"]  # of three chains, warm-up included
    assert "3 rungs, barrier" in str(saltus.summary(run))


def same(a, b):
    groups = [g for g in a.children if g not in ("kernel", "start")]
    return all(np.array_equal(a[g][v], b[g][v]) for g in groups for v in a[g].data_vars)


def draw(kernel, **settings):
    return saltus.sample(WELLS, kernel, **{**dict(num_draws=60, num_warmup=20, num_chains=3, seed=1, progress=False), **settings})


@pytest.mark.full
def test_replicas_go_on_from_a_checkpoint_bit_for_bit(tmp_path, monkeypatch):
    """Of one kernel for all rungs, and of different ones, one of which keeps a state of its own."""
    monkeypatch.setattr("saltus.engine.recording._MOST_ROWS", 8)
    other = saltus.Target(WELLS.log_prob, WELLS.space)
    parts = {"plain": saltus.NCG(2.0), "kinds": (saltus.NCG(2.0), saltus.Gibbs(), saltus.Cycle([saltus.NCG(1.0), saltus.Gibbs()]))}
    for name, part in parts.items():
        kernel = saltus.Tempered(part, [0, 0.1, 0.4, 1])
        whole = draw(kernel)
        draw(kernel, num_draws=37, checkpoint=tmp_path / name, store=tmp_path / f"{name}.zarr")
        assert same(saltus.resume(tmp_path / name, other, num_draws=60, progress=False), whole)
        assert same(saltus.open(tmp_path / f"{name}.zarr"), whole)
        np.testing.assert_array_equal(saltus.kernel_of(whole).ladder, kernel.ladder)


def test_bad_input():
    with pytest.raises(saltus.KernelError, match="not a kernel"):
        saltus.find_ladder(WELLS, saltus.NCG)
    with pytest.raises(saltus.KernelError, match="which sites interact"):
        saltus.find_ladder(WELLS, saltus.Gibbs("coloured"))
