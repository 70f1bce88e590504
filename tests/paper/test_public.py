"""paper/ and benchmarks/ use saltus as a user does, and the wheel holds neither of them."""

import ast
import importlib
import pathlib
import subprocess
import sys
import tomllib
import zipfile

import pytest

import saltus

ROOT = pathlib.Path(__file__).parents[2]
FILES = [p for folder in ("paper", "benchmarks") for p in sorted((ROOT / folder).rglob("*.py")) if p.name != "internals.py"]
PUBLIC = ("bridges", "datasets", "diagnostics", "extending", "random", "targets", "testing", "training")


def private_names(source):
    """What this source takes of saltus that is not public."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names if each.name.startswith("saltus.") and each.name[7:] not in PUBLIC]
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == "saltus":
            found += [f"{node.module}.{each.name}" for each in node.names if not _is_public(node.module, each.name)]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "saltus":
            found += [] if _is_public("saltus", node.attr) else [f"saltus.{node.attr}"]
    return found


def _is_public(module, name):
    if module == "saltus":
        return name in saltus.__all__ or name in PUBLIC or name == "__version__"
    public = module.removeprefix("saltus.") in PUBLIC
    return public and name in getattr(importlib.import_module(module), "__all__", (name,)) and not name.startswith("_")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_only_public_names_are_used(file):
    assert private_names(file.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "from saltus.errors import RunError",
        "from saltus.run.loop import advance",
        "import saltus.kernels.ncg",
        "import saltus\nsaltus.local.evaluate",
        "from saltus import _record",
        "from saltus.training import update",
    ],
)
def test_private_names_are_seen(source):
    assert private_names(source)


def test_the_library_does_not_know_them():
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not {name.partition(".")[0] for name in names} & {"paper", "benchmarks"}, file


def test_the_wheel_is_made_of_the_library_alone():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert settings["wheel"] == {"packages": ["src/saltus"]}
    assert not {"experiments", "bench"} & {path.name for path in (ROOT / "src" / "saltus").iterdir()}


@pytest.mark.full
def test_a_wheel_that_is_built_holds_the_library_alone(tmp_path):
    """Needs hatchling, which pip downloads."""
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("saltus-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {"saltus", f"saltus-{saltus.__version__}.dist-info"}
    for part in ("saltus/cli/app.py", "saltus/demo/", "saltus/py.typed"):
        assert any(name.startswith(part) for name in names), part
    assert not [name for name in names if name.startswith(("saltus/experiments", "saltus/bench"))]
