"""`saltus reproduce training` at a tiny scale: every experiment, its pool, kills, verdicts on planted results, bad input."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("optax")

import saltus
from saltus.cli import main
from saltus.experiments import couplings, images_pcd, ising_pcd, reproduce, stepsize_sensitivity, table1, table2
from saltus.experiments.catalogue import GROUPS, LEARNING
from saltus.experiments.cells import Cell, Folder
from saltus.experiments.job import module, results
from saltus.experiments.pool import batches, measure_in_processes
from saltus.experiments.settings import SCALES
from saltus.experiments.training_claims import (
    data_rows,
    expected,
    goal_rows,
    order_verdict,
    orders,
    table1_verdict,
    table_rows,
)
from saltus.experiments.verdict import FAILS, HOLDS, UNDECIDED, Estimate
from saltus.training import update

TINY = SCALES["tiny"]


@pytest.fixture(autouse=True)
def _no_files(monkeypatch):
    monkeypatch.delenv("SALTUS_DATA", raising=False)


def planted(cell, error, **more):
    """What a cell of Table 1 keeps, with this error."""
    rest = {"train_seconds": 1.0, "num_steps": 5, "last": {"acceptance": 0.5, "step_size": 0.3, "scale": 1.0}}
    return {
        **rest,
        "error": error,
        "edge_correlation": {"mean": 0.592, "error": 0.001, "exact": 0.59255},
        "seed": cell.seed,
        **more,
    }


def as_printed(off=0.0):
    """Table 1 with every number as printed, NCG's off by this much."""
    found = {}
    for sampler, numbers in table1.PAPER.items():
        for column, number in zip(ising_pcd.COLUMNS, numbers, strict=True):
            cell = Cell("table1", f"K{column}", sampler)
            found[cell.problem, sampler] = [planted(cell, number + (off if sampler == "ncg" else 0))]
    return found


def test_the_papers_own_numbers_hold_and_others_do_not():
    _, rows = table_rows(as_printed(), table1.PAPER, ising_pcd.COLUMNS, table1_verdict)
    assert len(rows) == 6
    assert all(cell.startswith(HOLDS) for row in rows for cell in row[1:])
    _, rows = table_rows(as_printed(off=0.2), table1.PAPER, ising_pcd.COLUMNS, table1_verdict)
    assert all(cell.startswith(FAILS) for cell in rows[0][1:])


def test_tolerances_are_those_of_the_notes():
    assert expected("gwg", 5) == (0.164, 0.005)
    assert expected("ncg", 10) == (0.117, pytest.approx(0.00585))
    assert expected("gwg", 1) == (5.271, pytest.approx(0.26355))
    assert expected("ncg", 1) == (0.837, pytest.approx(0.1674))


def test_only_orders_that_the_table_shows_are_claims():
    assert list(orders(table1.PAPER, 1, 0.03)) == [
        ("block-gibbs", "pavg"),
        ("pavg", "gwg"),
        ("gwg", "gibbs"),
        ("gibbs", "avg"),
    ]
    assert list(orders(table2.PAPER, 0, 0.15)) == [("ncg", "gwg"), ("gwg", "gibbs")]


@pytest.mark.parametrize(
    ("better", "worse", "verdict"),
    [((1, 0), (2, 0), HOLDS), ((2, 0), (1, 0), FAILS), ((1, 0), (1.002, 0), UNDECIDED), ((1, 0.5), (2, 0.5), UNDECIDED)],
)
def test_orders_are_judged_by_noise(better, worse, verdict):
    assert order_verdict(Estimate(*better), Estimate(*worse)) == verdict


def test_goals_of_retuning():
    cells = {("K5", "pavg retuned"): [planted(Cell("table1", "K5", "pavg retuned"), 0.121)]}
    for column, error in ((5, 4.0), (10, 0.124), (15, 0.12)):
        cell = Cell("table1", f"K{column}", "avg retuned")
        cells[cell.problem, cell.sampler] = [planted(cell, error, num_steps=column)]
    pavg, avg = goal_rows(cells)
    assert pavg[1].startswith(HOLDS)
    assert avg[1] == "K = 10"


def test_data_that_are_not_the_lattices_are_told():
    """One Ising sweep from random spins is not enough; 500 are (the notes' edge correlation)."""
    far = ising_pcd.edge_correlation(ising_pcd.lattice_data(0, 200, 2))
    assert far["exact"] == pytest.approx(0.59255, abs=5e-6)
    cell = Cell("table1", "K5", "ncg")
    told = data_rows({("K5", "ncg"): [planted(cell, 0.1, edge_correlation=far)]})
    assert FAILS in told[0][3]


def test_the_data_have_the_exact_edge_correlation():
    found = ising_pcd.edge_correlation(ising_pcd.lattice_data(1, 1000, 500))
    assert abs(found["mean"] - 0.59255) < 3 * found["error"]
    assert found["error"] < 0.01


