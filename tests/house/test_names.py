"""`dir(saltus)` lists every public name, for tab completion, and imports nothing to do so."""

import inspect
import pathlib
import subprocess
import sys

import pytest

import saltus

LATER = ["check", "datasets", "diagnostics", "extending", "open", "resume", "sample", "summary", "targets", "testing"]
LATER += ["training", "tune", "kernel_of", "race_of"]


def test_every_public_name_is_listed_once():
    listed = dir(saltus)
    assert listed == sorted(set(listed))
    assert set(saltus.__all__) <= set(listed)
    assert set(LATER) <= set(saltus.__all__)


@pytest.mark.parametrize("name", saltus.__all__)
def test_every_listed_name_can_be_had(name):
    found = getattr(saltus, name)
    assert callable(found) or inspect.ismodule(found)


def test_what_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'smaple'"):
        saltus.smaple  # noqa: B018


def test_dir_imports_nothing():
    """In a fresh process: neither rooms that wait for their first use, nor the packages only they need."""
    code = (
        "import sys, saltus; before = set(sys.modules); names = dir(saltus); new = set(sys.modules) - before;"
        "assert 'sample' in names and 'training' in names, names;"
        "heavy = {m for m in sys.modules if m.split('.')[0] in ('xarray', 'zarr', 'optax', 'matplotlib', 'scipy.stats')"
        " or m.startswith(('saltus.run', 'saltus.race', 'saltus.training', 'saltus.testing', 'saltus.reporting'))};"
        "assert not new and not heavy, (new, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_slow_tests_are_there():
    """What tests/slow.txt leaves to `make test-full` has not been renamed."""
    root = pathlib.Path(__file__).parents[2]
    lines = (root / "tests/slow.txt").read_text().splitlines()
    for line in (line for line in lines if line and not line.startswith("#")):
        file, name = line.partition(" keeps ")[0].split("::")
        assert f"def {name}(" in (root / file).read_text(), line
