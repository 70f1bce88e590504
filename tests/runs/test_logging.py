"""Who watches a run without a terminal: Python's logger "saltus", and what it will take before it begins."""

import logging

import jax.numpy as jnp
import pytest

import saltus
from saltus.engine.progress import Lines, Live, Silent, Status
from saltus.run import plan

TARGET = saltus.Target(lambda s: 0.1 * jnp.sum(s), saltus.Spin(4))
SETTINGS = {"num_draws": 20, "num_warmup": 5, "num_chains": 2, "thin": 1}


def test_a_silent_run_logs_what_it_does(caplog, monkeypatch):
    monkeypatch.setattr(plan, "_WORTH_TELLING", 1)
    with caplog.at_level(logging.INFO, logger="saltus"):
        saltus.sample(TARGET, saltus.UniformMH(1), progress=False, **SETTINGS)
    told = [record.getMessage() for record in caplog.records if record.name == "saltus"]
    assert any("compiling UniformMH" in text for text in told)
    assert any(text.startswith("sampling") and "20/20" in text for text in told)
    assert any("draws will take about" in text and "of memory" in text for text in told)


def test_nobody_who_did_not_ask_hears_anything(caplog, capfd):
    saltus.sample(TARGET, saltus.UniformMH(1), progress=False, **SETTINGS)
    assert not [record for record in caplog.records if record.name == "saltus"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("make", [Silent, Lines, lambda: Live(__import__("rich.console").console.Console(quiet=True))])
def test_every_display_logs_beside(caplog, make):
    with caplog.at_level(logging.INFO, logger="saltus"):
        display = make()
        display.say("one")
        display.tell("two")
        for done in (1, 2, 10):  # the first of a phase, one too soon after it, and the last
            display.show(Status("sampling", done, 10))
    told = [record.getMessage() for record in caplog.records]
    assert told[:2] == ["one", "two"]
    assert len(told) == 4


def test_the_estimate_is_of_what_is_kept(tmp_path):
    from saltus.engine.arguments import read_settings

    asked = dict(num_draws=10**6, num_warmup=0, num_chains=100, seed=0, thin=1, keep="draws", keep_warmup=False)
    space = saltus.Binary(100)
    target = saltus.Target(lambda s: jnp.sum(s), space)
    settings, recording = read_settings(space, **asked)
    # 100 codes, three float32, a flag and a byte for each of 10^8 draws
    assert "about 11.4 GB of memory" in plan.estimate(target, settings, recording, None)
    assert "GB on disk in" in plan.estimate(target, settings, recording, tmp_path / "run.zarr")
    few, _ = read_settings(space, **{**asked, "num_draws": 10})
    assert plan.estimate(target, few, recording, None) == ""
