"""A slip of design is caught, noise is not: ratios of the speed table at twice their goals, and what does not depend on time."""

import numpy as np
import pytest

import saltus
from benchmarks.__main__ import BAD_INPUT, MISSED, main
from benchmarks.speed.figures import STEP_GOALS, over_gradient, regression_error, textbook
from benchmarks.speed.groups import GROUPS, bench
from benchmarks.speed.lines import Line, load
from benchmarks.speed.loops import sampler_loop
from benchmarks.speed.workloads import WORKLOADS, torus_edges


@pytest.mark.parametrize("sampler", ["NCG", *(pytest.param(name, marks=pytest.mark.full) for name in STEP_GOALS if name != "NCG")])
def test_a_step_costs_few_gradients(sampler):
    (line,) = over_gradient("W1 dense", {sampler: 2 * STEP_GOALS[sampler]}, repeats=3)
    assert line.passed, line


@pytest.mark.parametrize(
    ("workload", "goal"),
    [("W1", 1.5), pytest.param("W3", 2.5, marks=pytest.mark.full), pytest.param("W6", 1.5, marks=pytest.mark.full)],
)
def test_steps_are_faster_than_the_textbooks(workload, goal):
    (line,) = textbook({workload: goal}, repeats=3)
    assert line.passed, line


def test_the_regression_is_accurate_in_float32():
    assert regression_error(WORKLOADS["W4"]()) < 1e-3


@pytest.mark.parametrize(
    ("kernel", "make"),
    [
        (saltus.NCG(1.0), lambda side: saltus.targets.ising((side, side), 0.4)),
        (saltus.NCG(1.0), lambda side: saltus.targets.ising(torus_edges(side), 0.4)),
        (saltus.Gibbs("coloured"), lambda side: saltus.targets.ising(torus_edges(side), 0.4)),
        pytest.param(saltus.BlockGibbs(), lambda side: saltus.targets.ising((side, side), 0.4), marks=pytest.mark.full),
        pytest.param(saltus.NCG(1.0), lambda side: saltus.targets.potts((side, side), 3, 0.4), marks=pytest.mark.full),
    ],
    ids=["rolls", "graph", "coloured", "block-gibbs", "potts"],
)
def test_memory_is_linear_in_sites(kernel, make):
    """Nothing d x d: ten times the sites take about ten times the memory, as the compiler reports it.

    Both sizes are beyond `moves._LONG`, from which on a step is compiled otherwise, and keeps more of what it computes.
    """
    small, large = (sampler_loop(kernel, make(side), 2).bytes() / side**2 for side in (70, 222))
    assert large < 1.5 * small


def test_a_line_says_what_passes():
    assert "pass" in str(Line("x", (1.0, 1.2, 9.0), 1.5))
    assert "MISS" in str(Line("x", (1.0, 1.2, 9.0), 1.5, at_most=False))
    assert not Line("x", (np.nan,), 1.5).passed
    assert Line("x", (7.0,)).passed


def test_measured_groups_are_kept(tmp_path, monkeypatch, capsys):
    made = []
    monkeypatch.setitem(GROUPS, "steps", lambda: made.append(1) or [Line("a ratio", (2.0, 3.0), 1.0)])
    for _ in range(2):
        assert main(["steps", "-o", str(tmp_path)]) == MISSED
    assert len(made) == 1
    assert load(tmp_path, "steps") == [Line("a ratio", (2.0, 3.0), 1.0)]
    out = capsys.readouterr().out
    assert "0 of 1 goals are met" in out
    assert main(["steps", "-o", str(tmp_path), "--again"]) == MISSED
    assert len(made) == 2


def test_unknown_groups_are_refused(capsys):
    with pytest.raises(saltus.RunError, match="There is no group nonsense"):
        bench(["nonsense"], None, again=False, tell=print)
    assert main(["nonsense"]) == BAD_INPUT
    assert "textbook" in capsys.readouterr().err


def test_a_group_whose_package_is_missing_is_told_and_not_passed(monkeypatch, capsys):
    def absent():
        raise ModuleNotFoundError("No module named 'thrml'", name="thrml")

    monkeypatch.setitem(GROUPS, "thrml", absent)
    monkeypatch.setitem(GROUPS, "steps", lambda: [Line("a ratio", (0.5,), 1.0)])
    assert main(["thrml", "steps"]) == MISSED
    out = capsys.readouterr().out
    assert "thrml is not installed. pip install 'saltus[bench]'" in out
    assert "1 of 1 goals are met. Not measured: thrml." in out


def test_lines_fit_a_terminal():
    told = str(Line("x" * 44, (0.8881, 0.9992, 1.554), 1000, note="more"))
    assert max(map(len, told.splitlines())) <= 80
