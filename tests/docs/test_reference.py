"""The reference has every public name, and every public name explains every argument that it takes."""

import inspect
import pathlib
import re
import sys

import pytest

import saltus

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
from _reference import MODULES, fields, module_of, public_names, reference  # noqa: E402


def here(name):
    """Bridges need packages that `make test` does not install; `make docs` has them."""
    try:
        return module_of(name)
    except saltus.SaltusError:
        return None


FOUND = {name: here(name) for name in MODULES}
HOMES = {"saltus": saltus, **{f"saltus.{name}": module for name, module in FOUND.items() if module is not None}}
BRIDGES = [("saltus.bridges", name) for name in saltus.bridges.__all__]
NAMES = [(home, name) for home, module in HOMES.items() for name in public_names(module) if (home, name) not in BRIDGES]
OURS = [(home, name) for home, name in NAMES if callable(getattr(HOMES[home], name))]


@pytest.fixture(scope="module")
def page():
    return reference([name for name, module in FOUND.items() if module is not None])


def test_every_public_name_has_an_entry(page):
    headings = set(re.findall(r"^##+ (\S+)$", page, re.MULTILINE))
    modules = set(HOMES)
    missing = [f"{h}.{n}" for h, n in NAMES if f"{h}.{n}" not in headings | modules and not inspect.ismodule(getattr(HOMES[h], n))]
    assert missing == []


def test_every_public_module_is_in_the_reference():
    """A module whose name has no underscore and which saltus itself offers."""
    offered = {name for name in saltus.__all__ if inspect.ismodule(getattr(saltus, name))}
    assert offered <= set(MODULES)
    assert {f"bridges.{name}" for name in saltus.bridges.__all__} <= set(MODULES)


@pytest.mark.parametrize(("home", "name"), OURS, ids=[f"{h}.{n}" for h, n in OURS])
def test_every_argument_is_explained(home, name):
    """By its name in the docstring, or, of a record, by a comment beside the field, which the reference shows."""
    found = getattr(HOMES[home], name)
    told = inspect.getdoc(found)
    assert told, "no docstring"
    if inspect.isclass(found) and issubclass(found, BaseException):
        return
    try:
        takes = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return
    wanted = [p.name for p in takes if not p.name.startswith("_") and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    told += "".join(f" {field} " for field in fields(found)) if inspect.isclass(found) else ""
    assert [w for w in wanted if not re.search(rf"(?<![\w.]){re.escape(w)}(?!\w)", told)] == []
