"""Six samplers of a third party, outside the package, have every service of a built-in one, or are told why not."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import killed
import numpy as np
import optax
import pytest
import stranger
from killed import KERNELS, target

import saltus
from saltus.testing import check_kernel, stationary

HERE = Path(__file__).parent
EXACT = stationary(target())
STATES = np.asarray(saltus.testing.enumerate_states(target()))


@pytest.fixture(scope="module", params=KERNELS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def whole(name):
    """A run that nobody disturbed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return killed.run(name, num_draws=20_000)


def test_it_is_certified(name):
    check_kernel(KERNELS[name], target(), battery=False)


@pytest.mark.full
def test_it_is_certified_on_the_battery_too(name):
    check_kernel(KERNELS[name], target())


def test_its_draws_have_the_right_means(whole):
    """Of the posterior as it is, without a thought of weights or replicas."""
    x = whole.posterior["s"].values.reshape(-1, 4)
    np.testing.assert_allclose(x.mean(0), EXACT @ STATES, atol=0.03)
    assert x.shape == (40_000, 4)


def test_its_kernel_comes_back(whole, name):
    assert repr(saltus.kernel_of(whole)) == repr(KERNELS[name])
    assert type(saltus.kernel_of(whole)) is type(KERNELS[name])


def test_a_kill_loses_nothing(name, tmp_path):
    """SIGKILL as soon as there is a state, then go on: the same draws, bit for bit."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen([sys.executable, str(HERE / "killed.py"), name, str(tmp_path)], env=environment)
    state, until = tmp_path / "run.ckpt" / "state.npz", time.monotonic() + 120
    while not state.exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert state.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gone_on, again = saltus.resume(tmp_path / "run.ckpt", target(), progress=False), killed.run(name)
    for group in ("posterior", "sample_stats"):
        for variable in again[group].data_vars:
            np.testing.assert_array_equal(gone_on[group][variable].values, again[group][variable].values)


def test_weights_are_kept_beside_what_may_be_averaged():
    run = killed.run("Jumps", num_draws=20_000)
    raw = run["weighted_posterior"]
    weights = np.exp(raw["log_weight"].values)
    mean = (weights[..., None] * raw["s"].values).sum((0, 1)) / weights.sum()
    np.testing.assert_allclose(mean, EXACT @ STATES, atol=0.02)
    assert not np.allclose(raw["s"].values.mean((0, 1)), EXACT @ STATES, atol=0.02)  # the raw chain alone is another law's


def test_instances_race_with_built_in_samplers(name):
    if KERNELS[name].weighted:
        with pytest.raises(saltus.KernelError, match="weight"):
            saltus.sample(target(), ["ncg", KERNELS[name]], progress=False)
        return
    run = saltus.sample(target(), ["ncg", KERNELS[name]], num_draws=200, num_chains=4, seed=1, progress=False)
    rows = saltus.race_of(run).rows
    assert any(type(KERNELS[name]).__name__ in row.sampler for row in rows)
    assert len(rows) == 2


def test_a_declared_class_is_tuned_and_raced_among_all():
    tuned = saltus.tune(target(), stranger.Declared).kernel
    assert isinstance(tuned, stranger.Declared)
    run = saltus.sample(target(), ["auto", stranger.Declared], num_draws=200, seed=1, progress=False)
    told = str(saltus.race_of(run)) + run.attrs["tuning"]
    assert "Declared" in told


def test_a_class_that_declares_nothing_is_told_what_to_declare():
    for call in (saltus.tune, lambda t, k: saltus.sample(t, k, progress=False)):
        with pytest.raises(saltus.KernelError, match="first"):
            call(target(), stranger.Undeclared)


@pytest.mark.parametrize("name", ["Hopper", "GuidedWalk", "TwoReplicas", "ShortPaths", "Undeclared"])
def test_it_trains_a_model(name):
    data = np.random.default_rng(0).integers(0, 2, (64, 4))
    model = saltus.training.models.ising(saltus.Binary(4))
    settings = dict(optimiser=optax.adam(1e-2), num_updates=20, num_steps=2, batch_size=32, buffer_size=64, progress=False)
    trained = saltus.training.pcd(model, data, KERNELS[name], **settings)
    assert trained.complete


def test_training_says_that_it_has_no_use_for_weights():
    data = np.random.default_rng(0).integers(0, 2, (64, 4))
    model = saltus.training.models.ising(saltus.Binary(4))
    with pytest.raises(saltus.KernelError, match="weight"):
        saltus.training.pcd(model, data, KERNELS["Jumps"], optimiser=optax.adam(1e-2), num_updates=5, progress=False)


def test_it_is_found_by_the_command_line(tmp_path):
    """By module and name, as `saltus sample --sampler package.module:MyKernel`."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "saltus", "sample", f"{HERE / 'killed.py'}:TARGET", "--sampler"]
    rest = ["--num-draws", "50", "--num-warmup", "200", "-o", str(tmp_path / "run.nc")]
    done = subprocess.run([*command, "stranger:Hopper", *rest], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert type(saltus.kernel_of(saltus.open(tmp_path / "run.nc"))) is stranger.Hopper


def by_command(sampler, folder, monkeypatch):
    """The exit code of `saltus sample --sampler ...`, called here."""
    from saltus.cli import main

    monkeypatch.chdir(folder)
    rest = ["--num-draws", "50", "--num-warmup", "50", "--thin", "1", "--no-progress", "-o", "run.nc"]
    return main(["sample", f"{HERE / 'killed.py'}:TARGET", "--sampler", sampler, *rest])


BY_COMMAND = {name: f"stranger:{name}" for name in ("GuidedWalk", "TwoReplicas", "Jumps")}
BY_COMMAND["ShortPaths"] = f"{HERE / 'killed.py'}:ASKED"  # a kernel with its settings


@pytest.mark.parametrize("name", BY_COMMAND)
def test_every_one_is_sampled_by_the_command_line(name, tmp_path, monkeypatch):
    assert by_command(BY_COMMAND[name], tmp_path, monkeypatch) == 0
    assert type(saltus.kernel_of(saltus.open(tmp_path / "run.nc"))).__name__ == name


def test_the_command_line_says_what_is_not_declared(tmp_path, monkeypatch, capsys):
    assert by_command("stranger:Undeclared", tmp_path, monkeypatch) == 2
    assert "first" in capsys.readouterr().err
