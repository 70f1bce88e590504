"""What a released version promised still holds: its names and what they take, its commands, its kernels, its files.

A line of the list that fails here is a script, a sampler or a file of somebody that no longer works. Deprecate instead.
"""

import json
import os
import re
import shutil
import types
from pathlib import Path

import commands
import jax
import numpy as np
import pytest
import surface
import write

import saltus

FOLDER = Path(__file__).parent / "0.1"
FILES = FOLDER / "files"
EXPECTED = json.loads((FILES / "expected.json").read_text())
TARGETS = write.load(FOLDER, "targets")
KERNELS = {
    "CONTRIBUTING": (write.load(FOLDER, "sampler").Tempered(0.5), {"invariance", "coherence", "stationary start", "transition"}),
    "own init and step": (write.load(FOLDER, "kernels").OneSite(), {"coherence", "stationary start"}),
    "noise": (write.load(FOLDER, "kernels").HalfAVG(1.0), {"definition", "invariance", "noise", "coherence", "stationary start"}),
}


def recorded(name):
    return json.loads((FOLDER / name).read_text())


@pytest.fixture
def quick_compilation_of_kernels():
    """Compiling is most of the time; files are read and gone on with as users do, kernels need not be."""
    jax.config.update("jax_disable_most_optimizations", os.environ.get("SALTUS_QUICK_COMPILATION") == "1")
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def same(run, expected):
    np.testing.assert_array_equal(run.posterior.s.values, np.array(expected["s"]))
    np.testing.assert_array_equal(run.sample_stats.lp.values, np.array(expected["lp"], np.float32))


# What was changed on purpose: {line of the comparison: why every call of 0.1 is as right as it was}
ON_PURPOSE = {
    "saltus.Target: default of `structure` was None, is 'auto'": "what is found is proved of f; None still means: use no structure",
}


def broken_names(names):
    return [line for line in surface.broken_names(names, saltus) if line not in ON_PURPOSE]


def test_names_and_commands_are_kept():
    broken = broken_names(recorded("names.json"))
    broken += commands.broken_commands(recorded("commands.json"), commands.read_commands(write.ONLY_NAMED))
    assert not broken, f"{len(broken)} promises of {FOLDER.name} are broken:\n" + "\n".join(broken)


@pytest.mark.usefixtures("quick_compilation_of_kernels")
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_certified_as_they_are(name):
    kernel, instruments = KERNELS[name]
    report = saltus.testing.check_kernel(kernel, saltus.Ordinal(2, [-1.0, -0.5, 0.3, 1.1]), num_chains=2**14, battery=False)
    assert instruments <= set(report.ran)


@pytest.mark.usefixtures("quick_compilation_of_kernels")
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_run_as_they_are(name):
    kernel, _ = KERNELS[name]
    run = saltus.sample(TARGETS.binary, kernel, num_draws=60, num_warmup=20, num_chains=2, thin=1, progress=False)
    s = run.posterior.s.values
    assert run.attrs["complete"] == 1
    assert s.shape == (2, 60, 4)
    assert len(np.unique(s.reshape(-1, 4), axis=0)) > 8  # of 16
    np.testing.assert_allclose(run.sample_stats.lp, 0.5 * (s[..., 1:] * s[..., :-1]).sum(-1) - 0.25 * s[..., 0], rtol=1e-6)
    assert repr(saltus.kernel_of(run)) == repr(kernel)


@pytest.mark.parametrize("file", ["run.zarr", "run.nc"])
def test_runs_open_with_their_draws(file):
    run = saltus.open(FILES / file)
    same(run, EXPECTED[file])
    assert repr(saltus.kernel_of(run)) == EXPECTED[file]["kernel"]
    assert run.attrs["complete"] == 1
    assert ("warmup_posterior" in run.children) == (file == "run.zarr")


def test_site_names_are_in_the_file():
    assert saltus.open(FILES / "run.nc").posterior.site.values.tolist() == ["a", "b", "c", "d"]


