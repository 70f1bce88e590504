"""The house keeps its order: imports go down only, no list of samplers outside kernels/, no branch on the kind of variable."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import saltus

SOURCE = Path(saltus.__file__).parent
# A room imports from its own line and from earlier ones. Of the nouns (second line) all are one floor.
FLOORS = [
    "errors random _convolutions _record _fusion _words _compiling _pairs",
    "moves spaces neighbours preconditioners structure sweeps local verifying clamping target",
    "proposals kernels",
    "diagnostics",
    "judging",
    "engine",
    "tuning",
    "race",
    "run",
    "comparing evidence training optimising selection bridges targets datasets",
    "reporting",
    "testing cli demo explorer extending",
]
FLOOR = {room: number for number, line in enumerate(FLOORS) for room in line.split()}
DOORS = {"__init__", "__main__"}  # of the package: they open on everything

# Imports inside functions, each for start-up time. {(file, room): why}
LATER = {
    ("cli/app.py", "demo"): "one command of several",
    ("cli/app.py", "explorer"): "one command of several",
    ("run/choice.py", "race"): "a run with a kernel given never races",
    ("run/choice.py", "tuning"): "a run with a kernel given never tunes",
    ("run/outcome.py", "__version__"): "the package is not there yet while its rooms are imported",
}

# Functions that are exported under the name of a sampler: `saltus.training.tempered(target, beta)` is of 0.1, and stays.
FUNCTIONS = {("evidence/__init__.py", "tempered"), ("training/__init__.py", "tempered")}


class Import(NamedTuple):
    file: str
    line: int
    room: str
    inside: bool  # of a function

    @property
    def home(self):
        return self.file.split("/")[0].removesuffix(".py")


def imports_of(path, root=SOURCE):
    """Every import of this package that runs (not those for type checkers)."""
    package = path.relative_to(root).parts[:-1]

    def visit(node, inside):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        for child in ast.iter_child_nodes(node):
            within = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            for name in imported(child, package):
                yield Import(str(path.relative_to(root)), child.lineno, name[0], within)
            yield from visit(child, within)

    return list(visit(ast.parse(path.read_text()), False))


def imported(node, package):
    """Names within the package, as tuples of parts."""
    if isinstance(node, ast.Import):
        return [tuple(a.name.split("."))[1:] for a in node.names if a.name.startswith("saltus.")]
    if not isinstance(node, ast.ImportFrom):
        return []
    module = tuple(node.module.split(".")) if node.module else ()
    if not node.level:
        base = module[1:] if module[:1] == ("saltus",) else None
    else:
        base = (*package[: len(package) - (node.level - 1)], *module)
    if base is None:
        return []
    return [base] if base else [(a.name,) for a in node.names]


ALL = [each for path in sorted(SOURCE.rglob("*.py")) for each in imports_of(path) if each.home not in DOORS]


def between_rooms():
    return [each for each in ALL if each.room != each.home]


def test_every_room_is_on_a_floor():
    rooms = {p.relative_to(SOURCE).parts[0].removesuffix(".py") for p in SOURCE.rglob("*.py")} - DOORS
    assert rooms <= set(FLOOR), f"new rooms: {rooms - set(FLOOR)}"


def test_imports_go_down_only():
    up = {(e.file, e.room): e.line for e in between_rooms() if e.room in FLOOR and FLOOR[e.room] > FLOOR[e.home]}
    assert not up


def test_imports_inside_functions_are_for_start_up_time():
    inside = {(e.file, e.room): e.line for e in between_rooms() if e.inside}
    assert set(inside) == set(LATER), f"inside functions: {inside}"


def test_no_sampler_is_named_outside_its_room():
    """`samplers()` lists them; whatever must know more reads what they declare."""
    from saltus.kernels import samplers

    names = {name for name in samplers()} | {kernel.__name__ for kernel in samplers().values()}
    found = {(file, name) for file in others({"kernels", *DOORS}) for name in names & set(strings(SOURCE / file))}
    assert found <= FUNCTIONS


def strings(path):
    """Every string that is a value: docstrings are sentences, and never equal a name."""
    return [n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def others(left_out):
    files = [str(p.relative_to(SOURCE)) for p in sorted(SOURCE.rglob("*.py"))]
    return [file for file in files if file.split("/")[0].removesuffix(".py") not in left_out]


KINDS = re.compile(
    r"(isinstance|issubclass)\([^()]*\b(Binary|Spin|Ordinal|Categorical|Clock|Product)\b"
    r"|type\([\w.]*space\) (is|==|in)|var(iable)?_type"
)


def test_no_code_outside_spaces_and_moves_asks_for_the_kind_of_variable():
    found = {file for file in others({"spaces", "moves"}) if KINDS.search((SOURCE / file).read_text())}
    assert not found


def test_no_code_outside_local_asks_which_local_model_it_has():
    asked = re.compile(r"isinstance\([^()]*\(?[^()]*\b(Gradient|HessianDiag|ExactDifferences|Differences|ClosedForm)\b")
    found = {file for file in others({"local"}) if asked.search((SOURCE / file).read_text())}
    assert not found


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from ..run import sample", [("run", False)]),
        ("from .. import random", [("random", False)]),
        ("import saltus.race.trial_run", [("race", False)]),
        ("def f():\n    from ..race.trial_run import TrialRun", [("race", True)]),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..run import sample", []),
        ("import numpy as np\nfrom .sibling import x", [("engine", False)]),
    ],
)
def test_the_walk_sees_what_it_should(tmp_path, code, expected):
    path = tmp_path / "engine" / "some.py"
    path.parent.mkdir()
    path.write_text(code)
    assert [(e.room, e.inside) for e in imports_of(path, tmp_path)] == expected
