"""An update in shares: the same as in one, and the same bits however many cores and devices take them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import optax
import pytest

import saltus
from saltus import training
from saltus.engine import chains as engine
from saltus.training import split

W = np.random.default_rng(0).normal(size=(40, 40)).astype(np.float32) / 6
DATA = np.random.default_rng(3).choice([-1, 1], size=(90, 40))


def model():
    return saltus.Target(lambda w, s: jax.numpy.sum(jax.numpy.tanh(s @ w)), saltus.Spin(40), W, structure=None)


def train(sampler=None, **settings):
    given = dict(optimiser=optax.sgd(1e-3), num_updates=4, num_steps=2, batch_size=32, buffer_size=64, progress=False)
    return training.pcd(settings.pop("target", None) or model(), DATA, sampler or saltus.NCG(0.5), **{**given, **settings})


@pytest.fixture
def small_shares(monkeypatch):
    monkeypatch.setattr(split, "_LEAST", 0.0)


@pytest.mark.parametrize("settings", [{}, {"retune": True}, {"penalty": training.Energy(0.1)}], ids=str)
def test_shares_add_up_to_the_update(settings, monkeypatch):
    """One update, so that rounding has no time to part the chains. Only what shares are of differs: rounding."""
    assert split.num_shares(*plan_of(32)) == 1  # too little to do
    whole = train(num_updates=1, average=0.5, **settings)
    monkeypatch.setattr(split, "_LEAST", 0.0)
    assert split.num_shares(*plan_of(32)) == 4
    found = train(num_updates=1, average=0.5, **settings)
    np.testing.assert_array_equal(found.buffer, whole.buffer)
    np.testing.assert_allclose(found.params, whole.params, atol=1e-6)
    np.testing.assert_allclose(found.average_params, whole.average_params, atol=1e-6)
    assert not np.array_equal(whole.params, W)
    for name, series in whole.history.items():
        np.testing.assert_allclose(found.history[name], series, rtol=1e-4, atol=1e-4)


def plan_of(batch, num_steps=2):
    from saltus.training.prepare import prepare

    sizes = dict(num_steps=num_steps, batch_size=batch, buffer_size=96, visits="slices")
    start = dict(buffer="uniform", reinitialise=0.0, average=None, seed=0)
    choices = dict(penalty=None, trainable=None, retune=False, stop=True)
    job = prepare("pcd", model(), DATA, saltus.NCG(0.5), optax.sgd(1e-3), sizes, start, choices)
    return job.recipe, job.target, batch


def test_how_many_shares_depends_on_the_batch_and_the_work(small_shares, monkeypatch):
    found = {batch: split.num_shares(*plan_of(batch)) for batch in (7, 15, 16, 30, 50, 64, 90)}
    assert found == {7: 1, 15: 1, 16: 2, 30: 2, 50: 2, 64: 8, 90: 2}
    monkeypatch.setattr(split, "_LEAST", 1e9)
    assert split.num_shares(*plan_of(64)) == 1


def test_the_papers_network_is_split_and_its_lattice_is_not():
    lattice, plan = training.models.boltzmann(saltus.Spin(100)), plan_of(50, num_steps=20)[0]
    assert split.num_shares(plan, lattice, 50) == 1
    assert split.num_shares(plan, training.models.conv_ebm(), 50) == 2


def test_a_share_left_out_is_seen(small_shares, monkeypatch):
    """Planted: the gradient of the first share alone."""
    whole = train(num_updates=1)
    from saltus.training import update

    monkeypatch.setattr(update, "_mean", lambda trees: trees[0])
    split._closed.forget()
    found = train(num_updates=1)
    split._closed.forget()
    assert np.abs(np.asarray(found.params) - np.asarray(whole.params)).max() > 1e-5


def test_a_penalty_that_sees_the_whole_batch_is_not_split(small_shares):
    def spread(params, of_data, of_samples):
        return 0.1 * (of_data.mean() - of_samples.mean()) ** 2

    from saltus.training.train import Split

    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saltus.training.train.Split", lambda *given: made.append(given) or Split(*given))
        train(num_updates=1, penalty=spread)
        assert not made
        train(num_updates=1)
        assert made


def test_a_divergence_ends_it_at_the_same_update(monkeypatch):
    steep = saltus.Target(lambda w, s: jax.numpy.sum((s @ w) ** 2), saltus.Spin(40), W, structure=None)
    made = []
    for least in (1e9, 0.0):
        monkeypatch.setattr(split, "_LEAST", least)
        with pytest.warns(training.DivergenceWarning, match="blown up"):
            made.append(train(target=steep, num_updates=20, optimiser=optax.sgd(1e6)))
    assert made[0].num_updates == made[1].num_updates == len(made[1].history["loss"]) <= 4


def test_it_goes_on_from_a_checkpoint(small_shares, tmp_path):
    whole = train(num_updates=7)
    train(num_updates=3, checkpoint=tmp_path / "c")
    found = train(num_updates=7, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(found.params, whole.params)
    np.testing.assert_array_equal(found.buffer, whole.buffer)


def test_one_core_and_two_make_the_same_bits(small_shares, monkeypatch):
    found = []
    for cores in (1, 2, 4):
        monkeypatch.setattr(engine, "cores", lambda cores=cores: cores)
        found.append(train(num_updates=6, retune=True))
    for each in found[1:]:
        np.testing.assert_array_equal(each.params, found[0].params)
        np.testing.assert_array_equal(each.buffer, found[0].buffer)
        np.testing.assert_array_equal(each.history["loss"], found[0].history["loss"])


@pytest.mark.full
def test_one_core_two_cores_and_two_devices_make_the_same_bits():
    cores = sorted(os.sched_getaffinity(0))[:2]
    asked = [(cores[:1], 1), (cores, 1), (cores, 2)]
    found = [_made(*each) for each in asked]
    assert [each["devices"] for each in found] == [1, 1, 2]
    assert len({each["made"] for each in found}) == 1


def _made(cores, devices):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    script = str(Path(__file__).with_name("split_training.py"))
    code = f"import os, runpy; os.sched_setaffinity(0, {cores}); runpy.run_path({script!r}, run_name='__main__')"
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, env={**os.environ, "XLA_FLAGS": flags}, capture_output=True, text=True, check=True)
    return json.loads(told.stdout)
