"""Training watched and steered: callbacks, logs, history, changes on purpose, and what is saved when something fails."""

import dataclasses
import json
import warnings

import jax
import numpy as np
import optax
import pytest

import saltus
from saltus import training
from saltus.engine.files import read_npz
from saltus.training.update import advance

SPACE = saltus.Spin(5)
DATA = np.random.default_rng(3).choice([-1, 1], size=(40, 5))
ADAM = optax.adam(3e-2, eps=1e-7)


def train(sampler=None, *, target=None, data=DATA, **settings):
    given = dict(optimiser=ADAM, num_updates=40, num_steps=3, batch_size=8, buffer_size=24, seed=0, progress=False)
    target = training.models.ising(SPACE) if target is None else target
    return training.pcd(target, data, sampler or saltus.NCG(1.0), **{**given, **settings})


def same(a, b):
    equal = jax.tree.map(lambda x, y: bool(np.array_equal(x, y)), (a.params, a.kernel), (b.params, b.kernel))
    history = all(np.array_equal(a.history[name], b.history[name], equal_nan=True) for name in a.history)
    return all(jax.tree.leaves(equal)) and history and np.array_equal(a.buffer, b.buffer)


# ---- callbacks, logs, history


def test_a_callback_sees_the_training_and_can_stop_it():
    seen = []

    def look(moment):
        seen.append(moment)
        return moment.update >= 20

    found = train(callback=look, report_every=10, average=0.9)
    assert [moment.update for moment in seen] == [10, 20]
    assert found.num_updates == 20
    assert found.ended == "callback"
    assert not found.complete
    last = seen[-1]
    np.testing.assert_array_equal(last.params["coupling"], found.params["coupling"])
    np.testing.assert_array_equal(last.average_params["coupling"], found.average_params["coupling"])
    np.testing.assert_array_equal(last.samples, found.buffer)
    assert last.metrics["data_energy"] == pytest.approx(found.history["data_energy"][10:].mean(), rel=1e-5)
    assert last.metrics["updates_per_second"] > 0
    assert len(last.history["loss"]) == 20
    assert float(last.target.log_prob_of(np.ones(5, np.float32))) == float(found.target.log_prob_of(np.ones(5, np.float32)))
    assert same(train(num_updates=20, average=0.9), found)  # looking changes nothing


def test_the_average_of_0_1_is_there_and_says_what_to_type(tmp_path):
    """0.1 had the model with the averaged parameters under `result.average`, and gave it to `Trained` by place and by name."""
    found, none = train(num_updates=3, average=0.9), train(num_updates=3)
    again = training.load(found.save(tmp_path / "m.npz"), found.target)
    for each in (
        found,
        again,
        dataclasses.replace(found, seconds=0.0),
        training.Trained(found.target, found.average_target, *REST),
    ):
        with pytest.warns(DeprecationWarning, match=r"result\.average_target for the model, result\.average_params"):
            old = each.average
        assert old is each.average_target
        np.testing.assert_array_equal(old.params["coupling"], found.average_params["coupling"])
    with pytest.warns(DeprecationWarning, match="average_params"):
        assert none.average is None
    assert none.average_params is None
    with pytest.raises(saltus.TrainingError, match="No average was kept"):
        _ = none.average_target
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        again.sample(2, num_steps=1, average=True)


REST = (np.zeros((1, 5)), {"jump": np.zeros(0)}, saltus.NCG(1.0))


def test_the_loss_is_the_difference_of_energies():
    found = train(num_updates=5)
    np.testing.assert_allclose(found.history["loss"], found.history["data_energy"] - found.history["model_energy"], atol=1e-4)


def test_a_callback_that_fails_leaves_a_checkpoint_that_goes_on(tmp_path):
    def fail(moment):
        if moment.update == 20:
            raise ZeroDivisionError("one over none")

    with pytest.raises(saltus.TrainingError, match=r"(?s)failed after update 20.*ZeroDivisionError: one over none") as failed:
        train(callback=fail, report_every=10, checkpoint=tmp_path / "c")
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    assert failed.value.trained.num_updates == 20
    assert len(training.history(tmp_path / "c")["loss"]) == 20
    assert same(train(checkpoint=tmp_path / "c"), train())