def test_a_trained_model_loads_with_its_numbers():
    trained, expected = saltus.training.load(FILES / "trained.npz", TARGETS.model()), EXPECTED["trained.npz"]
    found = {"params": trained.params, "average": trained.average.params, "history": trained.history}
    for what, numbers in found.items():
        assert set(numbers) == set(expected[what])
        for name, array in numbers.items():
            np.testing.assert_array_equal(array, np.array(expected[what][name], np.asarray(array).dtype))
    assert np.any(np.asarray(trained.params["coupling"]))
    np.testing.assert_array_equal(trained.buffer, expected["buffer"])
    assert repr(trained.kernel) == expected["kernel"]
    assert trained.num_updates == 5


def test_a_checkpoint_goes_on_or_names_the_version_that_can(tmp_path):
    expected, folder = EXPECTED["checkpoint"], tmp_path / "checkpoint"
    shutil.copytree(FILES / "checkpoint", folder)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert 0 < expected["draws_so_far"] < len(expected["s"][0])
    try:
        run = saltus.resume(folder, TARGETS.binary, progress=False)
    except saltus.StorageError as refused:
        assert re.search(rf"\b{re.escape(FOLDER.name)}\b", str(refused).replace(str(folder), ""))  # noqa: PT017
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    else:
        same(run, expected)
        assert run.attrs["complete"] == 1


# ---- the comparison itself can fail -----------------------------------------------------------------------------


def package(source):
    """A package `lib` with this source."""
    module = types.ModuleType("lib")
    exec("import warnings\n" + source, module.__dict__)
    return module


OLD = """
def draw(target, sampler="auto", *, seed=0): ...
class Base: ...
class Space(Base):
    size: int
    def __init__(self, d): self.sites = d
    def embed(self, codes, name="x"): ...
NAMES = ("a", "b")
__all__ = ["draw", "Base", "Space", "NAMES"]
"""


def broken_by(old, new):
    """What is broken when `old` is replaced by `new` in the source."""
    assert old in OLD
    names = surface.read_names(package(OLD), ["lib"], {"lib.Space": "lib.Space(3)"})
    return surface.broken_names(names, package(OLD.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("def draw(", "def drew(", "lib.draw: gone"),
        ("class Space(", "class Room(", "lib.Space: gone"),
        ("def embed(", "def see(", "lib.Space.embed: gone"),
        ("size: int", "pass", "lib.Space.size: gone"),
        ("self.sites", "self.d", "lib.Space.sites: gone"),
        ("seed=0", "seed=1", "lib.draw: default of `seed` was 0, is 1"),
        ("seed=0", "seed", "lib.draw: default of `seed` was 0, is gone"),
        ("seed=0", "key=0", "lib.draw: no longer takes `seed`"),
        ('sampler="auto", *,', '*, sampler="auto",', "lib.draw: `sampler` is no longer argument 2"),
        ("target, ", "space=None, target=None, ", "lib.draw: `target` is no longer argument 1"),
        ("target, ", "target, /, ", "lib.draw: `target` can no longer be given by name"),
        ("seed=0", "seed=0, key", "lib.draw: `key` is new and has no default"),
        ('name="x"', 'name="y"', "lib.Space.embed: default of `name` was 'x', is 'y'"),
        ("def __init__(self, d)", "def __init__(self, d, k)", "lib.Space: `k` is new and has no default"),
        ("class Space(Base)", "class Space", "lib.Space: no longer a kind of Base"),
        ('("a", "b")', '("a",)', "lib.NAMES: no longer holds b"),
        ("def embed(self, codes", "@property\n    def embed(self", "lib.Space.embed: was a method, is a attribute"),
    ],
)
def test_a_broken_promise_is_named(old, new, line):
    assert line in broken_by(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("seed=0", "seed=0, key=None, **options"),
        ("target, ", "target=None, "),
        ("*, seed", "seed"),
        ("size: int", "size = property(lambda self: 2)"),
        ("self.sites = d", "self.sites = d; self.more = 1"),
        ('("a", "b")', '("b", "c", "a")'),
    ],
)
def test_what_only_adds_is_allowed(old, new):
    assert broken_by(old, new) == []


