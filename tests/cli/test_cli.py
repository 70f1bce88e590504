"""The command line: real processes for what a person does, in-process calls for the many ways to get it wrong."""

import inspect
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cyclopts")

import saltus
from saltus.cli import main
from saltus.cli.app import app
from saltus.cli.help import APP as APP_EPILOGUE
from saltus.cli.sampler import OPTIONS, read_sampler
from saltus.cli.tuning import sample_command as command_of
from saltus.kernels import samplers

MODEL = """
import jax.numpy as jnp
import saltus

WEIGHTS = jnp.array([1.0, -0.5, 0.25])

def log_prob(s):
    return jnp.sum(WEIGHTS * s) + s[0] * s[2]

target = saltus.Target(log_prob, saltus.Binary(3))
other = saltus.Target(log_prob, saltus.Spin(3))
plain = saltus.Target(log_prob, saltus.Binary(3), structure=None)

def make():
    return target
"""
# Two milliseconds a step, so that a run can be met while it runs.
SLOW = """
import time
import jax
import jax.numpy as jnp
import numpy as np
import saltus

def slowly(s):
    time.sleep(0.002)
    return np.sum(s, axis=-1, dtype=np.float32)

def log_prob(s):
    return jax.pure_callback(slowly, jax.ShapeDtypeStruct((), jnp.float32), s, vmap_method="expand_dims")

target = saltus.Target(log_prob, saltus.Binary(3))
"""
SHORT = ["--num-draws", "30", "--num-warmup", "5", "--num-chains", "2", "--no-progress"]
NCG = ["--sampler", "ncg", "--step-size", "0.7"]
UNIFORM = ["--sampler", "uniform-mh", "--radius", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Every test has a folder of its own with model.py in it."""
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL)
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture(scope="module", autouse=True)
def shared(tmp_path_factory):
    """`shared` and `shared_slow` stay imported throughout, so that their programs are compiled once for all tests."""
    folder = tmp_path_factory.mktemp("shared")
    (folder / "shared.py").write_text(MODEL)
    (folder / "shared_slow.py").write_text(SLOW)
    sys.path.append(str(folder))
    yield
    sys.path.remove(str(folder))
    sys.modules.pop("shared", None)
    sys.modules.pop("shared_slow", None)


@pytest.fixture
def call(capsys):
    """main(words) with its exit code, stdout and stderr."""

    def call(*words):
        code = main([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def refused(call):
    """The error text of a call that must end with code 2, on stderr alone, with no traceback and nothing written."""

    def refused(*words):
        before = files()
        code, out, err = call(*words)
        assert code == 2, err
        assert out == ""
        assert "Traceback" not in err
        assert files() == before
        return err

    return refused


def files() -> list[str]:
    return sorted(p.name for p in Path().iterdir() if p.name != "__pycache__")


def process(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "saltus", *words], capture_output=True, text=True, timeout=120, check=False, **options
    )


def interrupted(when: str, *words, number=signal.SIGINT) -> tuple[int, str]:
    """(exit code, stderr) of a process that gets Ctrl-C once a line of its stderr contains `when`."""
    command = [sys.executable, "-m", "saltus", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as running:
        err = ""
        for line in running.stderr:
            err += line
            if when in line:
                time.sleep(0.1)
                running.send_signal(number)
                break
        err += running.stderr.read()
        return running.wait(60), err


def draws(path):
    with saltus.open(path) as run:
        return run["posterior"]["s"].values


# What a person does


def test_the_example_of_the_help_runs():
    """As printed: the model, the two commands."""
    code = textwrap.dedent("\n".join(re.findall(r"^    (?!saltus)(?:.*)$", APP_EPILOGUE, re.M)))
    first, second = re.findall(r"^    saltus (.*)$", APP_EPILOGUE, re.M)
    Path("model.py").write_text(code)
    done = process(*first.split())
    assert done.returncode == 0, done.stderr
    assert "4 chains x 1000 draws from Spin(50) by " in done.stdout
    assert re.search(r"^The race\n.*ESS/second(.*\n)+.* chosen", done.stdout, re.M)
    assert re.search(r"won a race of \d+ samplers|was good enough to need no race", done.stderr)
    assert "run = saltus.open('run.nc')" in done.stdout
    assert "doubt" in done.stdout
    assert "sampling" in done.stderr
    assert "100 %" in done.stderr
    assert files() == ["model.py", "run.nc"]

    reader, writer = os.pipe()
    os.close(reader)  # `| head` that left at once
    gone = subprocess.run(
        [sys.executable, "-m", "saltus", *second.split()], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (gone.returncode, gone.stderr) == (0, "")


@pytest.mark.parametrize("output", ["run.nc", "run.zarr"])
def test_draws_are_those_of_the_api(call, output):
    code, out, _ = call("sample", "shared:target", *NCG, *SHORT, "--seed", 3, "--thin", 2, "--keep-warmup", "-o", output)
    assert code == 0
    assert f"written to {output}" in out
    assert files() == ["model.py", output]

    import shared

    same = dict(num_draws=30, num_warmup=5, num_chains=2, seed=3, thin=2, keep_warmup=True, progress=False)
    expected = saltus.sample(shared.target, saltus.NCG(0.7), **same)
    with saltus.open(output) as run:
        assert run.attrs["complete"] == 1
        assert repr(saltus.kernel_of(run)) == "NCG(step_size=0.7)"
        for group in ("posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"):
            for name, values in expected[group].data_vars.items():
                np.testing.assert_array_equal(run[group][name].values, values.values, err_msg=f"{group}/{name}")
                assert run[group][name].dtype == values.dtype

    code, out, _ = call("summary", output, "--sites", 2)
    assert code == 0
    assert "NCG(step_size=0.7)" in out
    assert "and 1 more" in out


def test_initial_statistics_and_a_function_that_makes_the_target(call):
    np.save("start.npy", np.array([[1, 0, 1], [0, 1, 0]]))
    words = ["--num-warmup", 0, "--num-draws", "1e1", "--num-chains", 2, "--no-progress", "--initial", "start.npy"]
    assert (
        call("sample", "shared:make", "--sampler", "Uniform_MH", "--radius", 1, *words, "--keep", "mean,best", "-o", "run.nc")[0]
        == 0
    )
    with saltus.open("run.nc") as run:
        assert set(run["statistics"].data_vars) >= {"mean", "best"}
        assert run["sample_stats"].sizes == {"chain": 2, "draw": 10}
        assert "posterior" not in run.children


def test_a_time_limit_ends_with_3_and_resume_completes(call):
    """In one process, so that the second run is compiled already and its time limit is all sampling."""
    words = ["sample", "shared_slow:target", *UNIFORM, "--num-warmup", 0, "--no-progress"]
    assert call(*words, "--num-draws", 400, "-o", "whole.nc")[0] == 0
    limited = [*words, "--num-draws", 400, "--time-limit", 0.5, "--checkpoint", "run.ckpt", "-o", "run.nc"]
    code, out, err = call(*limited)
    assert code == 3, err
    assert "of 400 draws (time limit)" in out
    assert "saltus resume run.ckpt shared_slow:target --overwrite -o run.nc" in out
    part = draws("run.nc")
    assert 0 < part.shape[1] < 400

    code, _, err = call(*limited)  # the output would be replaced, the checkpoint must not be
    assert code == 2
    assert "to go on with the run: saltus resume run.ckpt shared_slow:target --overwrite -o run.nc" in err

    code, out, err = call("resume", "run.ckpt", "shared_slow:target", "--no-progress", "-o", "run.nc")
    assert (code, out) == (2, "")
    assert "exists already" in err
    code, out, err = call("resume", "run.ckpt", "shared_slow:target", "--no-progress", "--overwrite", "-o", "run.nc")
    assert code == 0, err
    np.testing.assert_array_equal(draws("run.nc"), draws("whole.nc"))
    np.testing.assert_array_equal(draws("run.nc")[:, : part.shape[1]], part)

    code, out, err = call("resume", "run.ckpt", "shared_slow:target", "--no-progress")
    assert (code, err) == (0, "")
    assert "kept in run.ckpt; -o run.nc writes them to a file" in out
    code, out, err = call("resume", "run.ckpt", "shared_slow:target", "--num-draws", 420, "--no-progress", "-o", "more.zarr")
    assert code == 0, err
    np.testing.assert_array_equal(draws("more.zarr")[:, :400], draws("whole.nc"))
    assert draws("more.zarr").shape[1] == 420


def test_a_run_that_streams_goes_on_where_it_is(call):
    words = ["sample", "shared:target", *UNIFORM, *SHORT, "--checkpoint", "run.ckpt", "-o", "run.zarr"]
    assert call(*words)[0] == 0
    first = draws("run.zarr")
    assert call(*words)[0] == 0  # the same call again: the run is complete
    code, out, err = call("resume", "run.ckpt", "shared:target", "--num-draws", 40, "--no-progress")
    assert code == 0, err
    assert "written to run.zarr" in out
    assert call("resume", "run.ckpt", "shared:target", "--no-progress", "-o", "run.zarr")[0] == 0
    np.testing.assert_array_equal(draws("run.zarr")[:, :30], first)
    assert draws("run.zarr").shape[1] == 40
    assert "another `num_draws`" in call(*words)[2]  # it is a run of 40 from now on
    longer = ["40" if word == "30" else word for word in words]
    assert "another `seed`" in call(*longer, "--seed", 1)[2]
    assert call(*words, "--seed", 1, "--overwrite")[0] == 0
    assert draws("run.zarr").shape[1] == 30
    assert not np.array_equal(draws("run.zarr"), first)


def test_ctrl_c_keeps_the_draws():
    Path("slow.py").write_text(SLOW)
    words = ["sample", "slow.py:target", *UNIFORM, "--num-warmup", "0", "--num-draws", "100000", "-o", "run.nc"]
    code, err = interrupted("sampling", *words)
    assert code == 3, err
    assert "Traceback" not in err
    with saltus.open("run.nc") as run:
        assert run.attrs["incomplete_because"] == "interrupted"
        assert 0 < run["posterior"].sizes["draw"] < 100000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_before_the_first_draw_leaves_one_draw_a_chain(number):
    Path("slow.py").write_text(SLOW)
    words = ["sample", "slow.py:target", *UNIFORM, "--num-warmup", "100000", "-o", "run.zarr"]
    code, err = interrupted("warm-up", *words, number=number)
    assert code == 3, err
    assert "Traceback" not in err
    assert "The interrupt left no time for all of the warm-up" in err
    run = saltus.open("run.zarr")
    assert run["posterior"].sizes["draw"] == 1
    assert "states of the warm-up" in run.attrs["cut"]


def test_ctrl_c_while_the_model_is_imported():
    Path("sleepy.py").write_text("import sys, time\nprint('asleep', file=sys.stderr, flush=True)\ntime.sleep(60)\n")
    code, err = interrupted("asleep", "sample", "sleepy.py:target", *NCG, "-o", "run.nc")
    assert (code, err) == (130, "asleep\nsaltus: interrupted before the draws were written\n")


def test_the_second_ctrl_c_does_not_cost_the_draws(call, monkeypatch):
    import xarray as xr

    write = xr.DataTree.to_netcdf

    def write_interrupted(tree, *args, **options):
        signal.raise_signal(signal.SIGINT)
        write(tree, *args, **options)

    monkeypatch.setattr(xr.DataTree, "to_netcdf", write_interrupted)
    code, _, err = call("sample", "shared:target", *UNIFORM, *SHORT, "-o", "run.nc")
    assert code == 0
    assert "run.nc: wait" in err
    assert draws("run.nc").shape == (2, 30, 3)


def test_a_name_alone_is_tuned_and_auto_says_how_it_chose(call):
    code, out, err = call("sample", "shared:target", "--sampler", "ncg", *SHORT, "-o", "run.nc")
    assert code == 0, err
    assert re.search(r"from Binary\(3\) by NCG\(step_size=[\d.e+]+\)", out)
    assert "The race" not in out
    code, out, err = call("sample", "shared:target", *SHORT, "-o", "auto.nc")  # a warm-up too short to race in
    assert code == 0, err
    assert "Skipped the race: a warm-up of 5 steps" in out


# Checking and tuning


def test_check_says_whether_the_gradient_can_be_trusted(call):
    code, out, err = call("check", "shared:target", "--small")
    assert (code, err) == (0, "")
    assert "Can the gradient of" in out
    assert "Yes." in out
    Path("cast.py").write_text(MODEL.replace("WEIGHTS * s", "WEIGHTS * s.astype(int)").replace("s[0] * s[2]", "0.0"))
    code, out, err = call("check", "cast.py:target", "--seed", 1)
    assert (code, err) == (0, "")
    assert "No. The gradient is zero" in out


def test_tune_ends_with_the_command_that_uses_what_it_found(call):
    code, out, err = call("tune", "shared:target", "--sampler", "NCG", "--seed", 1, "--plot", "curve.png")
    assert (code, err) == (0, "")
    assert re.search(r"NCG: jump [\d.]+, acceptance", out)
    assert Path("curve.png").read_bytes().startswith(b"\x89PNG")
    words = out.splitlines()[-1].split()
    assert words[:3] == ["saltus", "sample", "shared:target"]
    assert call(*words[1:], *SHORT)[0] == 0

    import shared

    tuned = saltus.tune(shared.target, saltus.NCG, seed=1)
    with saltus.open("run.nc") as run:
        assert saltus.kernel_of(run).step_size == tuned.kernel.step_size  # to the last bit
        assert run.attrs["seed"] == "1"
    assert tuned.report.chosen == {"step_size": float(tuned.kernel.step_size)}
    axes = tuned.report.plot()
    assert axes[0].get_title(loc="right") == f"frozen at {float(tuned.kernel.step_size):.3g}"


def test_a_sampler_with_nothing_to_tune_has_no_figure(call):
    code, out, err = call("tune", "shared:target", "--sampler", "gibbs", "--plot", "curve.png")
    assert code == 0
    assert "Gibbs has nothing to tune" in out
    assert "warning: --plot curve.png was not written" in err
    assert out.splitlines()[-1] == "  saltus sample shared:target --sampler gibbs --scan coloured -o run.nc"
    assert not Path("curve.png").exists()


def test_the_command_of_a_kernel():
    def command(kernel, seed=0, initial=None, adaptation="default"):
        return command_of(kernel, "m.py:t", seed=seed, initial=initial, adaptation=adaptation)[-1].strip()

    begin, end = "saltus sample m.py:t --sampler ", " -o run.nc"
    assert command(saltus.NCG(0.1)) == f"{begin}ncg --step-size 0.1{end}"
    assert command(saltus.AVG(3e-9), seed=7) == f"{begin}avg --step-size 3e-09 --seed 7{end}"
    assert command(saltus.GWG()) == f"{begin}gwg --radius 1{end}"
    assert command(saltus.UniformMH(2), initial="my start.npy") == f"{begin}uniform-mh --radius 2 --initial 'my start.npy'{end}"
    assert command(saltus.BlockGibbs()) == f"{begin}block-gibbs{end}"
    found_again = saltus.PAVG(0.5, saltus.Dense(np.eye(3)))
    assert command(found_again, seed=2, adaptation="paper") == f"{begin}pavg --adaptation paper --seed 2{end}"


# Help and version


def test_version_and_help_from_a_process():
    done = process("--version")
    assert done.returncode == 0
    assert re.fullmatch(rf"saltus {saltus.__version__} \(jax [\d.]+, Python [\d.]+\)\n", done.stdout)
    script = Path(sys.executable).with_name("saltus")
    if script.exists():
        assert subprocess.run([script, "--version"], capture_output=True, text=True, check=True).stdout == done.stdout


def test_help_names_every_option(call):
    code, out, _ = call("--help")
    assert code == 0
    assert all(word in out for word in ("demo", "sample", "resume", "summary", "check", "tune", "Exit codes", "--debug", "130"))
    assert call()[:2] == (0, out)
    code, out, _ = call("sample", "--help")
    assert code == 0
    assert not [name for name in sample_options() if "--" + name.replace("_", "-") not in out]
    assert all(re.search(rf"^  {name}( |$)", out, re.M) for name in samplers())
    for noise in ("--no-overwrite", "--no-keep-warmup", "None", "[default: False]", "\x1b"):
        assert noise not in out
    assert all(len(line) <= 80 for line in out.splitlines())
    for command in ("demo", "resume", "summary", "check", "tune"):
        code, out, _ = call(command, "--help")
        assert code == 0
        assert f"Usage: saltus {command} " in out
        assert "Examples" in out


def sample_options():
    """{argument of the API: default} of the options of `saltus sample`, wherever they are declared."""
    found = app["sample"].assemble_argument_collection(parse_docstring=False)
    return {a.names[0].removeprefix("--").replace("-", "_"): a.field_info.default for a in found if a.names[0].startswith("--")}


def test_defaults_are_those_of_the_api():
    ours, api = sample_options(), inspect.signature(saltus.sample).parameters
    shared = set(ours) & set(api)
    assert shared >= {
        "sampler",
        "adaptation",
        "num_draws",
        "num_warmup",
        "num_chains",
        "seed",
        "thin",
        "keep",
        "checkpoint_every",
        "overwrite",
    }
    assert {name: ours[name] for name in shared} == {name: api[name].default for name in shared}


def test_without_cyclopts():
    code = "import sys; sys.modules['cyclopts'] = None; from saltus.cli import main; sys.exit(main(['--help']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'saltus[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


# Wrong targets


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("model.py", ["does not name a target", "no colon", "model.py:target"]),
        (":target", ["does not name a target", "nothing before the colon"]),
        ("nothing.py:target", ["no file nothing.py"]),
        ("modle.py:target", ["no file modle.py", "did you mean model.py?"]),
        ("no/folder.py:target", ["no folder no"]),
        ("nothing:target", ["no module nothing", "ends in .py"]),
        ("..model:target", ["no module ..model"]),
        ("saltus.nothing:target", ["no module saltus.nothing"]),
        ("model.py:", ["which target?", "target, other"]),
        ("model.py:tagret", ["has no 'tagret'", "target, other", "did you mean model.py:target?"]),
        ("model:tagret", ["has no 'tagret'", "did you mean model:target?"]),
        ("model.py:log_prob", ["a function with arguments", "log_prob(s)", "saltus.Target(log_prob, space)"]),
        ("model.py:WEIGHTS", ["not a target", "Array"]),
        ("model.py:saltus", ["not a target", "module"]),
    ],
)
def test_a_name_that_leads_nowhere(refused, given, words):
    err = refused("sample", given, *NCG, "-o", "run.nc")
    assert all(word in err for word in words), err


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("import nonsense", "target", ["ModuleNotFoundError: No module named 'nonsense'", "bad.py, line 1:  import nonsense"]),
        ("x = 1\ny = [x", "target", ["SyntaxError: '[' was never closed", "bad.py, line 2:  y = [x"]),
        ("def f():\n    return 1 / 0\nf()", "target", ["ZeroDivisionError", "bad.py, line 2:  return 1 / 0"]),
        ("import sys\nsys.exit('bye')", "target", ["SystemExit: bye", "bad.py, line 2:  sys.exit('bye')"]),
        ("import helper", "target", ["NameError: name 'z' is not defined", "helper.py, line 1:  y = z"]),
        ("def make():\n    return 1 / 0", "make", ["fails when it is called", "bad.py, line 2:  return 1 / 0"]),
        ("def make():\n    return 7", "make", ["does not return a target", "int: 7"]),
        ("class Model: pass", "Model", ["not a target", "the class Model"]),
        ("def make(): pass", "mak", ["no targets; functions: make", "did you mean bad.py:make?"]),
        (
            "import saltus\nt = saltus.Target(\n    lambda s: s @ s[:2],\n    saltus.Binary(3))",
            "t",
            ["TargetError: ", "Binary(3)", "bad.py, line 3:  lambda s: s @ s[:2],"],
        ),
        ("import saltus\nt = saltus.Binary(0)", "t", ["SpaceError: ", "bad.py, line 2:  t = saltus.Binary(0)"]),
    ],
)
def test_a_file_that_fails_shows_its_own_line(refused, text, name, words):
    Path("bad.py").write_text(text + "\n")
    Path("helper.py").write_text("y = z\n")
    err = refused("sample", f"bad.py:{name}", *NCG, "-o", "run.nc")
    assert all(word in err for word in words), err
    assert "site-packages" not in err
    assert str(Path(saltus.__file__).parent) not in err
    assert not any(entry == str(Path.cwd()) for entry in sys.path)


def test_what_lies_beside_a_file_elsewhere_can_be_imported(call):
    Path("there").mkdir()
    Path("there/parts.py").write_text("SITES = 3\n")
    Path("there/my-model.py").write_text(
        "import parts, saltus\ntarget = saltus.Target(lambda s: 0.0, saltus.Binary(parts.SITES))\n"
    )
    assert call("sample", "there/my-model.py:target", *UNIFORM, *SHORT, "-o", "run.nc")[0] == 0


# Wrong options


@pytest.mark.parametrize(
    ("sampler", "words"),
    [
        ("nhg", ["--sampler nhg is not known", "did you mean ncg?"]),
        ("block_gibs", ["did you mean block-gibbs?"]),
        ("pavg --scale 2", ["--sampler pavg needs --step-size and --preconditioner.", "with none of them it is tuned"]),
        ("auto --radius 2", ["--sampler auto has no --radius.", "belongs to gwg, pas and uniform-mh", "--sampler"]),
        ("ncg --adaptation quick", ["`adaptation` is not known", "'paper'"]),
        ("pavg --step-size 1", ["--sampler pavg needs --preconditioner.", "perhaps --scale"]),
        ("ncg --step-size 1 --radius 2", ["--sampler ncg has no --radius.", "--step-size", "belongs to gwg, pas and uniform-mh"]),
        ("gibbs --step-size 1", ["--sampler gibbs has no --step-size.", "--scan"]),
        ("gibbs --scan upwards", ["`scan` is not known", "systematic"]),
        ("gibbs --scan coloured", ["which sites interact"]),
        ("ncg --step-size 0", ["`step_size` must be positive"]),
        ("ncg --step-size nan", ["finite"]),
        ("ncg --step-size big", ['--step-size: unable to convert "big"']),
        ("ncg --step-size", ["--step-size needs a value: EPS."]),
        ("ncg --step-sise 1", ["--step-sise", "Did you mean --step-size?"]),
        ("uniform-mh --radius 1.5", ["--radius: 1.5 is not a whole number"]),
        ("uniform-mh --radius 9", ["at most 3"]),
        ("block-gibbs", ["quadratic"]),
        ("pavg --step-size 1 --preconditioner none.npy", ["--preconditioner none.npy cannot be read", "no such file"]),
        ("pavg --step-size 1 --preconditioner model.py", ["cannot be read", "np.save"]),
        ("pavg --step-size 1 --preconditioner two.npz", ["not one array"]),
        ("pavg --step-size 1 --preconditioner five.npy", ["size 3"]),
        ("gibbs --initial none.npy", ["--initial none.npy cannot be read"]),
        ("gibbs --initial five.npy", ["`initial`"]),
        ("gibbs --num-draws 0", ["`num_draws` is not usable"]),
        ("gibbs --num-draws 1.5", ["--num-draws: 1.5 is not a whole number"]),
        ("gibbs --num-draws inf", ["whole number"]),
        ("gibbs --num-chains -1", ["`num_chains` is not usable"]),
        ("gibbs --seed -1", ["`seed` is not usable"]),
        ("gibbs --seed x", ["whole number"]),
        ("gibbs --thin often", ["`thin` is not usable", "auto"]),
        ("gibbs --thin 0", ["`thin` is not usable"]),
        ("gibbs --time-limit 0", ["`time_limit` is not usable"]),
        ("gibbs --keep means", ["`keep` is not known", "did you mean 'mean'?"]),
        ("gibbs --keep draws,mean", ["`keep` is not known"]),
        ("gibbs --checkpoint no/run.ckpt", ["`checkpoint` cannot be written there"]),
        ("gibbs extra", ["saltus sample has no use for extra."]),
        ("gibbs --sampler ncg --step-size 1", ["Several samplers have no --step-size", "one --sampler", "gibbs, ncg"]),
        ("gibbs,gibbs", ["not a list of samplers", "Gibbs twice"]),
        ("auto,ncg", ["NCG twice", "has this sampler in it"]),
        ("mine.py:Kernel", ["no file mine.py", "file.py:MyKernel"]),
        ("model.py:Kernel", ["model.py has no 'Kernel'", "samplers: none"]),
        ("model.py:target", ["--sampler model.py:target is not a sampler"]),
        (":Kernel", ["does not name a sampler"]),
    ],
)
def test_a_wrong_option_of_sample(refused, sampler, words):
    np.savez("two.npz", a=np.eye(3), b=np.eye(3))
    np.save("five.npy", np.eye(5))
    err = refused("sample", "model.py:plain", "-o", "run.nc", "--sampler", *sampler.split())
    assert all(word in err for word in words), err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sample", "saltus sample needs TARGET."),
        ("sample model.py:target --sampler gibbs", "saltus sample needs -o PATH."),
        ("smaple model.py:target", 'Did you mean "sample"?'),
        ("--nonsense", "--nonsense"),
        ("resume", "saltus resume needs CHECKPOINT."),
        ("resume run.ckpt", "saltus resume needs TARGET."),
        ("resume run.ckpt model.py:target", "There is no checkpoint at run.ckpt."),
        ("resume model.py model.py:target", "is not a checkpoint"),
        ("summary", "saltus summary needs PATH."),
        ("summary none.nc", "There is no run at"),
        ("summary model.py", "cannot be read"),
        ("check", "saltus check needs TARGET."),
        ("check model.py:tagret", "did you mean model.py:target?"),
        ("check model.py:target --seed -1", "`seed` is not usable"),
        ("check model.py:target --initial none.npy", "--initial none.npy cannot be read"),
        ("check model.py:target --initial five.npy", "`initial`"),
        ("tune model.py:target", "saltus tune needs --sampler NAME."),
        ("tune model.py:target --sampler nhg", "did you mean ncg?"),
        ("tune model.py:target --sampler auto", "--sampler auto is not known"),
        ("tune model.py:plain --sampler block-gibbs", "quadratic"),
        ("tune model.py:target --sampler ncg --adaptation quick", "`adaptation` is not known"),
        ("tune model.py:target --sampler ncg --seed x", "whole number"),
        ("tune model.py:target --sampler ncg --initial five.npy", "`initial`"),
        ("tune fails.py:target --sampler ncg --plot curve.txt", "--plot curve.txt is not a figure"),
        ("tune fails.py:target --sampler ncg --plot no/curve.png", "`--plot` cannot be written there"),
        ("tune fails.py:target --sampler ncg --plot folder.png", "a folder"),
    ],
)
def test_a_wrong_call(refused, words, expected):
    np.save("five.npy", np.eye(5))
    Path("folder.png").mkdir()
    err = refused(*words.split())
    assert err.startswith("error: ")
    assert expected in err


def test_every_sampler_is_built_from_its_options():
    given = {"step_size": 0.5, "radius": 2, "scan": "systematic", "preconditioner": np.eye(3), "scale": 2.0, "shift": 4.0}
    none = dict.fromkeys(given)
    own = {
        "ncg": ["step_size"],
        "avg": ["step_size"],
        "pavg": ["step_size", "preconditioner", "scale"],
        "block-gibbs": ["shift"],
        "gwg": ["radius"],
        "gibbs": ["scan"],
        "uniform-mh": ["radius"],
        "pas": ["radius"],
        **{name: [] for name in ("tgs", "jump-process", "exchange", "swendsen-wang", "tempered")},
    }
    assert set(own) == set(samplers())
    for name, fields in own.items():
        options = {field: given[field] for field in fields}
        if options:
            assert repr(read_sampler(name, **none | options)) == repr(samplers()[name](**options))
        assert read_sampler(name.upper(), **none) is samplers()[name]
    assert set(given) == set(OPTIONS)
    assert read_sampler("Auto", **none) == "auto"


# Wrong outputs


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("run", ["no suffix", "run.nc", "run.zarr"]),
        ("run.csv", ["'.csv'"]),
        ("no/run.nc", ["`-o` cannot be written there", "no such folder"]),
        ("no/run.zarr", ["`-o` cannot be written there", "no such folder"]),
        ("model.py/run.nc", ["`-o` cannot be written there"]),
    ],
)
def test_an_output_that_cannot_be(refused, output, words):
    err = refused("sample", "fails.py:target", *NCG, "-o", output)  # refused before the target is looked at
    assert all(word in err for word in words), err


@pytest.mark.parametrize("output", ["run.nc", "run.zarr"])
def test_what_exists_is_left_alone(refused, output):
    Path(output).write_text("precious")
    err = refused("sample", "fails.py:target", *NCG, "-o", output)
    assert f"-o {output} exists already." in err
    assert "--overwrite replaces it" in err
    assert Path(output).read_text() == "precious"


@pytest.mark.parametrize("output", ["run.nc", "run.zarr"])
def test_a_folder_that_is_no_run_is_not_replaced(refused, output):
    Path(output).mkdir()
    Path(output, "precious").write_text("")
    assert "is not replaced" in refused("sample", "fails.py:target", *NCG, "--overwrite", "-o", output)
    assert Path(output, "precious").exists()


@pytest.mark.parametrize(("output", "module"), [("run.nc", "h5netcdf"), ("run.zarr", "zarr")])
def test_a_missing_package_is_named_before_the_run(refused, monkeypatch, output, module):
    monkeypatch.setitem(sys.modules, module, None)
    err = refused("sample", "fails.py:target", *NCG, "-o", output)
    assert f"needs {module}" in err
    assert "pip install 'saltus[io]'" in err


def test_a_full_disk_leaves_the_old_file(call, monkeypatch):
    import xarray as xr

    def full(tree, path, **options):
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(xr.DataTree, "to_netcdf", full)
    Path("run.nc").write_text("old")
    code, out, err = call("sample", "shared:target", *UNIFORM, *SHORT, "--checkpoint", "run.ckpt", "--overwrite", "-o", "run.nc")
    assert (code, out) == (2, "")
    assert "No space left on device" in err
    assert "safe in the checkpoint" in err
    assert Path("run.nc").read_text() == "old"
    assert not list(Path().glob("*.aside"))


def test_a_neighbour_of_the_output_is_left_alone(call):
    Path("run.nc.aside").write_text("mine")
    assert call("sample", "shared:target", *UNIFORM, *SHORT, "-o", "run.nc")[0] == 0
    assert Path("run.nc.aside").read_text() == "mine"


# Failures


@pytest.fixture
def broken(monkeypatch):
    def boom(*args, **options):
        raise RuntimeError("boom\nwith details")

    monkeypatch.setattr(saltus, "sample", boom)


def test_an_unexpected_failure_is_one_line(call, broken):
    code, out, err = call("sample", "model.py:target", *NCG, "-o", "run.nc")
    assert (code, out, err) == (1, "", "saltus failed: RuntimeError: boom; run again with --debug to see where\n")


@pytest.mark.parametrize("place", [0, 2, 99])
def test_debug_shows_the_traceback(call, broken, place):
    words = ["sample", "model.py:target", *NCG, "-o", "run.nc"]
    words.insert(place, "--debug")
    code, _, err = call(*words)
    assert code == 1
    assert "Traceback" in err
    assert "raise RuntimeError" in err


def test_debug_shows_the_users_traceback_too(call):
    Path("bad.py").write_text("x = 1\ny = x / 0\n")
    code, _, err = call("sample", "bad.py:target", *NCG, "-o", "run.nc", "--debug")
    assert code == 2
    assert 'bad.py", line 2' in err
    assert "ZeroDivisionError" in err
    assert err.count("Traceback") == 2


def test_a_summary_that_fails_does_not_undo_the_run(call, monkeypatch):
    def boom(run):
        raise RuntimeError("boom")

    monkeypatch.setattr(saltus, "summary", boom)
    code, out, err = call("sample", "shared:target", *UNIFORM, *SHORT, "-o", "run.nc")
    assert code == 0
    assert "written to run.nc" in out
    assert "warning: no summary: RuntimeError: boom" in err
