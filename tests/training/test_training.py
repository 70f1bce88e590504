"""Training: the update by hand, one compilation, divergence noticed, kills survived, bad input refused."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import killable_training
import numpy as np
import optax
import pytest

import saltus
from saltus import training
from saltus._record import record
from saltus.kernels.metropolis import describe
from saltus.target import Point
from saltus.training.buffer import Visits
from saltus.training.retune import Told
from saltus.training.update import advance

SPACE = saltus.Spin(5)
DATA = np.random.default_rng(3).choice([-1, 1], size=(40, 5))
ADAM = optax.adam(3e-2, eps=1e-7)


def coupling(params):
    return params["coupling"]


@record
class Roll(saltus.Kernel):
    """No sampler, but every number it makes can be told beforehand: a step moves every site's code to the next site."""

    uses_local_model = False

    def step(self, key, target, x):
        y = Point(jnp.roll(x.codes, 1), target.value(jnp.roll(x.codes, 1)), x.local)
        one = jnp.ones(())
        return y, describe(target.space, x, y, one > 0, one, jnp.int32(0))


def train(sampler=None, *, target=None, data=DATA, **settings):
    given = dict(optimiser=ADAM, num_updates=20, num_steps=3, batch_size=8, buffer_size=24, seed=0, progress=False)
    target = training.models.ising(SPACE) if target is None else target
    return training.pcd(target, data, sampler or saltus.NCG(1.0), **{**given, **settings})


def by_hand(method, num_updates, steps, weight, decay):
    """PCD on f = xᵀJx + h·x with Adam and an L1 subgradient, in numpy; the samples are data or buffer, rolled."""
    target = training.models.ising(SPACE)
    G, h = (np.asarray(target.params[name], np.float64) for name in ("coupling", "field"))
    buffer = np.array(train(Roll(), num_updates=0).buffer, np.float64) if method == "pcd" else None
    which_data, which_chains = Visits("slices", 40, 8, 0, 0), Visits("slices", 24, 8, 0, 1)
    moments = [[np.zeros_like(p), np.zeros_like(p)] for p in (G, h)]
    average, energies = [G, h], []
    off = 1 - np.eye(5)
    for n in range(num_updates):
        x = DATA[which_data.at(n)].astype(np.float64)
        y = np.roll(x if buffer is None else buffer[which_chains.at(n)], steps, axis=1)
        if buffer is not None:
            buffer[which_chains.at(n)] = y
        J = (G + G.T) / 2 * off
        energies.append(-np.mean(np.einsum("bi,ij,bj->b", x, J, x) + x @ h))
        grads = [off * (y.T @ y - x.T @ x) / 8 + weight * np.sign((G + G.T) / 2), y.mean(0) - x.mean(0)]
        new = []
        for p, g, m in zip((G, h), grads, moments, strict=True):
            m[0], m[1] = 0.9 * m[0] + 0.1 * g, 0.999 * m[1] + 0.001 * g**2
            new.append(p - 3e-2 * m[0] / (1 - 0.9 ** (n + 1)) / (np.sqrt(m[1] / (1 - 0.999 ** (n + 1))) + 1e-7))
        G, h = new
        average = [decay * a + (1 - decay) * p for a, p in zip(average, new, strict=True)]
    return G, h, average, energies


