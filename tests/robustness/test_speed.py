"""A slip of design is caught, noise is not: ratios of `saltus bench` at twice their goals, and what does not depend on time."""

import numpy as np
import pytest

import saltus
from saltus.bench import GROUPS, bench
from saltus.bench.figures import STEP_GOALS, over_gradient, regression_error, textbook
from saltus.bench.lines import Line, load
from saltus.bench.loops import sampler_loop
from saltus.bench.scale import lattice_edges
from saltus.bench.workloads import WORKLOADS
from saltus.cli import BAD_INPUT, MISSED, main
from saltus.errors import RunError


def test_a_step_costs_few_gradients():
    for line in over_gradient("W1 dense", {name: 2 * goal for name, goal in STEP_GOALS.items()}, repeats=3):
        assert line.passed, line


def test_steps_are_faster_than_the_textbooks():
    for line in textbook({"W1": 1.5, "W3": 2.5, "W6": 1.5}, repeats=3):
        assert line.passed, line


def test_the_regression_is_accurate_in_float32():
    assert regression_error(WORKLOADS["W4"]()) < 1e-3


@pytest.mark.parametrize(
    ("kernel", "make"),
    [
        (saltus.NCG(1.0), lambda side: saltus.targets.ising((side, side), 0.4)),
        (saltus.NCG(1.0), lambda side: saltus.targets.ising(lattice_edges(side), 0.4)),
        (saltus.Gibbs("coloured"), lambda side: saltus.targets.ising(lattice_edges(side), 0.4)),
        (saltus.BlockGibbs(), lambda side: saltus.targets.ising((side, side), 0.4)),
        (saltus.NCG(1.0), lambda side: saltus.targets.potts((side, side), 3, 0.4)),
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
        assert main(["bench", "steps", "-o", str(tmp_path)]) == MISSED
    assert len(made) == 1
    assert load(tmp_path, "steps") == [Line("a ratio", (2.0, 3.0), 1.0)]
    out = capsys.readouterr().out
    assert "0 of 1 goals are met" in out
    assert main(["bench", "steps", "-o", str(tmp_path), "--again"]) == MISSED
    assert len(made) == 2


def test_unknown_groups_are_refused(capsys):
    with pytest.raises(RunError, match="There is no group nonsense"):
        bench(["nonsense"], None, again=False, tell=print)
    assert main(["bench", "nonsense"]) == BAD_INPUT
    assert "textbook" in capsys.readouterr().err


def test_a_group_whose_package_is_missing_is_told_and_not_passed(monkeypatch, capsys):
    def absent():
        raise ModuleNotFoundError("No module named 'thrml'", name="thrml")

    monkeypatch.setitem(GROUPS, "thrml", absent)
    monkeypatch.setitem(GROUPS, "steps", lambda: [Line("a ratio", (0.5,), 1.0)])
    assert main(["bench", "thrml", "steps"]) == MISSED
    out = capsys.readouterr().out
    assert "thrml is not installed. pip install 'saltus[bench]'" in out
    assert "1 of 1 goals are met. Not measured: thrml." in out


def test_lines_fit_a_terminal():
    told = str(Line("x" * 44, (0.8881, 0.9992, 1.554), 1000, note="more"))
    assert max(map(len, told.splitlines())) <= 80