def test_the_error_is_the_papers():
    """J* itself has none; the antisymmetric part of G does not count; one wrong pair of entries counts by its norm / sqrt(d)."""
    J = ising_pcd.true_couplings()
    assert J.sum() == pytest.approx(100 * 4 * 0.2)
    assert ising_pcd.error({"coupling": J}) == 0
    twist = np.zeros_like(J)
    twist[0, 1], twist[1, 0] = 3, -3
    assert ising_pcd.error({"coupling": J + twist}) == pytest.approx(0, abs=1e-15)
    twist[1, 0] = 3
    assert ising_pcd.error({"coupling": J + twist}) == pytest.approx(3 * np.sqrt(2) / 10)


def test_every_cell_of_a_sampler_is_served_by_one_compilation():
    cells = [Cell("table1", f"K{c}", "ncg", seed) for seed in (0, 1) for c in (1, 5, 20)]
    table1.measure(cells[0], TINY)
    before = update.advance._cache_size()
    for cell in cells[1:]:
        table1.measure(cell, TINY)
    assert update.advance._cache_size() == before


def test_batches_are_samplers_and_seeds():
    work = batches(table1.cells(TINY, 2))
    assert len(work) == 2 * len({*table1.PAPER, *table1.RETUNED})
    assert all(len({(cell.sampler, cell.seed) for cell in batch}) == 1 for batch in work)


def test_step_sizes_are_the_factors():
    cell = Cell("stepsize-sensitivity", "step+2", "ncg")
    assert stepsize_sensitivity.measure(cell, TINY)["step_size"] == pytest.approx(0.5 * 2.25)


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """All training experiments at the tiny scale, in one process."""
    out = tmp_path_factory.mktemp("training")
    os.environ.pop("SALTUS_DATA", None)
    reproduce("training", scale="tiny", out=out)
    return out


def test_every_experiment_leaves_its_figure_and_its_part_of_the_page(everything):
    names = {path.stem for path in (everything / "figures").glob("*.svg")}
    assert names == set(LEARNING)
    text = (everything / "results.md").read_text()
    for name in LEARNING:
        assert f"## {module(name).TITLE}" in text
        assert f"figures/{name}.png" in text
    assert "saltus reproduce training --scale tiny" in text
    html = (everything / "results.html").read_text()
    assert html.count("<svg") == len(LEARNING)


def test_finished_cells_are_not_measured_again(everything, monkeypatch):
    for name in ("table1", "table2", "stepsize-sensitivity", "lattice"):
        monkeypatch.setattr(module(name), "measure", lambda *_: pytest.fail("measured again"))
    reproduce("training", scale="tiny", out=everything)


def test_buffers_are_those_of_table_2(everything):
    folder = Folder(everything, "tiny")
    assert results("buffers", folder) == results("table2", folder)
    assert not (everything / "cells" / "buffers").exists()


def test_sampling_results_of_before_there_was_training_are_kept(tmp_path):
    """A mark without training settings is completed; one with other training settings is refused where there are results."""
    folder = Folder(tmp_path, "tiny")
    folder.claim()
    mark = json.loads((tmp_path / "settings.json").read_text())
    old = {name: value for name, value in mark.items() if name != "training"}
    (tmp_path / "settings.json").write_text(json.dumps(old))
    folder.claim()
    assert json.loads((tmp_path / "settings.json").read_text()) == mark
    (tmp_path / "cells" / "table1").mkdir(parents=True)
    (tmp_path / "settings.json").write_text(json.dumps(mark | {"training": {}}))
    with pytest.raises(saltus.StorageError, match="other settings"):
        folder.claim()


COMMAND = [sys.executable, "-m", "saltus", "reproduce", "lattice", "--scale", "tiny", "--workers", "2"]