@pytest.mark.parametrize("method", ["pcd", "cd"])
def test_an_update_is_the_update_by_hand(method):
    settings = dict(optimiser=ADAM, num_updates=7, num_steps=3, batch_size=8, seed=0, progress=False, average=0.8)
    settings |= dict(penalty=training.L1(0.05, of=coupling, symmetric=True), **(dict(buffer_size=24) if method == "pcd" else {}))
    found = getattr(training, method)(training.models.ising(SPACE), DATA, Roll(), **settings)
    G, h, average, energies = by_hand(method, 7, 3, 0.05, 0.8)
    np.testing.assert_allclose(found.params["coupling"], G, atol=2e-5)
    np.testing.assert_allclose(found.params["field"], h, atol=2e-5)
    np.testing.assert_allclose(found.average_params["coupling"], average[0], atol=2e-5)
    np.testing.assert_allclose(found.history["data_energy"], energies, atol=2e-4)
    other = by_hand(method, 7, 2, 0.05, 0.8)[0]  # planted: another K
    assert np.abs(other - G).max() > 1e-3
    other = by_hand(method, 7, 3, 0.1, 0.8)[0]  # planted: Σ|J| counted twice
    assert np.abs(other - G).max() > 1e-3


def test_one_compilation_serves_every_k_and_every_value_of_the_parameters():
    settings = dict(penalty=training.L1(0.05, of=coupling, symmetric=True), average=0.9)
    before = advance._cache_size()
    train(**settings)
    assert advance._cache_size() == before + 1
    train(**settings, num_steps=50, seed=3, num_updates=700)
    train(saltus.NCG(0.3), **{**settings, "penalty": training.L1(0.0, of=coupling, symmetric=True)}, reinitialise=0.3)
    train(target=training.models.ising(SPACE, seed=9), **settings)
    train(target=training.models.ising(SPACE).replace(params={"coupling": jnp.ones((5, 5)), "field": jnp.ones(5)}), **settings)
    assert advance._cache_size() == before + 1


def test_slices_visit_every_row_once_a_pass_in_another_order():
    visits = Visits("slices", 21, 5, 0, 0)
    passes = visits.rows(0, 8).reshape(2, 20)
    assert all(len(set(rows)) == 20 for rows in passes)
    assert not np.array_equal(*passes)
    assert np.array_equal(Visits("slices", 21, 5, 0, 0).rows(6, 8), visits.rows(6, 8))
    drawn = Visits("random", 21, 5, 0, 0).rows(0, 50)
    assert all(len(set(rows)) == 5 for rows in drawn)
    assert len(np.unique(drawn)) == 21


def test_chains_begin_where_they_are_told_and_begin_anew():
    states = np.array([[1, 1, 1, 1, 1], [-1, -1, -1, -1, 1]])
    found = train(buffer=states, num_updates=0, buffer_size=200).buffer
    assert {tuple(row) for row in found} == {tuple(row) for row in states}
    ones = np.ones((40, 5), int)
    assert (train(data=ones, buffer="marginals", num_updates=0).buffer == 1).all()
    assert abs(train(buffer="uniform", num_updates=0, buffer_size=4000).buffer.mean()) < 0.05
    restarted = train(Roll(), buffer=states[:1], reinitialise=1.0)  # all ones, rolled, is all ones
    assert (restarted.buffer == 1).all()
    kept = train(Roll(), buffer=states[1:], reinitialise=0.0, num_updates=3, buffer_size=8)
    assert np.array_equal(np.sort(kept.buffer), np.sort(states[1:].repeat(8, 0)))


def test_parts_that_are_not_trained_stay_and_the_proximal_penalty_makes_zeros():
    start = training.models.ising(SPACE)
    found = train(trainable={"coupling": True, "field": False})
    assert np.array_equal(found.params["field"], start.params["field"])
    assert not np.array_equal(found.params["coupling"], start.params["coupling"])
    penalty = training.L1(3.0, of=coupling, symmetric=True, learning_rate=3e-2)
    sparse = train(penalty=penalty, num_updates=200)
    J = np.asarray(sparse.params["coupling"])
    assert (np.abs(J + J.T) < 1e-6).mean() > 0.5