def test_the_log_has_a_line_for_every_report_and_none_twice(tmp_path):
    log = tmp_path / "train.jsonl"
    settings = dict(report_every=10, checkpoint=tmp_path / "c", log=log)
    train(num_updates=30, **settings)
    found = train(num_updates=45, **settings)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["update"] for line in lines] == [10, 20, 30, 40, 45]
    assert len({line["run"] for line in lines}) == 1
    assert lines[3]["model_energy"] == pytest.approx(found.history["model_energy"][30:40].mean(), rel=1e-4)
    with open(log, "a") as file:
        file.write('{"run": "x", "upd')  # as a kill leaves it
    train(num_updates=45, **settings)
    assert [json.loads(line)["update"] for line in log.read_text().splitlines()] == [10, 20, 30, 40, 45]


def test_a_log_of_another_training_and_other_files_are_left_alone(tmp_path):
    log = tmp_path / "train.jsonl"
    train(num_updates=5, log=log)
    before = log.read_bytes()
    with pytest.raises(saltus.StorageError, match="another training"):
        train(num_updates=5, log=log)
    assert log.read_bytes() == before
    train(num_updates=6, log=log, overwrite=True)
    assert json.loads(log.read_text())["update"] == 6
    (tmp_path / "thesis.txt").write_text("dear diary\n")
    for overwrite in (False, True):
        with pytest.raises(saltus.StorageError, match="not a log"):
            train(num_updates=5, log=tmp_path / "thesis.txt", overwrite=overwrite)
    assert (tmp_path / "thesis.txt").read_text() == "dear diary\n"
    with pytest.raises(saltus.StorageError, match="no state"):
        training.history(tmp_path)


def test_the_terminal_line_has_the_figures_and_the_time_left(capsys):
    train(num_updates=30, progress=True)
    text = capsys.readouterr().err
    for word in ("loss", "energy of data", "of samples", "accept", "jump", "updates/s", "left"):
        assert word in text


# ---- changes on purpose


