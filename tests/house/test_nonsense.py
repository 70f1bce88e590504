"""Every public callable, with every kind of nonsense for every argument, one at a time around a valid call.

Only saltus errors, valid results, or TypeErrors for a wrong number of arguments. `make test` stops at the first compilation of
a call; the rest runs under `make test-full`.
"""

import contextlib
import io
import os
import pathlib

import pytest
from grid import mostly
from nonsense_calls import (
    EXEMPT,
    NONSENSE,
    Compiled,
    calls,
    compiled_values,
    no_longer,
    nothing_compiled,
    one_by_one,
    outcome,
    public_callables,
    untried,
)

import saltus

# What is accepted though it may look like nonsense: {(callable, argument): kinds, or None for every kind}, and why.
DELIBERATE = {
    ("Target", "truth"): None,  # whatever is known about the target: for people, never read
    ("Target", "params"): None,  # any tree; log_prob decides what it can use
    ("Kernel.init", "key"): None,  # kernels without momentum or labels do not look at it
    ("Space", "description"): {"word", "empty word", "NUL"},  # a name
    ("datasets.load", "path"): None,  # of a data set that is not known: its name is refused first
}
HARMLESS = {"None", "True", "three", "zero"}  # often valid: a default, a flag, a number


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nonsense")
    before = os.getcwd()
    os.chdir(folder)  # a word is a path: what is written is written here
    yield calls(folder)
    os.chdir(before)


def names():
    return sorted(public_callables() - set().union(*EXEMPT.values()))


def test_every_public_callable_is_called(valid):
    missing = set(names()) - set(valid)
    assert not missing, f"add a valid call to tests/nonsense_calls.py: {missing}"


def test_nonsense_is_tried_for_every_argument(valid):
    missing = untried(valid)
    assert not missing, f"add these to the valid calls of tests/nonsense_calls.py: {missing}"


@pytest.mark.parametrize("name", mostly(names(), *set(names()) - {"training.cd"}))  # which reads its arguments by `pcd`'s code
def test_nonsense_is_refused_before_anything_is_compiled(valid, name):
    call, arguments = valid[name]
    made = compiled_values()
    with nothing_compiled():
        told = list(one_by_one(call, arguments, made))
    assert not raw(told)


@pytest.mark.full
@pytest.mark.parametrize("name", names())
def test_nonsense_is_refused_or_works(valid, name):
    call, arguments = valid[name]
    told = list(one_by_one(call, arguments, compiled_values()))
    assert not raw(told)
    assert not [each for each in told if each[2] == "accepted" and suspicious(name, *each[:2])]


def raw(told):
    return [each for each in told if each[2] not in ("refused", "accepted", "compiles")]


def suspicious(name, argument, kind):
    """Objects without any meaning that were accepted all the same."""
    deliberate = DELIBERATE.get((name, argument), ())
    meaningless = kind in {"object", "module", "exception", "Ellipsis", "slice", "dates", "complex", "complex array", "set"}
    return meaningless and deliberate is not None and kind not in deliberate


def test_a_wrong_number_of_arguments_is_a_type_error():
    for call in (saltus.Binary, saltus.sample, saltus.tune, saltus.targets.ising):
        with pytest.raises(TypeError):
            call()
        with pytest.raises(TypeError):
            call(1, 2, 3, nonsense=1)


def test_the_harness_sees_raw_errors():
    """A function that checks nothing."""
    told = list(one_by_one(lambda d: len(d) + d, {"d": [0]}, compiled_values()))
    assert len(told) == len(NONSENSE)
    assert len(raw(told)) > 40
    assert outcome(lambda d: 1 / d, {"d": 0}).startswith("ZeroDivisionError")


# ---- the command line ---------------------------------------------------------------------------------------------

MODEL = "import jax.numpy as jnp, saltus\ntarget = saltus.Target(lambda s: 0.1 * jnp.sum(s), saltus.Binary(3))\n"
WORDS = ["nonsense", "", "-1", "nan", "1e400"]
MORE_WORDS = ["0", "1.5", "inf", "a,b", "file.py:x", "x" * 300, "\u202e", "\x1b[31m", "--", "None", "../..", "1" * 40]
VALID = {
    "sample": [
        "model.py:target",
        "--sampler",
        "uniform-mh",
        "--radius",
        "1",
        "--num-draws",
        "4",
        "--no-progress",
        "-o",
        "run.zarr",
    ],
    "resume": ["nothing.ckpt", "model.py:target"],
    "status": ["nothing.ckpt"],
    "summary": ["nothing.zarr"],
    "explore": ["--no-browser", "-o", "explorer.html"],
    "report": ["nothing.zarr", "-o", "report.html"],
    "verify": ["nothing.zarr"],
    "check": ["model.py:target", "--small"],
    "tune": ["model.py:target", "--sampler", "uniform-mh"],
    "demo": ["-o", "demo"],
    "select": ["table.csv", "--response", "y", "--out", "answers", "--method", "enumerate"],
}


def options(command):
    from saltus.cli.app import app

    found = app[command].assemble_argument_collection()
    return sorted({name for argument in found for name in argument.names if name.startswith("--")})


def exit_code(words):
    """Of the command line, called here; 1 is a failure that is not the user's."""
    from saltus.cli import main

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), no_longer():
        try:
            return main(words)
        except Compiled:
            return "compiles"


def refused(command, words):
    with nothing_compiled():
        valid = VALID[command]
        tried = {(name, word): exit_code([command, *valid, name, word]) for name in options(command) for word in words}
        tried |= {(i, word): exit_code([command, *valid[:i], word, *valid[i + 1 :]]) for i in range(len(valid)) for word in words}
    return {key: code for key, code in tried.items() if code not in (0, 2, 3, "compiles")}


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("model.py").write_text(MODEL)
    pathlib.Path("table.csv").write_text("a,b,y\n1,2,1\n2,1,3\n3,5,2\n4,4,5\n5,9,4\n")


@pytest.mark.parametrize("command", VALID)
def test_commands_refuse_nonsense(command, model):
    assert not refused(command, WORDS)


@pytest.mark.full
@pytest.mark.parametrize("command", VALID)
def test_commands_refuse_more_nonsense(command, model):
    assert not refused(command, MORE_WORDS)


def test_every_command_is_called():
    from saltus.cli.app import app

    assert set(VALID) == {name for name in app if not name.startswith("-")} - {"bench", "reproduce"}  # which have moved


def test_a_closed_stdout_is_no_failure(monkeypatch):
    from saltus.cli.ending import tell

    monkeypatch.setattr("sys.stdout", None)
    tell("nobody reads this")