def test_the_moments_of_the_model_become_those_of_the_data():
    """Where the likelihood is largest, E x and E x x' agree; here all of them are enumerated."""
    truth = training.models.ising(SPACE, np.random.default_rng(1).normal(size=(5, 5)) / 4, 0.3)
    states = np.asarray(SPACE.show(SPACE.enumerate()), float)
    data = states[np.random.default_rng(0).choice(32, 4000, p=saltus.testing.stationary(truth))].astype(int)
    schedule = optax.exponential_decay(3e-2, 200, 0.6)
    found = train(data=data, optimiser=optax.adam(schedule), num_updates=1500, batch_size=200, buffer_size=1000, average=0.99)
    p = saltus.testing.stationary(found.average_target)
    second = (states * p[:, None]).T @ states
    np.testing.assert_allclose(p @ states, data.mean(0), atol=0.03)
    np.testing.assert_allclose(second, data.T @ data / len(data), atol=0.03)


@pytest.mark.parametrize("sampler", ["auto", "pavg", saltus.AVG, saltus.GWG, "block-gibbs", saltus.Gibbs()], ids=str)
def test_every_sampler_trains(sampler):
    found = train(sampler, num_updates=5)
    assert found.complete
    assert np.isfinite(found.history["model_energy"]).all()


def test_flax_style_plain_and_equinox_parameters():
    import equinox as eqx

    plain = saltus.Target(lambda p, s: jnp.dot(s, p[0] * p[1]), SPACE, (jnp.ones(5), 2.0))
    assert train(target=plain).complete
    with_integers = saltus.Target(lambda p, s: jnp.sum(s * p["w"]) / p["n"], SPACE, {"w": jnp.zeros(5), "n": jnp.int32(3)})
    assert int(train(target=with_integers).params["n"]) == 3
    net = training.models.network(eqx.nn.MLP(5, "scalar", 8, 1, key=jax.random.key(0)), SPACE)
    found = train(target=net)
    assert float(training.models.module_of(found.target)(jnp.ones(5))) == float(found.target.log_prob_of(jnp.ones(5)))


# ---- retuning


def test_retuning_finds_a_step_size_that_moves():
    target = training.models.ising(saltus.Spin(20), seed=1)
    data = np.random.default_rng(0).choice([-1, 1], size=(100, 20))
    settings = dict(target=target, data=data, num_updates=300, batch_size=20, optimiser=optax.sgd(1e-3))
    for start in (1e-2, 1e4):
        found = train(saltus.NCG(start), retune=True, **settings)
        assert float(found.kernel.step_size) > 1
        assert found.history["jump"][-50:].mean() > 12  # of the 14 that are possible here
        assert abs(found.history["step_size"][0] / start - 1) < 1e-5
    assert train(saltus.NCG(1e-2), **settings).history["jump"].mean() < 1  # planted: without it, chains stand still


def test_the_papers_climb_turns_round_when_the_jump_falls():
    """Jump grows, falls (back), grows (further back, below 1 by a difference), falls (up again)."""
    from saltus.training.retune import read_retune

    climb = read_retune("paper", saltus.PAVG(0.2, np.eye(5)), saltus.Binary(5))
    scales = []
    for jump in (1.0, 2.0, 1.5, 1.8, 1.7):
        for _ in range(20):
            climb = climb.learn(None, Told(jnp.array([jump]), None, None), jnp.int32(5))
        scales.append(float(climb.centre()["scale"]))
    back = 1.25 / (1 + 0.25 * 0.99)
    below = back / (1 + 0.25 * 0.99**2)
    np.testing.assert_allclose(scales, [1, 1.25, back, below, below + 0.25 * 0.99**3], rtol=1e-5)


def test_up_is_up_for_negative_scales_too():
    from saltus.training.retune import read_retune

    climb = read_retune("paper", saltus.PAVG(0.2, np.eye(5), scale=-2.0), saltus.Binary(5))
    for jump in (1.0, 2.0):
        climb = climb.learn(None, Told(jnp.array([jump]), None, None), jnp.int32(100))
    assert float(climb.centre()["scale"]) == pytest.approx(-2 / 1.25)


# ---- divergence