def test_what_is_deprecated_is_allowed_and_what_is_silently_dropped_is_not():
    warn = "warnings.warn('`{}` is deprecated', DeprecationWarning, stacklevel=2)"
    by_getattr = f"""
        def __getattr__(name):
            if name != "draw": raise AttributeError(name)
            {warn.format("draw")}
            return _draw
    """.replace("\n        ", "\n")
    moved = OLD.replace("def draw(", "def _draw(").replace('"draw", ', "") + by_getattr
    names = surface.read_names(package(OLD), ["lib"], {})
    assert surface.broken_names(names, package(moved)) == []
    old = "*, seed=0): ..."
    assert broken_by(old, f"**old):\n    if 'seed' in old: {warn.format('seed')}") == []
    assert broken_by(old, "**old): ...") == ["lib.draw: no longer takes `seed`"]
    assert broken_by(old, f"**old): {warn.format('another')}") == ["lib.draw: no longer takes `seed`"]


def test_the_record_is_compared_with_the_package_itself():
    """Planted in the record: a name, a parameter, a default and a member that saltus does not have."""
    names = recorded("names.json")
    assert len(names) > 600
    names["saltus.sampled"] = names["saltus.sample"]
    names["saltus.Target.nowhere"] = {"is": "attribute"}
    names["saltus.tune"]["takes"].append("speed=1")
    takes = names["saltus.sample"]["takes"] = list(names["saltus.sample"]["takes"])
    takes[takes.index("num_chains=4")] = "num_chains=5"
    assert broken_names(names) == [
        "saltus.Target.nowhere: gone",
        "saltus.sample: default of `num_chains` was 5, is 4",
        "saltus.sampled: gone",
        "saltus.tune: no longer takes `speed`",
    ]


HELP = """Usage: lib draw TARGET
╭─ Arguments ───╮
│ *  TARGET  A file. [required] │
╰───────────────╯
╭─ Run ─────────╮
│ *  --output -o PATH  Where. [required] │
│    --seed N          A number. [default: 0] │
│    --quiet           Say nothing. │
╰───────────────╯
Examples
  --never an option
"""


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("--seed N ", "--key N  ", " --seed: gone"),
        ("--output -o PATH", "--output PATH   ", " -o: gone"),
        ("[default: 0]", "[default: 1]", " --seed: default was 0, is 1"),
        ("--quiet  ", "--quiet N", " --quiet: value was False, is True"),
        ("[default: 0]", "[required]", " --seed: required was False, is True"),
        ("TARGET  A file", "MODEL  A file", ": arguments was ['TARGET'], is ['MODEL']"),
    ],
)
def test_a_broken_option_is_named(old, new, line):
    was, now = ({f"lib draw{k}": v for k, v in commands.read_help(text).items()} for text in (HELP, HELP.replace(old, new)))
    assert set(was) == {"lib draw", "lib draw --output", "lib draw -o", "lib draw --seed", "lib draw --quiet"}
    assert f"lib draw{line}" in commands.broken_commands(was, now)
    assert commands.broken_commands(was, was) == []


def test_new_options_are_allowed_and_new_duties_are_not():
    was = {"lib draw": {"arguments": []}, "lib bench": {}}
    free = {"value": True, "required": False, "default": None}
    assert commands.broken_commands(was, {**was, "lib draw --new": free, "lib more": {"arguments": []}}) == []
    duty = {"lib draw --new": {**free, "required": True}, "lib bench --new": {**free, "required": True}}
    assert commands.broken_commands(was, {**was, **duty}) == ["lib draw --new: is new and required"]


def test_another_version_cannot_rewrite_the_contract():
    with pytest.raises(SystemExit, match="cannot write the contract of 9"):
        write.main("9.9")
