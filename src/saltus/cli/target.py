"""`file.py:target` and `package.module:target`: the user's Target, or the user's own line where it cannot be had."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import TargetError
from ..target import Target

_FORMS = "file.py:target or package.module:target"
_WANTED = "the name of a saltus.Target, or of a function without arguments that returns one"
_OURS = str(Path(__file__).parent.parent) + os.sep
_INSTALLED = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib"))
_MARGIN = "\n" + " " * 12


def load_target(given: str) -> Target:
    """The target that `given` names, or TargetError."""
    where, colon, name = given.rpartition(":")
    if not colon or not where:
        is_file = given.endswith(".py") or Path(given).is_file()
        raise TargetError(
            f"{given!r} does not name a target.",
            expected=_FORMS,
            found="no colon" if not colon else "nothing before the colon",
            hint=f"{given}:target, if that is its name in the file" if is_file else "",
        )
    file = Path(where) if where.endswith(".py") or os.sep in where or Path(where).is_file() else None
    with _importable(str(file.resolve().parent) if file else os.getcwd()):
        module = _import_file(file) if file else _import_module(where)
        return _target(_look_up(module, where, name), where, name)


@contextlib.contextmanager
def _importable(folder: str) -> Iterator[None]:
    """What lies beside the user's file can be imported, as if the file were run."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def _import_file(file: Path) -> ModuleType:
    if not file.is_file():
        here = [p.name for p in file.parent.glob("*.py")] if file.parent.is_dir() else []
        near = difflib.get_close_matches(file.name, here, n=1, cutoff=0.7)
        raise TargetError(
            f"There is no file {file}.",
            expected=_FORMS,
            found="a folder" if file.is_dir() else "nothing there" if file.parent.is_dir() else f"no folder {file.parent}",
            hint=f"did you mean {file.with_name(near[0])}?" if near else "",
        )
    name = file.stem if file.stem not in sys.modules else f"_saltus_{file.stem}"
    spec = importlib.util.spec_from_loader(name, importlib.machinery.SourceFileLoader(name, str(file.resolve())))
    assert spec
    assert spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with _blaming(f"{file} fails when it is imported."):
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _import_module(name: str) -> ModuleType:
    with _blaming(f"{name} fails when it is imported."):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
        except (ValueError, TypeError):  # "..x", "a..b": no module could have such a name
            if all(part.isidentifier() for part in name.split(".")):
                raise
    raise TargetError(
        f"There is no module {name}.",
        expected=_FORMS,
        found="nothing of that name in this folder or among the installed packages",
        hint=f"for a file write {name}.py:..." if Path(f"{name}.py").is_file() else "a file's name ends in .py",
    )


def _look_up(module: ModuleType, where: str, name: str) -> Any:
    if name and hasattr(module, name):
        return getattr(module, name)
    public = {n: value for n, value in vars(module).items() if not n.startswith("_")}
    targets = [n for n, value in public.items() if isinstance(value, Target)]
    makers = [n for n, value in public.items() if inspect.isfunction(value) and value.__module__ == module.__name__]
    near = difflib.get_close_matches(name, targets + makers, n=1, cutoff=0.5)
    raise TargetError(
        f"{where} has no {name!r}." if name else f"{where}: which target?",
        expected=_WANTED,
        found=f"targets: {', '.join(targets)}" if targets else f"no targets; functions: {', '.join(makers) or 'none'}",
        hint=f"did you mean {where}:{near[0]}?" if near else f"{where}:{targets[0]}" if len(targets) == 1 else "",
    )


def _target(found: Any, where: str, name: str) -> Target:
    """What was found, called if it is a function."""
    if isinstance(found, Target):
        return found
    if not inspect.isroutine(found):
        what = f"the class {found.__name__}" if inspect.isclass(found) else f"{type(found).__name__}: {_brief(found)}"
        raise TargetError(f"{where}:{name} is not a target.", expected=_WANTED, found=what)
    needed = [p.name for p in _parameters(found) if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if needed:
        raise TargetError(
            f"{where}:{name} is a function with arguments.",
            expected=_WANTED,
            found=f"{name}({', '.join(needed)})",
            hint=f"if it is a log-probability: target = saltus.Target({name}, space), then {where}:target",
        )
    with _blaming(f"{where}:{name} fails when it is called."):
        made = found()
    if not isinstance(made, Target):
        raise TargetError(
            f"{where}:{name}() does not return a target.",
            expected="a saltus.Target",
            found=f"{type(made).__name__}: {_brief(made)}",
        )
    return made


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # builtins that do not say
        return []


def _brief(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


@contextlib.contextmanager
def _blaming(what: str) -> Iterator[None]:
    """Errors of the user's code, told with the user's own lines; `--debug` shows the rest."""
    try:
        yield
    except (Exception, SystemExit) as error:
        words = error.msg if isinstance(error, SyntaxError) else str(error)
        told = f"{type(error).__name__}: {words}".replace("\n", _MARGIN)
        raise TargetError(what, found=_MARGIN.join([told, *_user_lines(error)])) from error


def _user_lines(error: BaseException) -> list[str]:
    """The user's innermost line, of the error and of what caused it."""
    if isinstance(error, SyntaxError) and error.filename:
        return [_place(error.filename, error.lineno, error.text or "")]
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((_OURS, "<frozen"))]
    theirs = [f for f in frames if not f.filename.startswith(_INSTALLED)]
    lines = [_place(f.filename, f.lineno, f.line or "") for f in (theirs or frames)[-1:]]
    deeper = _user_lines(error.__cause__) if error.__cause__ else []
    return lines + [line for line in deeper if line not in lines]


def _place(filename: str, line: int | None, source: str) -> str:
    path = Path(filename)
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return f"{shown}, line {line}:  {source.strip()}"