def test_a_loss_that_is_not_finite_ends_training_with_the_last_good_parameters():
    target = saltus.Target(lambda p, s: p * jnp.sum(s) + jnp.log(1.5 - p), SPACE, jnp.asarray(1.0))
    ones = np.ones((40, 5), int)
    with pytest.warns(training.DivergenceWarning, match="not finite"):
        found = train(target=target, data=ones, optimiser=optax.sgd(0.1), num_updates=100)
    assert np.isfinite(found.params)
    assert not found.complete
    assert found.num_updates < 100
    assert "DIVERGED" in repr(found)


def test_chains_that_stand_still_end_training():
    with pytest.warns(training.DivergenceWarning, match="stood still(.|\n)*larger step size"):
        found = train(saltus.NCG(1e-3), num_updates=500)
    assert found.num_updates == 50
    again = train(saltus.NCG(1e-3), num_updates=80, stop_on_divergence=False)
    assert again.complete
    assert "stood still" in again.diverged


def test_samples_that_cannot_follow_end_training():
    """A kernel that moves, but does not sample the model."""
    with pytest.warns(training.DivergenceWarning, match="drifted apart"):
        found = train(Roll(), data=np.ones((40, 5), int), buffer=DATA, num_updates=3000)
    assert found.num_updates < 3000


# ---- checkpoints


def same(a, b):
    trees = [(r.params, r.average_params, r.kernel) for r in (a, b)]
    equal = jax.tree.map(lambda x, y: bool(np.array_equal(x, y)), *trees)
    history = all(np.array_equal(a.history[name], b.history[name]) for name in a.history)
    return all(jax.tree.leaves(equal)) and history and np.array_equal(a.buffer, b.buffer)


@pytest.mark.parametrize(("kills", "updates"), [(4, 4000), pytest.param(100, 200_000, marks=pytest.mark.full)])
def test_killed_training_ends_with_the_same_bits(kills, updates, tmp_path):
    """Real SIGKILLs, while a callback, a log and data by function are at work and the optimiser changes half-way."""
    rng, state = random.Random(0), tmp_path / "killed" / "train.ckpt" / "state.npz"
    state.parent.parent.mkdir()
    cache = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    command = [sys.executable, str(Path(killable_training.__file__)), str(state.parent.parent), str(updates)]
    alive = 0
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **cache})
        before = state.stat().st_mtime_ns if state.exists() else 0
        while process.poll() is None and (not state.exists() or state.stat().st_mtime_ns == before):
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.1))
        alive += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        if alive and process.returncode == 0:
            break  # it was done before it could be killed again
    assert alive >= 3
    last = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **cache}, timeout=600, check=True)
    assert last.stdout.strip() == "finished"
    (tmp_path / "whole").mkdir()
    whole = killable_training.run(tmp_path / "whole", updates)
    found = killable_training.run(state.parent.parent, updates)  # finished: read, not run again
    assert same(found, whole)
    assert (
        found.settings["changes"] == whole.settings["changes"] == [{"update": updates // 2, "changed": ["num_steps", "optimiser"]}]
    )
    logs = [(tmp_path / name / "log.jsonl").read_text().splitlines() for name in ("killed", "whole")]
    lines = [[{**json.loads(line), "run": "", **dict.fromkeys(CLOCKS)} for line in log] for log in logs]
    assert lines[0] == lines[1]
    longer = [killable_training.run(tmp_path / name, updates, num_updates=updates + 100) for name in ("killed", "whole")]
    assert same(*longer)


CLOCKS = ("seconds", "updates_per_second")


def test_neighbours_of_a_checkpoint_are_left_alone(tmp_path):
    precious = [tmp_path / f"c.{end}" for end in ("old", "aside")]
    for folder in precious:
        folder.mkdir()
        (folder / "precious.txt").write_text("a year of work")
    for overwrite in (False, True):
        train(num_updates=2, checkpoint=tmp_path / "c", overwrite=overwrite)
        assert all((folder / "precious.txt").read_text() == "a year of work" for folder in precious)
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "c", *precious])