CHANGES = {
    "optimiser": dict(optimiser=optax.adam(1e-3, eps=1e-7)),
    "num_steps": dict(num_steps=5),
    "sampler": dict(sampler=saltus.NCG(0.5), retune=True),
    "data": dict(data=DATA[:-1]),
    "penalty": dict(penalty=training.Energy(0.1)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_has_to_be_named_and_is_kept(name, tmp_path):
    folder = tmp_path / "c"
    first = train(num_updates=20, checkpoint=folder)
    with pytest.raises(saltus.StorageError, match=f'change="{name}"'):
        train(**CHANGES[name], checkpoint=folder)
    found = train(**CHANGES[name], checkpoint=folder, change=name)
    assert found.num_updates == 40
    assert found.settings["changes"][0]["update"] == 20
    assert name in found.settings["changes"][0]["changed"]
    np.testing.assert_array_equal(found.history["loss"][:20], first.history["loss"])
    assert not same(found, train())
    with pytest.raises(saltus.StorageError, match=name):
        train(checkpoint=folder)  # the old call is another one now
    assert same(train(**CHANGES[name], checkpoint=folder, change=name), found)


def saved(folder):
    return read_npz(folder / "state.npz", "training state")[1]


def test_the_optimisers_state_is_kept_where_it_fits(tmp_path):
    """Nothing but the learning rate changes: the moments of Adam go on. Of another kind they begin anew."""
    for name in ("same", "other"):
        train(num_updates=20, checkpoint=tmp_path / name)
    slower = train(optimiser=optax.adam(0.0, eps=1e-7), checkpoint=tmp_path / "same", change="optimiser", num_updates=25)
    np.testing.assert_array_equal(slower.params["coupling"], train(num_updates=20).params["coupling"])
    assert int(saved(tmp_path / "same")["optimiser.0"]) == 25  # the count of Adam
    train(optimiser=optax.sgd(1e-3), checkpoint=tmp_path / "other", change="optimiser")
    assert not [name for name in saved(tmp_path / "other") if name.startswith("optimiser.")]


def test_a_kill_between_the_change_and_its_first_state_changes_nothing(tmp_path):
    """run.npz says what is asked from now on before there is any state that was made so."""
    import shutil

    new = dict(optimiser=optax.sgd(1e-2), num_steps=4, change=("optimiser", "num_steps"))
    train(num_updates=20, checkpoint=tmp_path / "c")
    shutil.copy(tmp_path / "c" / "state.npz", tmp_path / "old.npz")
    found = train(**new, checkpoint=tmp_path / "c")
    shutil.copy(tmp_path / "old.npz", tmp_path / "c" / "state.npz")  # as if killed before it was written
    assert same(train(**new, checkpoint=tmp_path / "c"), found)


def test_a_training_that_diverged_goes_on_with_another_optimiser(tmp_path):
    with pytest.warns(training.DivergenceWarning):
        train(optimiser=optax.sgd(1e6), checkpoint=tmp_path / "c", num_updates=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = train(optimiser=optax.sgd(0.0), checkpoint=tmp_path / "c", num_updates=60, change="optimiser")
    assert again.settings["changes"]


# ---- one compilation


def test_calls_in_chunks_compile_once(monkeypatch):
    train(num_updates=2)
    before = advance._cache_size()
    compiled = []
    from jax._src import compiler

    compile_or_get_cached = compiler.compile_or_get_cached
    monkeypatch.setattr(compiler, "compile_or_get_cached", lambda *a, **k: compiled.append(1) or compile_or_get_cached(*a, **k))
    found = train(num_updates=3, optimiser=optax.adam(3e-2, eps=1e-7))
    found = train(num_updates=3, optimiser=optax.adam(3e-2, eps=1e-7), target=found.target, buffer=DATA[:24])
    assert advance._cache_size() == before + 1  # the other kind of beginning
    compiled.clear()
    train(num_updates=3, optimiser=optax.adam(3e-2, eps=1e-7), target=found.target, buffer=DATA[:24])
    assert not compiled
    train(num_updates=3, optimiser=optax.adam(4e-2, eps=1e-7))
    assert advance._cache_size() == before + 2  # planted: another learning rate is another program


# ---- stable by default


def test_a_blow_up_is_seen():
    """FINDINGS 2.7."""
    data = np.random.default_rng(0).integers(2, size=(200, 8))
    with pytest.warns(training.DivergenceWarning, match="blown up"):
        found = train(target=training.models.rbm(saltus.Binary(8), 4), data=data, optimiser=optax.sgd(1e6))
    assert found.num_updates <= 3
    assert found.ended == "diverged"


def test_retuned_step_sizes_stay_where_they_make_a_difference():
    """FINDINGS 2.7: on nearly independent data larger is never worse, and nothing held them back."""
    target = saltus.Target(lambda p, s: p * s[0], SPACE, np.float32(0.0), structure=None)
    found = train(saltus.NCG(1e3), target=target, optimiser=optax.sgd(0.0), num_updates=600, retune=True)
    assert found.history["step_size"].max() <= 1e4 * 4.01  # the unit of spins is 2, squared
    assert np.isfinite(found.history["step_size"]).all()


def test_retuning_looks_at_where_chains_are_after_k_steps():
    """With K = 2, a kernel that flips everything at each step jumps far and gets nowhere: it is the other half that is followed."""
    from saltus.training.retune import Told, read_retune

    halves = read_retune(True, saltus.NCG(1.0), SPACE)
    key = jax.random.key(0)
    sign = float(halves._signs(key)["step_size"])
    far = Told(np.array([10.0, 1.0]), np.array([1.0, 1.0]), np.array([0.0, 2.0]))
    moved = float(halves.learn(key, far, 2).at["step_size"] - halves.at["step_size"])
    assert moved * sign < 0


def test_penalties_on_f_and_of_ones_own_keep_it_small():
    settings = dict(num_updates=200, optimiser=optax.sgd(0.02))
    loose, tight = train(**settings), train(**settings, penalty=training.Energy(1.0))
    assert np.abs(tight.history["data_energy"][-50:]).mean() < 0.7 * np.abs(loose.history["data_energy"][-50:]).mean()

    def energy(params, of_data, of_samples):
        return (of_data**2).mean() + (of_samples**2).mean()

    both = train(**settings, penalty=[energy, training.L1(0.0, of=lambda p: p["coupling"])])
    np.testing.assert_allclose(both.params["coupling"], tight.params["coupling"], atol=1e-4)


# ---- bad input


BAD = {
    "callback": ("not a function", dict(callback=3)),
    "returns": ("returned something", dict(callback=lambda moment: "stop", report_every=5)),
    "report_every": ("report_every", dict(report_every=0)),
    "change": ("change", dict(change="everything")),
    "learning_rate": ("new optimiser", dict(change="learning_rate")),
    "vector": ("not one number", dict(penalty=lambda p, a, b: a)),
    "failing": ("penalty failed", dict(penalty=lambda p: p)),
    "class": ("`penalty` is not known", dict(penalty=training.Energy)),
    "weight": ("weight", dict(penalty=[None])),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    words, settings = BAD[name]
    with pytest.raises(saltus.TrainingError, match=words if name != "weight" else "not known"):
        train(**settings)
    with pytest.raises(saltus.TrainingError, match="weight"):
        training.Energy(-1.0)
