"""`python -m paper training` at a tiny scale: every experiment, its pool, kills, verdicts on planted results, bad input."""

import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("optax")

import saltus
from paper import pool, reproduce
from paper.command import main
from paper.experiment import Cell
from paper.experiments import EXPERIMENTS, GROUPS
from paper.folder import Folder
from paper.job import results
from paper.learning import images_pcd, ising_pcd, table2
from paper.learning.table1_claims import RETUNED, data_rows, expected, goal_rows, verdict
from paper.pool import batches, measure_in_processes
from paper.report.printed import order_verdict, orders, table_rows
from paper.report.verdict import FAILS, HOLDS, UNDECIDED, Estimate
from paper.settings import SCALES
from saltus.training import update

ROOT = pathlib.Path(__file__).parents[2]
TINY = SCALES["tiny"]
TABLE1, TABLE2 = EXPERIMENTS["table1"], EXPERIMENTS["table2"]


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
    for sampler, numbers in TABLE1.printed.items():
        for column, number in zip(ising_pcd.COLUMNS, numbers, strict=True):
            cell = Cell("table1", f"K{column}", sampler)
            found[cell.problem, sampler] = [planted(cell, number + (off if sampler == "ncg" else 0))]
    return found


def test_the_papers_own_numbers_hold_and_others_do_not():
    _, rows = table_rows(as_printed(), TABLE1.printed, ising_pcd.COLUMNS, verdict)
    assert len(rows) == 6
    assert all(cell.startswith(HOLDS) for row in rows for cell in row[1:])
    _, rows = table_rows(as_printed(off=0.2), TABLE1.printed, ising_pcd.COLUMNS, verdict)
    assert all(cell.startswith(FAILS) for cell in rows[0][1:])


def test_tolerances_are_those_of_the_notes():
    assert expected("gwg", 5) == (0.164, 0.005)
    assert expected("ncg", 10) == (0.117, pytest.approx(0.00585))
    assert expected("gwg", 1) == (5.271, pytest.approx(0.26355))
    assert expected("ncg", 1) == (0.837, pytest.approx(0.1674))


def test_only_orders_that_the_table_shows_are_claims():
    assert list(orders(TABLE1.printed, 1, 0.03)) == [
        ("block-gibbs", "pavg"),
        ("pavg", "gwg"),
        ("gwg", "gibbs"),
        ("gibbs", "avg"),
    ]
    assert list(orders(TABLE2.printed, 0, 0.15)) == [("ncg", "gwg"), ("gwg", "gibbs")]


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


def test_every_cell_of_a_sampler_is_served_by_one_compilation(tmp_path):
    cells = [Cell("table1", f"K{c}", "ncg", seed) for seed in (0, 1) for c in (1, 5, 20)]
    TABLE1.measure(cells[0], TINY, tmp_path)
    before = update.advance._cache_size()
    for cell in cells[1:]:
        TABLE1.measure(cell, TINY, tmp_path)
    assert update.advance._cache_size() == before


def test_batches_are_samplers_and_seeds():
    work = batches(TABLE1.cells(TINY, 2))
    assert len(work) == 2 * len({*TABLE1.printed, *RETUNED})
    assert all(len({(cell.sampler, cell.seed) for cell in batch}) == 1 for batch in work)


def test_step_sizes_are_the_factors(tmp_path):
    cell = Cell("stepsize-sensitivity", "step+2", "ncg")
    assert EXPERIMENTS["stepsize-sensitivity"].measure(cell, TINY, tmp_path)["step_size"] == pytest.approx(0.5 * 2.25)


SAMPLERS = ("ncg", "avg", "pavg")


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """All training experiments at the tiny scale, in one process, of the samplers that all of them have; Table 2 of NCG alone."""
    out = tmp_path_factory.mktemp("training")
    with pytest.MonkeyPatch.context() as environment:  # put back afterwards: other tests of this process need the data
        environment.delenv("SALTUS_DATA", raising=False)
        for name in ("table1", "stepsize-sensitivity", "lattice"):
            reproduce(name, scale="tiny", out=out, samplers=SAMPLERS)
        reproduce("table2", scale="tiny", out=out, samplers=("ncg",))
    return out