def test_a_time_limit_leaves_a_checkpoint_that_goes_on(tmp_path):
    with pytest.warns(UserWarning, match=r"`time_limit` ended training after \d+ of 1000000 updates") as told:
        part = train(num_updates=10**6, time_limit=1e-3, checkpoint=tmp_path / "c")
    assert len([w for w in told if issubclass(w.category, UserWarning)]) == 1  # and one for a deprecated model
    assert not part.complete
    assert part.num_updates >= 1
    whole = train(num_updates=part.num_updates + 30)
    assert same(train(num_updates=part.num_updates + 30, checkpoint=tmp_path / "c"), whole)


def other_model():
    return training.models.ising(SPACE, seed=4)


OTHERS = {
    "log_prob": dict(target=other_model()),
    "num_steps": dict(num_steps=4),
    "data": dict(data=DATA[:-1]),
    "sampler": dict(sampler=saltus.NCG(2.0)),
    "optimiser": dict(optimiser=optax.adam(1e-2)),
    "penalty": dict(penalty=training.L1(0.1, of=coupling)),
    "space": dict(target=training.models.ising(saltus.Binary(5)), data=(DATA + 1) // 2),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(a training, its checkpoint)"""
    folder = tmp_path_factory.mktemp("trained") / "c"
    return train(checkpoint=folder), folder


@pytest.mark.parametrize("name", OTHERS)
def test_a_checkpoint_of_other_training_is_refused_and_left_alone(name, tmp_path, trained):
    first = trained[0]
    shutil.copytree(trained[1], tmp_path / "c")
    before = {p.name: p.read_bytes() for p in (tmp_path / "c").iterdir()}
    with pytest.raises(saltus.StorageError, match=name):
        train(**OTHERS[name], checkpoint=tmp_path / "c")
    assert {p.name: p.read_bytes() for p in (tmp_path / "c").iterdir()} == before
    assert same(train(checkpoint=tmp_path / "c"), first)
    assert train(**OTHERS[name], checkpoint=tmp_path / "c", overwrite=True).complete


def test_what_is_no_checkpoint_is_refused(tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "thesis.tex").write_text("dear diary")
    with pytest.raises(saltus.StorageError, match="not a checkpoint"):
        train(checkpoint=tmp_path / "c", overwrite=True)
    saltus.sample(
        training.models.ising(SPACE), saltus.NCG(1.0), num_draws=5, num_warmup=5, checkpoint=tmp_path / "s", progress=False
    )
    with pytest.raises(saltus.StorageError, match="'run'"):
        train(checkpoint=tmp_path / "s")
    train(checkpoint=tmp_path / "t")
    with pytest.raises(saltus.StorageError, match="'training'"):
        saltus.resume(tmp_path / "t", training.models.ising(SPACE))
    shutil.copy(tmp_path / "t" / "run.npz", tmp_path / "t" / "state.npz")
    with pytest.raises(saltus.StorageError, match=r"state\.npz cannot be read"):
        train(checkpoint=tmp_path / "t")


def test_a_trained_model_saves_loads_and_samples(tmp_path):
    found = train(average=0.9, retune=True)
    path = found.save(tmp_path / "model.npz")
    again = training.load(path, other_model())
    assert same(again, found)
    run = saltus.sample(again.target, again.kernel, num_draws=10, num_warmup=5, progress=False)
    assert run.posterior.s.shape == (4, 10, 5)
    with pytest.raises(saltus.StorageError, match="exists"):
        found.save(path)
    with pytest.raises(saltus.StorageError, match=r"(?s)is not there.*Trained\.save"):
        training.load(tmp_path / "nothing.npz", found.target)
    with pytest.raises(saltus.StorageError, match="another model"):
        training.load(path, training.models.ising(saltus.Spin(6)))
    with pytest.raises(saltus.StorageError, match="float32"):
        training.load(path, training.models.rbm(SPACE, 2))


# ---- bad input


BAD = {
    "spins-for-bits": (saltus.SpaceError, "spins", dict(target=training.models.ising(saltus.Binary(5)))),
    "width": (saltus.SpaceError, "shape", dict(data=DATA[:, :4])),
    "one-state": (saltus.SpaceError, "one state a row", dict(data=DATA[0])),
    "images": (saltus.SpaceError, r"data\.reshape\(len\(data\), -1\)", dict(data=DATA.reshape(-1, 5, 1))),
    "labels": (saltus.SpaceError, "the states alone", dict(data=(DATA, np.zeros(40)))),
    "path": (saltus.SpaceError, "numpy.load", dict(data="usps.npz")),
    "grey": (saltus.SpaceError, r"data > 127", dict(target=training.models.boltzmann(saltus.Binary(5)), data=127 * (DATA + 1))),
    "levels": (saltus.SpaceError, r"data > 0\.5", dict(target=training.models.boltzmann(saltus.Binary(5)), data=0.4 * (DATA + 1))),
    "maker": (saltus.TrainingError, r"adam\(1e-3\)", dict(optimiser=optax.adam)),
    "empty": (saltus.SpaceError, "empty", dict(data=DATA[:0])),
    "nan": (saltus.SpaceError, "NaN", dict(data=np.where(np.arange(5) == 2, np.nan, DATA))),
    "few-rows": (saltus.TrainingError, "fewer rows than a batch", dict(data=DATA[:5])),
    "small-buffer": (saltus.TrainingError, "(?s)buffer has fewer rows.*buffer_size=8", dict(buffer_size=4)),
    "no-params": (saltus.TrainingError, "no parameters", dict(target=saltus.Target(jnp.sum, SPACE))),
    "no-optimiser": (saltus.TrainingError, "not an optimiser", dict(optimiser=3e-4)),
    "masked-optimiser": (saltus.TrainingError, "does not fit", dict(optimiser=optax.masked(optax.adam(1e-3), {"weights": True}))),
    "no-steps": (saltus.TrainingError, "num_steps", dict(num_steps=0)),
    "rate": (saltus.TrainingError, "reinitialise", dict(reinitialise=2.0)),
    "decay": (saltus.TrainingError, "average", dict(average=1.0)),
    "visits": (saltus.TrainingError, "visits", dict(visits="sometimes")),
    "buffer": (saltus.TrainingError, "buffer", dict(buffer="noise")),
    "penalty": (saltus.TrainingError, "penalty", dict(penalty=0.01)),
    "penalised": (saltus.TrainingError, "does not choose", dict(penalty=training.L1(0.01, of=lambda p: p["weights"]))),
    "trainable": (saltus.TrainingError, "trainable", dict(trainable={"weights": True})),
    "nothing-trained": (saltus.TrainingError, "nothing to train", dict(trainable=False)),
    "retune": (saltus.TrainingError, "retune", dict(retune="radius")),
    "sampler": (saltus.KernelError, "did you mean 'pavg'", dict(sampler="pavgg")),
    "other-sites": (saltus.KernelError, "does not fit", dict(sampler=saltus.PAVG(0.2, np.eye(4)))),
    "folder": (saltus.StorageError, "no such folder", dict(checkpoint="/nowhere/at/all")),
    "undefined": (
        saltus.TrainingError,
        "not finite at the data",
        dict(target=saltus.Target(lambda p, s: p * jnp.log(jnp.sum(s) - 9), SPACE, jnp.asarray(1.0))),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    error, words, settings = BAD[name]
    with pytest.raises(error, match=words):
        train(**settings)


def test_f_that_returns_a_vector():
    with pytest.raises(saltus.TargetError, match="one number"):
        saltus.Target(lambda p, s: p * s, SPACE, jnp.ones(5))
