"""Chains are stepped in groups, and cores take groups: how many cores there are changes no bit."""

import os
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.engine import chains as engine
from saltus.engine.chains import Chains

W = np.random.default_rng(0).normal(size=(40, 40)).astype(np.float32) / 6


def target():
    """Rounds differently where more chains are stepped at once: a product with a dense matrix."""
    return saltus.Target(lambda s: jnp.sum(jnp.tanh(s @ W)), saltus.Spin(40), structure=None)


@pytest.fixture
def small_groups(monkeypatch):
    """So that a few chains make several groups."""
    monkeypatch.setattr(engine, "_LEAST", 2**8)


def run(cores, monkeypatch, **asked):
    monkeypatch.setattr(engine, "cores", lambda: cores)
    given = dict(num_chains=23, num_draws=30, num_warmup=12, thin=2, seed=3, progress=False)
    return saltus.sample(target(), saltus.NCG(1.0), **{**given, **asked})


def arrays(folder):
    return {name: x.tobytes() for name, x in np.load(folder / "state.npz").items()}


def test_one_two_and_four_cores_draw_the_same_bits(small_groups, monkeypatch, tmp_path):
    made = {}
    for cores in (1, 2, 4):
        folder = tmp_path / f"{cores}.ckpt"
        tree = run(cores, monkeypatch, checkpoint=folder)
        made[cores] = {name: x.values.tobytes() for name, x in (*tree.posterior.items(), *tree.sample_stats.items())}
        made[cores] |= {f"checkpoint {name}": x for name, x in arrays(folder).items() if "carry" in name}
    assert made[1] == made[2] == made[4]
    assert len(made[1]) > 8


def test_a_run_goes_on_with_another_number_of_cores(small_groups, monkeypatch, tmp_path):
    whole = run(2, monkeypatch, num_draws=60)
    run(1, monkeypatch, checkpoint=tmp_path / "run.ckpt")
    monkeypatch.setattr(engine, "cores", lambda: 4)
    longer = saltus.resume(tmp_path / "run.ckpt", target(), num_draws=60, progress=False)
    for name in ("lp", "jump", "acceptance_rate"):
        assert longer.sample_stats[name].values.tobytes() == whole.sample_stats[name].values.tobytes()
    assert (longer.posterior.s.values == whole.posterior.s.values).all()


def test_groups_do_run_at_the_same_time(small_groups, monkeypatch):
    """Two groups meet in a callback that lets none pass alone."""
    meeting, met = threading.Barrier(2, timeout=60), []

    def wait(x):
        if not met:
            meeting.wait()
            met.append(True)
        return np.zeros((), np.float32)

    def log_prob(s):
        return jax.pure_callback(wait, jax.ShapeDtypeStruct((), jnp.float32), s[0], vmap_method="sequential") + 0.1 * jnp.sum(s)

    own = saltus.Target(log_prob, saltus.Spin(200), structure=None, verify=False)
    monkeypatch.setattr(engine, "cores", lambda: 2)
    met.append(True)  # not before the chains step
    chains = _chains(own, saltus.UniformMH(1), 2)
    chains.start(np.zeros((2, 200), np.int32))
    chains.step(2, 0, 0, start=0)
    met.clear()
    chains.step(2, 0, 3, start=0)
    chains.wait()
    assert met
    assert len(chains.carries) == 2


def _chains(own, kernel, num_chains):
    from saltus.engine.arguments import read_settings

    asked = dict(num_draws=8, num_warmup=1, num_chains=num_chains, seed=0, thin=1, keep="draws", keep_warmup=False)
    settings, recording = read_settings(own.space, **asked)
    return Chains(settings, recording, kernel, own, rows=8)


def test_what_fails_in_a_group_is_raised(small_groups, monkeypatch):
    monkeypatch.setattr(engine, "cores", lambda: 2)
    crew = engine.Crew(2)
    crew.begin([lambda: jnp.ones(3), lambda: 1 / 0])
    with pytest.raises(ZeroDivisionError):
        crew.wait()
    crew.begin([lambda: jnp.ones(3)])
    assert len(crew.wait()) == 1


def test_settings_of_one_thread_hold_in_all_of_them(small_groups, monkeypatch):
    monkeypatch.setattr(engine, "cores", lambda: 2)
    with jax.enable_x64(True):
        tree = saltus.sample(target(), saltus.NCG(1.0), num_chains=23, num_draws=5, num_warmup=2, thin=1, progress=False)
    assert tree.sample_stats.lp.dtype == np.float64


@pytest.mark.parametrize(("num_chains", "space", "num"), [(4, saltus.Spin(100), 1), (100, saltus.Spin(100), 2)])
def test_groups_are_large_enough_to_be_worth_a_core(num_chains, space, num):
    assert -(-num_chains // engine.group_size(num_chains, space)) == num


def test_few_chains_are_added_to_fill_groups():
    for num_chains in range(1, 400):
        size = engine.group_size(num_chains, saltus.Spin(5000))
        assert -(-num_chains // size) * size <= 1.05 * num_chains


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_a_process_bound_to_a_core_has_one():
    code = "import os; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])\n"
    code += "from saltus.engine.chains import cores; print(cores())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "1"