def test_every_experiment_leaves_its_figure_and_its_part_of_the_page(everything):
    names = {path.stem for path in (everything / "figures").glob("*.svg")}
    assert names == set(GROUPS["training"])
    text = (everything / "results.md").read_text()
    for name in GROUPS["training"]:
        assert f"## {EXPERIMENTS[name].title}" in text
        assert f"figures/{name}.svg" in text
    assert "`python -m paper training --scale tiny --seeds 1 --samplers avg,ncg,pavg`" in text
    html = (everything / "results.html").read_text()
    assert html.count("<img") == len(GROUPS["training"])


@pytest.mark.full
def test_every_sampler_learns(tmp_path):
    """Those of both tables that the other tests leave out."""
    reproduce("training", scale="tiny", out=tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert "`python -m paper training --scale tiny --seeds 1`" in text
    for name in ("table1", "table2"):
        there = {key[1] for key in results(EXPERIMENTS[name], Folder.open(tmp_path))}
        assert there == {cell.sampler for cell in EXPERIMENTS[name].cells(TINY, 1)}


def test_finished_cells_are_not_measured_again(everything, monkeypatch):
    for name in ("table1", "table2", "stepsize-sensitivity", "lattice"):
        monkeypatch.setattr(EXPERIMENTS[name], "measure", lambda *_: pytest.fail("measured again"))
    reproduce("training", scale="tiny", out=everything, samplers=("ncg",))


def test_buffers_are_those_of_table_2(everything):
    folder = Folder(everything, "tiny")
    assert results(EXPERIMENTS["buffers"], folder) == results(TABLE2, folder)
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


COMMAND = [sys.executable, "-m", "paper", "lattice", "--scale", "tiny", "--workers", "2"]


def test_a_killed_pool_leaves_no_process_and_goes_on(tmp_path):
    out = tmp_path / "out"
    process = subprocess.Popen([*COMMAND, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
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
    assert len(list(out.glob("cells/*/*.json"))) == len(EXPERIMENTS["lattice"].cells(TINY, 1))


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
    with pytest.raises(saltus.RunError, match="model of Table 2 is missing"):
        measure_in_processes([missing, fine], folder, 1, lambda text: None)
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
    assert main(["table2", "--scale", "full", "--out", str(tmp_path / "out"), "--no-progress"]) == 2
    assert "usps_binary.npz" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_no_workers_are_refused(tmp_path, capsys):
    assert main(["table1", "--workers", "0", "--out", str(tmp_path / "out"), "--no-progress"]) == 2
    assert "`workers` is too small" in capsys.readouterr().err


def test_groups_have_every_experiment_once():
    assert GROUPS["all"] == GROUPS["sampling"] + GROUPS["training"]


def test_some_samplers_and_columns_are_measured_and_shown_in_part(tmp_path):
    """NCG alone at K = 1: one cell, a page with the rest "not measured", and later cells join it."""
    page = reproduce("table1", scale="tiny", out=tmp_path, samplers=("ncg",), columns=(1,))
    assert [file.stem for file in (tmp_path / "cells" / "table1").iterdir()] == ["K1-ncg-seed0"]
    text = page.with_suffix(".md").read_text()
    assert "not measured" in text
    assert "`python -m paper table1 --scale tiny --seeds 1 --samplers ncg --k 1`" in text
    reproduce("table1", scale="tiny", out=tmp_path, samplers=("ncg",), columns=(10,))  # no column of this scale
    assert "column K = 10" in page.with_suffix(".md").read_text()


@pytest.mark.parametrize(("option", "value"), [("--k", "7"), ("--samplers", "ncg,foo"), ("--k", "five")])
def test_unknown_samplers_and_columns_are_refused(option, value, tmp_path, capsys):
    assert main(["table1", option, value, "--out", str(tmp_path / "out"), "--no-progress"]) == 2
    assert value.rpartition(",")[2] in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.full
def test_a_dask_cluster_measures_the_cells(tmp_path):
    """A real scheduler and a real worker process of one thread."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(1, threads_per_worker=1, dashboard_address=None) as cluster:
        told = []
        reproduce("table1", scale="tiny", out=tmp_path, samplers=("ncg",), dask=cluster.scheduler_address, say=told.append)
    assert sorted(file.stem for file in (tmp_path / "cells" / "table1").iterdir()) == ["K1-ncg-seed0", "K5-ncg-seed0"]
    assert any("2 of 2 cells done, on tcp://" in text for text in told)


def test_a_scheduler_that_is_not_there_is_told(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(pool, "PATIENCE", 0.5)
    with pytest.raises(saltus.RunError, match="There is no dask scheduler"):
        reproduce("table1", scale="tiny", out=tmp_path, dask="tcp://127.0.0.1:1")