def test_a_killed_pool_leaves_no_process_and_goes_on(tmp_path):
    out = tmp_path / "out"
    process = subprocess.Popen([*COMMAND, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 240
    while len(list(out.glob("cells/*/*.json"))) < 1:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    children = _children(process.pid)
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 3, told
    assert "the same command goes on" in told
    assert children
    until = time.monotonic() + 10  # the resource tracker of multiprocessing ends after its parent
    while any(map(_runs, children)):
        assert time.monotonic() < until
        time.sleep(0.05)
    first = {file: file.stat().st_mtime_ns for file in out.glob("cells/*/*.json")}
    reproduce("lattice", scale="tiny", out=out)
    assert {file: file.stat().st_mtime_ns for file in first} == first
    assert len(list(out.glob("cells/*/*.json"))) == len(couplings.cells(TINY, 1))


def _children(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _runs(pid):
    """Whether there is such a process, and not only its exit code waiting to be read."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_an_error_in_a_worker_is_told_as_it_is_when_the_others_are_done(tmp_path):
    """The third stage without its model, in another process, before a cell of Table 1 in the same one."""
    folder = Folder(tmp_path, "tiny")
    folder.claim()
    missing, fine = Cell("table2", "K5", "ncg"), Cell("table1", "K1", "ncg")
    modules = {name: f"saltus.experiments.{name}" for name in ("table1", "table2")}
    with pytest.raises(saltus.RunError, match="model of Table 2 is missing"):
        measure_in_processes([missing, fine], modules, folder, 1, lambda text: None)
    assert folder.file(fine).exists()
    assert not folder.file(missing).exists()


def test_a_model_that_was_not_learned_hides_no_other_experiment(tmp_path, monkeypatch):
    """With a check that no first stage can pass."""
    monkeypatch.setattr(images_pcd, "_ACCEPTED", (2.0, 3.0))
    with pytest.raises(saltus.RunError, match="has not learned"):
        reproduce("training", scale="tiny", out=tmp_path, samplers=("ncg",))
    done = {file.parent.name for file in tmp_path.glob("cells/*/*.json")}
    assert done == {"table1", "lattice", "stepsize-sensitivity"}


def test_a_first_stage_that_diverged_is_not_gone_on_from():
    images_pcd.check_model(acceptance=0.8, norm=0.2, first="USPS")
    for bad in ({"acceptance": 0.0, "norm": 0.2}, {"acceptance": 0.8, "norm": 3.3}, {"acceptance": float("nan"), "norm": 0.2}):
        with pytest.raises(saltus.RunError, match="has not learned USPS") as caught:
            images_pcd.check_model(**bad, first="USPS")
        assert "expected" in str(caught.value)


def test_the_third_stage_learns_the_quadratic_part_alone(everything):
    truth, learned = images_pcd.relearn("ncg", 2, 0, TINY.training, everything)
    for name in ("bias", "net"):
        old, new = (np.concatenate([np.ravel(x) for x in _leaves(t.params[name])]) for t in (truth, learned))
        assert np.array_equal(old, new)
    assert not np.array_equal(truth.params["quadratic"], learned.params["quadratic"])


def _leaves(tree):
    import jax

    return jax.tree.leaves(tree)


def test_mmd_is_that_of_its_definition():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (5, 8)), rng.integers(0, 2, (7, 8))
    k = lambda a, b: np.mean([[np.exp(-np.abs(p - q).mean()) for q in b] for p in a])  # noqa: E731
    assert table2.mmd(x, y) == pytest.approx(np.sqrt(k(x, x) + k(y, y) - 2 * k(x, y)))
    assert table2.mmd(x, x) == 0


def test_packed_images_come_back():
    bits = np.random.default_rng(0).integers(0, 2, (3, 256))
    assert np.array_equal(table2.unpacked(table2.packed(bits)), bits)


def test_the_full_table_2_asks_for_its_file_before_any_work(tmp_path, capsys):
    assert main(["reproduce", "table2", "--scale", "full", "--out", str(tmp_path / "out"), "--no-progress"]) == 2
    assert "usps_binary.npz" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_no_workers_are_refused(tmp_path, capsys):
    assert main(["reproduce", "table1", "--workers", "0", "--out", str(tmp_path / "out"), "--no-progress"]) == 2
    assert "`workers` is too small" in capsys.readouterr().err


def test_groups_have_every_experiment_once():
    assert GROUPS["all"] == GROUPS["sampling"] + GROUPS["training"]


def test_some_samplers_and_columns_are_measured_and_shown_in_part(tmp_path):
    """NCG alone at K = 1: one cell, a page with the rest "not measured", and later cells join it."""
    page = reproduce("table1", scale="tiny", out=tmp_path, samplers=("ncg",), columns=(1,))
    assert [file.stem for file in (tmp_path / "cells" / "table1").iterdir()] == ["K1-ncg-seed0"]
    text = page.with_suffix(".md").read_text()
    assert "not measured" in text
    assert "`saltus reproduce table1 --scale tiny --seeds 1 --samplers ncg --k 1`" in text
    reproduce("table1", scale="tiny", out=tmp_path, samplers=("ncg",), columns=(10,))  # no column of this scale
    assert "column K = 10" in page.with_suffix(".md").read_text()


@pytest.mark.parametrize(("option", "value"), [("--k", "7"), ("--samplers", "ncg,foo"), ("--k", "five")])
def test_unknown_samplers_and_columns_are_refused(option, value, tmp_path, capsys):
    assert main(["reproduce", "table1", option, value, "--out", str(tmp_path / "out"), "--no-progress"]) == 2
    assert value.rpartition(",")[2] in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_dask_cluster_measures_the_cells(tmp_path):
    """A real scheduler and a real worker process of one thread."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(1, threads_per_worker=1, dashboard_address=None) as cluster:
        told = []
        reproduce("table1", scale="tiny", out=tmp_path, samplers=("ncg",), dask=cluster.scheduler_address, say=told.append)
    assert sorted(file.stem for file in (tmp_path / "cells" / "table1").iterdir()) == ["K1-ncg-seed0", "K5-ncg-seed0"]
    assert any("2 of 2 cells done, on tcp://" in text for text in told)


def test_a_scheduler_that_is_not_there_is_told(tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(saltus.RunError, match="There is no dask scheduler"):
        reproduce("table1", scale="tiny", out=tmp_path, dask="tcp://127.0.0.1:1")
