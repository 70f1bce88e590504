"""A sampler from outside the package is tuned, raced, named, stored and run from the command line by what it declares."""

import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import their_samplers as theirs

import saltus
from saltus.cli import main
from saltus.engine.codec import from_data, record_name, to_data
from saltus.engine.samplers import find_sampler
from saltus.race.entrants import find_entrants

WEIGHTS = jnp.array([0.8, -0.5, 0.3, 0.0, 1.0])
TARGET = saltus.Target(lambda s: jnp.sum(WEIGHTS * s) + s[0] * s[4], saltus.Binary(5), structure=None)
SHORT = dict(num_draws=40, num_warmup=10, num_chains=2, progress=False)
RACE = dict(num_draws=40, num_warmup=100, num_chains=2, progress=False)
MODEL = """
import jax.numpy as jnp
import saltus
target = saltus.Target(lambda s: jnp.sum(s * jnp.array([0.8, -0.5, 0.3])), saltus.Binary(3))
"""


def raced(run):
    return [row.sampler for row in saltus.race_of(run).rows]


# ---- names and declarations


def test_it_is_found_by_name_and_by_class():
    assert find_sampler("clipped") is theirs.Clipped
    assert find_sampler("Taking_Turns") is theirs.InTurn
    assert find_sampler(theirs.Clipped) is theirs.Clipped
    assert find_sampler("ncg") is saltus.NCG
    with pytest.raises(saltus.KernelError, match="did you mean 'clipped'"):
        find_sampler("cliped")
    for nonsense in (3, None, [], theirs, saltus.Kernel, saltus.Informed, int, "informed", ""):
        with pytest.raises(saltus.KernelError, match="`sampler` is not known"):
            find_sampler(nonsense)


def test_it_is_tuned_by_what_it_declares():
    tuned = saltus.tune(TARGET, theirs.Clipped)
    assert [curve.name for curve in tuned.report.curves] == ["step_size"]
    assert float(tuned.kernel.step_size) != 1.0  # that of `first`
    tuned = saltus.tune(TARGET, "taking-turns")
    assert int(tuned.kernel.tries) == 4  # the longest jumps
    assert tuned.points.site.shape == (16,)
    assert len(set(np.asarray(tuned.points.site).tolist())) > 1  # drawn from the key of the start


@pytest.mark.parametrize(
    ("tunes", "words"),
    [
        ({"size": saltus.extending.Decades()}, "has no field 'size' to tune"),
        ({"step_size": 3}, "`tunes` of Odd is not usable"),
        (["step_size"], "`tunes` of Odd is not usable"),
        ({"scan": saltus.extending.Decades()}, "`scan` of Odd cannot be tuned"),
        ({"step_size": saltus.extending.Radii()}, "does not say how large its radius may be"),
        ({"step_size": saltus.extending.Search()}, "in a way that is not known"),
    ],
)
def test_a_declaration_that_cannot_be_followed_says_why(tunes, words):
    @saltus.extending.record
    class Odd(theirs.Clipped):
        scan: str = saltus.extending.static(default="x")

    Odd.tunes = tunes
    with pytest.raises(saltus.KernelError, match=words):
        saltus.tune(TARGET, Odd)


def test_what_declares_nothing_says_what_to_declare():
    for call in (saltus.tune, lambda *x: saltus.sample(*x, **SHORT), lambda t, k: saltus.sample(t, ["auto", k], **RACE)):
        with pytest.raises(saltus.KernelError, match=r"first\(cls, target, states=None\)(?s:.*)tunes"):
            call(TARGET, theirs.Undeclared)


def test_a_class_of_0_1_is_tuned_by_its_step_size_with_a_warning():
    @saltus.extending.record
    class Old(saltus.Kernel):
        step_size: object
        __post_init__, _scores = theirs.Clipped.__post_init__, theirs.Clipped._scores
        propose, log_ratio = theirs.Clipped.propose, theirs.Clipped.log_ratio

    with pytest.warns(DeprecationWarning, match=r"tunes = {'step_size': saltus.extending.Decades"):
        tuned = saltus.tune(TARGET, Old)
    assert [curve.name for curve in tuned.report.curves] == ["step_size"]


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (theirs.Widening(), r"changes the form of its state at `codes`(?s:.*)int8(?s:.*)int32(?s:.*)astype\(x.codes.dtype\)"),
        (theirs.Telling(), r"saltus.Info(?s:.*)dict"),
        (theirs.Unmarked(), "is not a record"),
    ],
)
def test_a_step_of_another_form_is_refused_before_anything_runs(kernel, words):
    with pytest.raises(saltus.KernelError, match=words):
        saltus.sample(TARGET, kernel, **SHORT)


# ---- the race


def test_who_enters_beside_the_samplers_of_the_package():
    field = find_entrants(TARGET, "", asked=("auto", theirs.Clipped, theirs.as_it_is))
    assert [e.name for e in field.first] == ["NCG", "Gibbs(systematic)", "Clipped", "Clipped(step_size=0.7)"]
    assert field.others[-1].name == "Clipped by exact differences"
    alone = find_entrants(TARGET, "a doubt", asked=(saltus.NCG, theirs.InTurn))
    assert [e.name for e in alone.first] == ["NCG by exact differences", "InTurn"]
    assert [e.name for e in alone.others] == ["NCG"]


def test_it_races_with_the_samplers_of_the_package():
    run = saltus.sample(TARGET, ["auto", theirs.Clipped, theirs.InTurn(2)], **RACE)
    assert {"NCG", "Gibbs(systematic)", "Clipped", "InTurn(tries=2)"} <= set(raced(run))


