"""`python -m paper`: bad input before any work, kills and going on, and verdicts on planted results."""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import saltus
from paper import make_page, reproduce
from paper.command import main
from paper.experiments import EXPERIMENTS
from paper.folder import Folder
from paper.job import present, results
from paper.report.claims import REFERENCES, Number
from paper.report.page import build
from paper.report.verdict import FAILS, HOLDS, UNDECIDED, Estimate, alike, compare
from paper.samplers import KERNELS
from paper.sampling.chains import blocks
from paper.sampling.curves import measure
from paper.sampling.plane import STATE, correlated, proposal
from paper.settings import SCALES, Length
from saltus.diagnostics import Tally, marginal_kl

ROOT = pathlib.Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "paper", "third-order", "--scale", "tiny"]
FIGURE1, THIRD_ORDER = EXPERIMENTS["figure1"], EXPERIMENTS["third-order"]


def planted(level, noise=0.01, evaluations=1, pace=1e-3, metrics=("kl", "covariance", "marginal", "pairwise"), **more):
    """A cell whose errors fall as level / sqrt(n)."""
    n = np.array([10, 100, 1000])
    curve = {"mean": (level / np.sqrt(n)).tolist(), "error": (noise * level / np.sqrt(n)).tolist()}
    times = {"iterations": n.tolist(), "evaluations": (n * evaluations).tolist(), "seconds": (n * pace).tolist()}
    rest = {"ess": [1.0, 2.0, 3.0], "acceptance": 0.5, "jump": 1.0, "kernel": "NCG(step_size=1)"}
    return {**times, **rest, "metrics": dict.fromkeys(metrics, curve), **more}


def refused(capsys, *words):
    assert main([*words, "--no-progress"]) == 2
    return capsys.readouterr().err


def test_an_unknown_experiment_lists_those_there_are(tmp_path, capsys):
    told = refused(capsys, "figure9", "--out", str(tmp_path / "out"))
    for name in (*EXPERIMENTS, "sampling", "all", "figure9"):
        assert name in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("words", "about"), [(["--scale", "huge"], "quick or full"), (["--seeds", "0"], "1 or more")])
def test_impossible_settings_are_refused(tmp_path, capsys, words, about):
    assert about in refused(capsys, "figure1", "--out", str(tmp_path / "out"), *words)


