"""Limits are kept and never return nothing; Ctrl-C and SIGTERM are limits that a person sets late."""

import importlib
import os
import signal
import time

import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.engine.drive import INTERRUPTED, Presses, drive, interruptible
from saltus.engine.progress import Silent
from saltus.tuning.trial import Chains
from saltus.tuning.tune import start_chains, tune_from
from torture.limit_rows import cheap, dear, limited, slow_to_compile

TARGET = saltus.Target(lambda s: 0.1 * jnp.sum(s), saltus.Spin(4))
SMALL = {"num_draws": 20, "num_warmup": 20, "num_chains": 2, "thin": 1, "progress": False}


class Steps:
    """A job of a million steps."""

    def __init__(self):
        self.made, self.saved = 0, 0

    finished, may_stop, most_steps = False, False, 10

    def compile(self):
        pass

    def advance(self, steps):
        self.made += steps
        return 0.01

    def between(self):
        pass

    def until(self, deadline):
        return deadline

    def save(self):
        self.saved += 1


def test_a_press_while_compiling_acts_after_one_step():
    job = Steps()
    assert drive(job, Silent(), Presses(1), np.inf, 10.0) == INTERRUPTED
    assert (job.made, job.saved) == (1, 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_counted_and_the_second_ends(number):
    before = signal.getsignal(number)
    with interruptible() as presses:
        signal.raise_signal(number)
        assert presses.count == 1
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_a_program_that_handles_sigterm_itself_goes_on_doing_so():
    told = []
    before = signal.signal(signal.SIGTERM, lambda *_: told.append("mine"))
    try:
        with interruptible() as presses:
            signal.raise_signal(signal.SIGTERM)
        assert (told, presses.count) == (["mine"], 0)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_choosing_leaves_a_draw(number, monkeypatch):
    """The race is cut as if time were up, and one step is made."""
    module = importlib.import_module("saltus.run.sample")
    choose, asked = module.choose, []

    def interrupted(sampler, *args, deadline, **options):
        asked.append(deadline)
        if len(asked) == 1:
            os.kill(os.getpid(), number)
            time.sleep(5)
        return choose(saltus.UniformMH(1), *args, deadline=deadline, **options)

    monkeypatch.setattr(module, "choose", interrupted)
    with pytest.warns(UserWarning, match="The interrupt left no time for all of the warm-up"):
        run = saltus.sample(TARGET, **SMALL)
    assert asked[0] == np.inf
    assert asked[1] <= time.monotonic()
    assert run.attrs["incomplete_because"] == "interrupted"
    assert run["posterior"].sizes["draw"] == 1
    assert "1 of 20 steps" in run.attrs["cut"]


def test_annealing_in_no_time_has_one_temperature():
    with pytest.warns(UserWarning, match="left no time for all of the temperatures"):
        found = saltus.training.ais(TARGET, saltus.UniformMH(1), num_temperatures=1000, num_chains=100, time_limit=1e-3)
    assert "1 of 1000" in found.cut
    assert np.isfinite(found.log_z)


def test_annealing_with_time_enough_is_what_it_is_without_a_limit():
    settings = {"num_temperatures": 5, "num_chains": 20}
    found, limited = (saltus.training.ais(TARGET, saltus.UniformMH(1), **settings, time_limit=t) for t in (None, 600.0))
    np.testing.assert_array_equal(found.log_weights, limited.log_weights)
    assert limited.cut == ""


def test_tuning_in_no_time_warns():
    with pytest.warns(UserWarning, match="left no time for all of the tuning"):
        tuned = saltus.tune(TARGET, saltus.NCG, time_limit=1e-3)
    assert isinstance(tuned.kernel, saltus.NCG)


@pytest.mark.parametrize("kind", [saltus.NCG, saltus.PAVG, saltus.UniformMH])
def test_tuning_without_time_for_one_trial_makes_none(kind):
    """A trial of eight steps of a dear target went 22 s beyond a limit of 1 s."""
    chains = start_chains(TARGET, seed=0)
    chains.deadline, chains.pace = time.monotonic() + 5, 1.0
    kernel, report = tune_from(TARGET, kind, chains)
    assert repr(kernel) == repr(kind.first(TARGET))
    assert (chains.steps, chains.cut) == (0, True)
    assert "no time" in str(report)


@pytest.mark.parametrize("kind", [saltus.NCG, saltus.PAVG, saltus.UniformMH])
def test_tuning_ends_with_the_best_of_what_it_tried(kind, monkeypatch):
    """Once time is over no other trial is made: three more of eight steps each were."""
    real, made = Chains.try_out, []

    def the_last(self, *given):
        made.append(real(self, *given))
        self.deadline = time.monotonic()
        return made[-1]

    monkeypatch.setattr(Chains, "try_out", the_last)
    chains = start_chains(TARGET, seed=0)
    chains.deadline = time.monotonic() + 600
    kernel, report = tune_from(TARGET, kind, chains)
    assert len(made) == 1
    assert chains.cut
    if kind is not saltus.PAVG:  # which begins with AVG, and got no further
        (curve,) = report.curves
        best = curve.values[int(np.argmax(curve.jump))]
        assert float(getattr(kernel, curve.name)) == pytest.approx(best)


def test_a_trial_is_as_long_as_there_is_time():
    chains = start_chains(TARGET, seed=0)
    assert chains.length(100) == 100
    chains.deadline, chains.pace = time.monotonic() + 30.5, 1.0
    assert chains.length(100) == 29
    chains.deadline = time.monotonic()
    assert chains.length(100) == 8


@pytest.mark.full
@pytest.mark.parametrize("seconds", [0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("what", ["auto", "tuned", "resume", "tune", "pcd", "ais"])
@pytest.mark.parametrize("make", [cheap, dear, slow_to_compile])
def test_overshoot_is_bounded_and_there_is_always_a_result(make, what, seconds, tmp_path):
    """As in `make torture`: at most a second, a step, and what was being compiled, beyond the limit."""
    assert limited(tmp_path, make, what, seconds) == {"kept": 1}