def test_a_race_among_just_these(tmp_path):
    asked = ["ncg", theirs.Clipped(0.7), theirs.InTurn]
    run = saltus.sample(TARGET, asked, **RACE, checkpoint=tmp_path / "c")
    assert [name for name in raced(run) if "exact" not in name] == ["NCG", "Clipped(step_size=0.7)", "InTurn"]
    again = saltus.sample(TARGET, asked, **RACE, checkpoint=tmp_path / "c")
    assert np.array_equal(again.posterior.s, run.posterior.s)
    assert repr(saltus.kernel_of(again)) == repr(saltus.kernel_of(run))
    for other in (["ncg", theirs.InTurn], ["ncg", theirs.Clipped(0.7000001), theirs.InTurn], "auto"):
        with pytest.raises(saltus.StorageError, match="another `sampler`"):
            saltus.sample(TARGET, other, **RACE, checkpoint=tmp_path / "c")


def test_without_time_to_race_one_of_these_is_taken():
    run = saltus.sample(TARGET, [theirs.Clipped, saltus.NCG], **SHORT)
    assert "Taken instead: NCG(step_size=0.5), which is at its first setting" in run.attrs["tuning"]
    run = saltus.sample(TARGET, [theirs.Clipped(0.7), saltus.NCG], **SHORT)
    assert "Taken instead: Clipped(step_size=0.7), which has nothing to tune" in run.attrs["tuning"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ([], "an empty list"),
        (["ncg", saltus.NCG], "NCG twice"),
        ([theirs.as_it_is, theirs.as_it_is], r"Clipped\(step_size=0.7\) twice"),
        (["auto", "ncg"], "NCG twice"),
        (["ncg", 3], "`sampler` is not known"),
        (["ncg", "block-gibbs"], "needs a quadratic target"),
        ([theirs.Widening(), "ncg"], "changes the form"),
        ({"ncg": 1}, "`sampler` is not known"),
    ],
)
def test_bad_lists(asked, words):
    with pytest.raises(saltus.KernelError, match=words):
        saltus.sample(TARGET, asked, **SHORT)


# ---- stored


def test_a_class_is_stored_by_its_module():
    assert record_name(saltus.NCG) == "NCG"
    assert record_name(theirs.Clipped) == "their_samplers:Clipped"
    data = to_data(theirs.as_it_is)
    assert type(from_data(*data)) is theirs.Clipped
    assert type(from_data({**data[0], "record": "Clipped"}, data[1])) is theirs.Clipped  # as 0.1 wrote it

    @saltus.extending.record
    class NCG(saltus.Kernel):
        pass

    assert type(from_data(*to_data(NCG()))) is NCG
    assert type(from_data(*to_data(saltus.NCG(0.5)))) is saltus.NCG
    with pytest.raises(saltus.StorageError, match="import elsewhere"):
        from_data({"record": "elsewhere:Clipped", "fields": {}}, {})
    with pytest.raises(saltus.StorageError, match="other fields"):
        from_data({"record": "their_samplers:Clipped", "fields": {"beta": 1}}, {})


def test_what_is_not_data_is_told_at_the_start(tmp_path):
    with pytest.warns(UserWarning, match=r"cannot be saved: its field 'function' is not data.*kernel_of"):
        run = saltus.sample(TARGET, theirs.Holding(), **SHORT)
    assert run.attrs["complete"] == 1
    for sampler in (theirs.Holding(), theirs.Holding, ["ncg", theirs.Holding]):
        with pytest.raises(saltus.StorageError, match="'function' is not data"):
            saltus.sample(TARGET, sampler, **SHORT, checkpoint=tmp_path / "c")
    assert not (tmp_path / "c").exists()


# ---- the command line


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """model.py and, beside it, mine.py with their samplers."""
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL)
    source = Path(theirs.__file__).read_text().replace('"taking-turns"', '"my-turn"')
    Path("mine.py").write_text(source.replace("Clipped", "Trimmed"))  # names of their own: both are known to this process
    yield
    for name in [name for name, m in sys.modules.items() if str(getattr(m, "__file__", "")).startswith(str(tmp_path))]:
        del sys.modules[name]


WORDS = ["--num-draws", "30", "--num-warmup", "5", "--num-chains", "2", "--no-progress", "-o", "run.nc"]


@pytest.mark.usefixtures("folder")
def test_from_the_command_line(capsys):
    given = ["--sampler", "mine.py:Trimmed", "--step-size", "0.7", "--checkpoint", "c"]
    assert main(["sample", "model.py:target", *given, *WORDS]) == 0
    with saltus.open("run.nc") as run:
        assert repr(saltus.kernel_of(run)) == "Trimmed(step_size=0.7)"
    assert "by Trimmed(step_size=0.7)" in capsys.readouterr().out
    assert main(["sample", "model.py:target", "--sampler", "mine.py:as_it_is", *WORDS, "--overwrite"]) == 0
    several = ["--sampler", "mine:Trimmed,gwg", "--sampler", "uniform-mh"]
    assert main(["sample", "model.py:target", *several, *WORDS, "--overwrite"]) == 0
    assert "Skipped the race" in capsys.readouterr().out
    assert main(["tune", "model.py:target", "--sampler", "mine.py:Trimmed"]) == 0
    assert "saltus sample model.py:target --sampler mine.py:Trimmed --step-size" in capsys.readouterr().out
    fresh = [sys.executable, "-m", "saltus", "resume", "c", "model.py:target", "--no-progress"]
    refused = subprocess.run(fresh, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "import mine" in refused.stderr
    done = subprocess.run([*fresh, "--sampler", "mine.py:Trimmed"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