def test_a_folder_that_is_a_file_is_left_as_it_is(tmp_path, capsys):
    (tmp_path / "out").write_text("mine")
    assert "is not a folder" in refused(capsys, "figure1", "--out", str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("mine")
    monkeypatch.setattr(FIGURE1, "measure", lambda *_: pytest.fail("worked first"))
    told = refused(capsys, "figure1", "--out", str(tmp_path / "file" / "out"))
    assert "cannot be written" in told
    assert "nothing has been computed yet" in told


@pytest.mark.parametrize(
    ("changes", "about"),
    [
        ({"saltus": "0.0.1"}, "another version"),
        ({"scale": "full"}, "other settings"),
        ({"settings": {}}, "other settings"),
    ],
)
def test_results_of_another_kind_are_not_mixed(tmp_path, changes, about):
    folder = Folder(tmp_path, "tiny")
    folder.claim()
    mark = json.loads((tmp_path / "settings.json").read_text())
    (tmp_path / "settings.json").write_text(json.dumps(mark | changes))
    with pytest.raises(saltus.StorageError, match=about) as caught:
        reproduce("figure1", scale="tiny", out=tmp_path)
    assert f"rm -r {tmp_path}" in str(caught.value)
    assert json.loads((tmp_path / "settings.json").read_text()) == mark | changes


def test_results_without_a_mark_are_not_mixed(tmp_path):
    (tmp_path / "cells").mkdir()
    with pytest.raises(saltus.StorageError, match="not mixed"):
        reproduce("figure1", scale="tiny", out=tmp_path)


def interrupted(out, after, how):
    """The command in a process of its own, sent `how` once `after` cells are there; its exit code and output."""
    process = subprocess.Popen([*COMMAND, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    until = time.monotonic() + 240
    while len(list(out.glob("cells/*/*.json"))) < after:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(how)
    told, _ = process.communicate(timeout=60)
    return process.returncode, told


def test_a_killed_run_goes_on_from_its_finished_cells(tmp_path, monkeypatch):
    """Killed after one cell, interrupted after another, finished in this process; no cell was measured twice."""
    out = tmp_path / "out"
    assert interrupted(out, 1, signal.SIGKILL)[0] == -signal.SIGKILL
    first = {file: file.stat().st_mtime_ns for file in out.glob("cells/*/*.json")}
    assert all(json.loads(file.read_text())["metrics"] for file in first)
    code, told = interrupted(out, len(first) + 1, signal.SIGINT)  # a cell more may have been written before the kill
    assert code == 3
    assert "the same command goes on" in told
    page = reproduce("third-order", scale="tiny", out=out)
    assert {file: file.stat().st_mtime_ns for file in first} == first
    assert len(list(out.glob("cells/*/*.json"))) == len(THIRD_ORDER.cells(SCALES["tiny"], 1))
    assert {p.name for p in (out / "figures").iterdir()} == {"third-order.svg"}
    monkeypatch.setattr(THIRD_ORDER, "measure", lambda *_: pytest.fail("measured again"))
    assert reproduce("third-order", scale="tiny", out=out) == page
    assert not list(out.rglob("*.aside"))


def test_a_damaged_cell_is_named_with_the_way_out(tmp_path):
    folder = Folder(tmp_path, "tiny")
    cell = FIGURE1.cells(SCALES["tiny"], 1)[0]
    folder.claim()
    folder.save(cell, {"state": [1, 2]})
    folder.file(cell).write_text('{"state": [1,')
    with pytest.raises(saltus.StorageError, match="cannot be read") as caught:
        reproduce("figure1", scale="tiny", out=tmp_path)
    assert f"rm {folder.file(cell)}" in str(caught.value)


def fill(out, experiment, level, seeds=1, **more):
    """Planted results of every cell: level(cell) is how large its errors are."""
    folder = Folder(out, "tiny")
    folder.claim()
    for cell in EXPERIMENTS[experiment].cells(SCALES["tiny"], seeds):
        folder.save(cell, planted(level(cell), **more))


LEVELS = {"pavg": 1, "ncg": 2, "avg": 4, "gibbs": 4, "uniform-mh": 6, "gwg-ordinal": 7, "gwg": 9}


def rows_of(out, claim):
    return [line for line in (out / "results.md").read_text().splitlines() if f"| {claim} |" in line]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Three seeds in the paper's order of poly2, except that uniform MH is worse than ordinal GWG; one seed is asked for."""
    out = tmp_path_factory.mktemp("planted")
    wrong = LEVELS | {"uniform-mh": 8}
    fill(out, "ordinal", lambda cell: wrong[cell.sampler], seeds=3)
    reproduce("ordinal", scale="tiny", out=out)
    return out


def test_the_page_says_what_holds_and_what_does_not(drawn):
    for claim in ("PAVG better than NCG", "NCG better than AVG", "AVG as good as Gibbs", "Gibbs better than uniform MH"):
        assert all(row.count(f"| {HOLDS} (") == 3 for row in rows_of(drawn, claim) if "poly2" in row), claim
    fails = rows_of(drawn, "uniform MH better than ordinal GWG")
    assert fails
    assert all(row.count(f"| {FAILS} (") == 3 for row in fails)
    alike_rows = rows_of(drawn, "PAVG as good as NCG")  # poly4: planted a factor 2 apart
    assert alike_rows
    assert all(row.count(f"| {FAILS} (") == 3 for row in alike_rows)


def test_seeds_that_are_there_count(drawn):
    assert "3 seed(s)" in (drawn / "results.md").read_text()


def test_the_html_page_needs_nothing_but_its_figures(drawn):
    text = (drawn / "results.html").read_text()
    linked = re.findall(r'(?:src|href)="([^"]+)"', text)
    assert sorted(linked) == sorted(f"figures/{path.name}" for path in (drawn / "figures").iterdir())
    assert len(linked) == 3
    for name in linked:
        xml.etree.ElementTree.parse(drawn / name)
    assert '<span class="bad">does not hold</span>' in text


def test_the_page_is_made_again_from_the_numbers_alone(drawn, tmp_path):
    """Without the cells, as in a checkout: the same page; and what is in the numbers counts as finished."""
    shutil.copytree(drawn / "numbers", tmp_path / "numbers")
    shutil.copy(drawn / "settings.json", tmp_path)
    page = make_page(tmp_path)
    for name in ("results.md", "results.html"):
        assert (tmp_path / name).read_text() == (drawn / name).read_text(), name
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {path.name for path in (drawn / "figures").iterdir()}
    assert page == tmp_path / "results.html"
    folder = Folder.open(tmp_path)
    assert all(folder.has(cell) for cell in EXPERIMENTS["ordinal"].cells(SCALES["tiny"], 3))
    assert not any(folder.has(cell) for cell in EXPERIMENTS["ordinal"].cells(SCALES["tiny"], 4)[3::4])


def test_more_seeds_join_the_numbers(tmp_path, monkeypatch):
    """A seed of the numbers is not measured again; one that is added is measured, and joins them."""
    fill(tmp_path, "regression", lambda cell: 1.0)
    reproduce("regression", scale="tiny", out=tmp_path)
    shutil.rmtree(tmp_path / "cells")
    asked = []
    monkeypatch.setattr(EXPERIMENTS["regression"], "measure", lambda cell, *_: asked.append(cell) or planted(1.0))
    reproduce("regression", scale="tiny", out=tmp_path, seeds=2)
    assert {cell.seed for cell in asked} == {1}
    assert len(json.loads((tmp_path / "numbers" / "regression.json").read_text())) == 2 * len(asked) == 10


@pytest.mark.parametrize("out", ["results", "results-full"])
def test_the_tracked_page_is_that_of_the_tracked_numbers(out):
    folder = Folder.open(ROOT / out)
    found = {each.name: results(each, folder) for each in present(folder)}
    page = build(folder.scale, folder.made_with, found)
    assert page.markdown() == (ROOT / out / "results.md").read_text()
    assert page.html() == (ROOT / out / "results.html").read_text()
    figures = {f"figures/{path.name}" for path in (ROOT / out / "figures").iterdir()}
    assert set(re.findall(r'src="([^"]+)"', page.html())) == figures


def test_tracked_results_are_small():
    kept = [p for out in ("results", "results-full") for p in (ROOT / out).rglob("*") if p.is_file()]
    tracked = [p for p in kept if not {"cells", "models"} & set(p.relative_to(ROOT).parts)]
    assert sum(p.stat().st_size for p in tracked) < 3e6


def test_a_page_of_nothing_is_refused(tmp_path, capsys):
    assert "There are no results" in refused(capsys, "page", "--out", str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_the_page_says_where_noise_decides_nothing(tmp_path):
    fill(tmp_path, "regression", lambda cell: {"ncg": 2.0, "avg": 2.05}.get(cell.sampler, 3), noise=0.1)
    reproduce("regression", scale="tiny", out=tmp_path)
    rows = rows_of(tmp_path, "NCG at least as good as AVG")
    assert rows
    assert all(UNDECIDED in row for row in rows)


def test_budgets_are_equal_along_every_axis():
    """The second needs 50 evaluations and twice the time a step: ahead by iterations, behind by the others."""
    cheap, dear = [planted(2.0)], [planted(1.0, evaluations=50, pace=5e-3)]
    assert compare(dear, cheap, "kl", "iterations").verdict(">") == HOLDS
    assert compare(dear, cheap, "kl", "evaluations").verdict(">") == FAILS
    assert compare(dear, cheap, "kl", "seconds").verdict(">") == FAILS
    at_equal = compare(dear, cheap, "kl", "seconds")
    assert at_equal.ratio.mean == pytest.approx(np.sqrt(5) / 2)


def test_seconds_are_those_of_the_least_disturbed_seed(tmp_path):
    """But a seed whose race chose another kernel keeps its own."""
    folder = Folder(tmp_path, "tiny")
    folder.claim()
    planted_cells = [planted(1, pace=2e-3), planted(1, pace=1e-3), planted(1, pace=5e-4, kernel="Gibbs()", evaluations=50)]
    for cell, measured in zip(EXPERIMENTS["regression"].cells(SCALES["tiny"], 3)[:3], planted_cells, strict=True):
        folder.save(cell, measured)
    cells = results(EXPERIMENTS["regression"], folder)["regression", "pavg"]
    assert [cell["seconds"][-1] for cell in cells] == pytest.approx([1.0, 1.0, 0.5])


def test_seeds_that_disagree_widen_the_error():
    together, apart = [planted(1.0), planted(1.0)], [planted(0.5), planted(1.5)]
    narrow, wide = (compare(cells, [planted(2.0)], "kl", "iterations").better for cells in (together, apart))
    assert narrow.mean == pytest.approx(wide.mean)
    assert wide.error > 10 * narrow.error


@pytest.mark.parametrize(
    ("found", "verdict"), [((1.05, 0.01), HOLDS), ((1.4, 0.05), FAILS), ((1.1, 0.1), UNDECIDED), ((0.7, 0.01), FAILS)]
)
def test_alike_needs_the_whole_interval(found, verdict):
    assert alike(Estimate(*found), 1.0) == verdict


@pytest.mark.parametrize(("mean", "verdict"), [(1.1, HOLDS), (1.2, UNDECIDED), (2.0, FAILS)])
def test_a_reference_number_is_as_noisy_as_a_seed(mean, verdict):
    assert Number("poly2", "ncg", "kl", 1.0, Estimate(mean, 0.05), 1).verdict == verdict


def test_every_reference_number_belongs_to_a_sampler_that_runs():
    for (problem, _), numbers in REFERENCES.items():
        assert set(numbers) == set(KERNELS[problem])


def test_a_curve_counts_every_kept_draw_once():
    """Its last point is the error of all draws after the burn-in, and Gibbs pays for every value of a site."""
    target, length = saltus.targets.polynomial_mixture(2, 3), Length(3, 100, 250)
    codes = np.full((3, 3), 11)
    truth = target.truth.marginals
    found = measure(saltus.Gibbs(), target, codes, 4, length, lambda t: {"kl": marginal_kl(t, truth)}, target.space)
    drawn = np.concatenate([block.codes for block in blocks(saltus.Gibbs(), target, codes, 4, 350)], axis=1)
    for n in (found["iterations"][0], found["iterations"][7], 250):
        direct = marginal_kl(Tally.empty(target.space, 3).add(drawn[:, 100 : 100 + n]), truth)
        at = found["iterations"].index(n)
        assert found["metrics"]["kl"]["mean"][at] == pytest.approx(direct.mean(), rel=1e-12)
    assert found["iterations"][-1] == 250
    assert found["evaluations"][-1] == 250 * 49
    assert len(found["metrics"]["kl"]["mean"]) == len(found["iterations"]) == len(found["seconds"])


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    out = tmp_path_factory.mktemp("pictures")
    for name in ("figure1", "proposals", "targets2d"):
        reproduce(name, scale="tiny", out=out)
    return out


def test_pictures_are_drawn(pictures):
    drawn = list((pictures / "figures").iterdir())
    assert {p.name for p in drawn} == {"figure1.svg", "proposals.svg", "targets2d.svg"}
    assert all(p.stat().st_size > 5000 for p in drawn)


@pytest.mark.parametrize("name", ["figure1", "proposals"])
def test_proposals_are_distributions(pictures, name):
    found = Folder.open(pictures).load(EXPERIMENTS[name].cells(SCALES["tiny"], 1)[0])
    tables = {kernel: np.array(found[kernel]) for kernel in EXPERIMENTS[name].labels}
    for kernel, table in tables.items():
        assert table.sum() == pytest.approx(1, abs=1e-4), kernel
    assert tables["gwg"][STATE] == 0
    assert (tables["gwg"] > 0).sum() == 4


def test_a_proposal_with_noise_is_averaged_over_it():
    """One auxiliary draw gives another table than a hundred."""
    target = correlated()
    kernel = FIGURE1.kernels(target)["pavg"]
    assert np.abs(proposal(kernel, target, STATE, 1) - proposal(kernel, target, STATE, 100)).sum() > 0.1
