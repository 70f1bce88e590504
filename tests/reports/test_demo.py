"""`saltus demo`, in a real process once; what it writes and says around that run, again and again."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

pytest.importorskip("cyclopts")

import saltus
from saltus.cli import main
from saltus.demo import MODEL
from saltus.demo.comparison import compare

FILES = ["marginals.png", "marginals.svg", "run.nc"]
LONGEST = 96


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """(folder, what was printed) of a demo in a fresh process."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "saltus", "demo", "-o", "first"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "racing" in done.stderr
    assert "won a race of" in done.stderr or "to need no race" in done.stderr
    return folder / "first", done.stdout


@pytest.fixture
def again(shown, tmp_path, monkeypatch, capsys):
    """main("demo", ...) around the run of the first demo; its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    with saltus.open(shown[0] / "run.nc") as stored:
        run = stored.load()
    monkeypatch.setattr(saltus, "sample", lambda target, seed, progress: run)

    def again(*words):
        code = main(["demo", "--no-progress", *words])
        return code, *capsys.readouterr()

    return again


def test_it_tells_of_the_race_the_comparison_and_what_next(shown):
    folder, out = shown
    assert sorted(p.name for p in folder.iterdir()) == FILES
    for heading in ("The race", "The probability that a column is used", "Has it converged?", "Files", "What to try next"):
        assert f"\n{heading}\n" in out
    assert "2^100 states" in out
    assert "chosen" in out
    assert "0, 5, 10, 15" in out
    assert "20 to 99" in out
    assert "R-hat of" in out
    assert "saltus summary first/run.nc" in out
    assert all(len(line) <= LONGEST for line in out.splitlines() if "chosen" not in line)
    assert b"</svg>" in (folder / "marginals.svg").read_bytes()
    assert imread(folder / "marginals.png").shape[1] > 1000


def test_its_draws_agree_with_the_exact_answer(shown):
    target = saltus.targets.sparse_regression()
    with saltus.open(shown[0] / "run.nc") as run:
        found = compare(target, run, saltus.summary(run))
        np.testing.assert_array_equal(found.drawn, run["posterior"]["s"].mean(("chain", "draw")).values)
        assert saltus.race_of(run).rows
    np.testing.assert_array_equal(found.exact, target.truth.marginals)
    assert found.num_rare == 80
    assert (found.error > 0).all()
    assert found.worst < 5
    assert all(abs(group.off) < 5 for group in found.groups)
    np.testing.assert_array_equal(np.concatenate([group.sites for group in found.groups]) < 20, np.arange(100) < 20)


def test_standard_errors_are_calibrated(shown):
    """Independent draws in place of the run's: their ESS is their number, for rare sites too; a stuck site is found out."""
    target = saltus.targets.sparse_regression()
    p, rng = target.truth.marginals, np.random.default_rng(0)
    with saltus.open(shown[0] / "run.nc") as stored:
        run = stored.load()
    s = run["posterior"]["s"]
    s.values[:] = rng.random(s.shape) < p
    run["sample_stats"]["lp"].values[:] = rng.normal(size=s.shape[:2])
    found = compare(target, run, saltus.summary(run))
    assert found.fits
    np.testing.assert_allclose(found.error, np.sqrt(p * (1 - p) / s[..., 0].size), rtol=0.15)
    assert 1 < found.usual < found.worst + 2
    s.values[:, :, 0] = 1
    assert not compare(target, run, saltus.summary(run)).fits


def test_a_second_time_into_the_same_folder(again):
    Path("saltus-demo").mkdir()
    Path("saltus-demo/mine.txt").write_text("precious")
    Path("saltus-demo/run.nc").write_text("not of a demonstration")
    code, _, err = again()
    assert code == 2
    assert "run.nc is not replaced" in err
    assert Path("saltus-demo/run.nc").read_text() == "not of a demonstration"
    Path("saltus-demo/run.nc").unlink()
    for _ in range(2):
        code, out, err = again()
        assert (code, err) == (0, "")
        assert "saltus-demo/marginals.png" in out
    assert sorted(p.name for p in Path("saltus-demo").iterdir()) == ["marginals.png", "marginals.svg", "mine.txt", "run.nc"]
    assert Path("saltus-demo/mine.txt").read_text() == "precious"
    with saltus.open("saltus-demo/run.nc") as run:
        assert run["posterior"].sizes["site"] == 100


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-o", "file"], ["file is not a folder.", "found     a file"]),
        (["-o", "no/folder"], ["`-o` cannot be written there", "no such folder"]),
        (["-o", "taken"], ["taken/run.nc is not replaced.", "a folder"]),
        (["--seed", "-1"], ["`seed` is not usable"]),
        (["extra"], ["saltus demo has no use for extra."]),
    ],
)
def test_a_place_or_word_that_cannot_be(again, words, expected):
    Path("file").write_text("precious")
    Path("taken/run.nc").mkdir(parents=True)
    code, out, err = again(*words)
    assert (code, out) == (2, "")
    assert all(text in err for text in expected), err
    assert "Traceback" not in err
    assert Path("file").read_text() == "precious"
    assert sorted(p.name for p in Path().iterdir()) == ["file", "taken"]


@pytest.mark.parametrize(
    ("module", "extra", "left"), [("matplotlib", "plots", ["run.nc"]), ("h5netcdf", "io", ["marginals.png", "marginals.svg"])]
)
def test_it_goes_on_without_an_extra(again, monkeypatch, module, extra, left):
    monkeypatch.setitem(sys.modules, module, None)
    code, out, err = again()
    assert (code, err) == (0, "")
    assert f"not written: {module} not installed; pip install 'saltus[{extra}]'" in out
    assert sorted(p.name for p in Path("saltus-demo").iterdir()) == left
    assert ("saltus summary" in out) == ("run.nc" in left)


def test_ctrl_c_ends_it(again, monkeypatch):
    run = saltus.sample(None, 0, False).copy()
    run.attrs["complete"] = 0
    monkeypatch.setattr(saltus, "sample", lambda target, seed, progress: run)
    code, _, err = again()
    assert code == 130
    assert "interrupted" in err
    assert not Path("saltus-demo").exists()


def test_the_model_it_prints_runs_as_printed(shown, monkeypatch, capsys):
    assert all(f"    {line}\n" in shown[1] for line in MODEL.splitlines())
    sample = saltus.sample
    monkeypatch.setattr(saltus, "sample", lambda target, seed: sample(target, "gibbs", num_draws=100, seed=seed, progress=False))
    exec(MODEL, {})
    assert "Summary of a run of saltus" in capsys.readouterr().out
