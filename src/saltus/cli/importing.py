"""A user's module, from `file.py:name` or `package.module:name`; or the user's own line where it cannot be had."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ..engine.codec import USER_FILE
from ..errors import SaltusError, TargetError

_OURS = str(Path(__file__).parent.parent) + os.sep
_INSTALLED = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib"))
_MARGIN = "\n" + " " * 12


def forms(name: str) -> str:
    """How to name something of the user's."""
    return f"file.py:{name} or package.module:{name}"


@contextlib.contextmanager
def imported(where: str, wanted: str, error: type[SaltusError] = TargetError) -> Iterator[ModuleType]:
    """The module at `where`; what lies beside it can be imported meanwhile. wanted: what is looked for in it, for messages."""
    file = Path(where) if where.endswith(".py") or os.sep in where or Path(where).is_file() else None
    with _importable(str(file.resolve().parent) if file else os.getcwd()):
        yield _import_file(file, wanted, error) if file else _import_module(where, wanted, error)


@contextlib.contextmanager
def _importable(folder: str) -> Iterator[None]:
    """What lies beside the user's file can be imported, as if the file were run."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def _import_file(file: Path, wanted: str, error: type[SaltusError]) -> ModuleType:
    if not file.is_file():
        here = [p.name for p in file.parent.glob("*.py")] if file.parent.is_dir() else []
        near = difflib.get_close_matches(file.name, here, n=1, cutoff=0.7)
        raise error(
            f"There is no file {file}.",
            expected=forms(wanted),
            found="a folder" if file.is_dir() else "nothing there" if file.parent.is_dir() else f"no folder {file.parent}",
            hint=f"did you mean {file.with_name(near[0])}?" if near else "",
        )
    seen = _stamp(file)
    for module in (sys.modules.get(file.stem), sys.modules.get(f"{USER_FILE}{file.stem}")):
        if getattr(module, "__saltus_stamp__", None) == seen:
            return module  # type: ignore[return-value]  # imported before: target and sampler may lie in one file
    name = file.stem if file.stem not in sys.modules else f"{USER_FILE}{file.stem}"
    spec = importlib.util.spec_from_loader(name, importlib.machinery.SourceFileLoader(name, str(file.resolve())))
    assert spec
    assert spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    module.__saltus_stamp__ = seen  # type: ignore[attr-defined]
    try:
        with blaming(f"{file} fails when it is imported.", error):
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _stamp(file: Path) -> tuple[Any, ...]:
    told = file.stat()
    return str(file.resolve()), told.st_mtime_ns, told.st_size


def _import_module(name: str, wanted: str, error: type[SaltusError]) -> ModuleType:
    with blaming(f"{name} fails when it is imported.", error):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as missing:
            if missing.name is None or not f"{name}.".startswith(f"{missing.name}."):
                raise
        except (ValueError, TypeError):  # "..x", "a..b": no module could have such a name
            if all(part.isidentifier() for part in name.split(".")):
                raise
    raise error(
        f"There is no module {name}.",
        expected=forms(wanted),
        found="nothing of that name in this folder or among the installed packages",
        hint=f"for a file write {name}.py:..." if Path(f"{name}.py").is_file() else "a file's name ends in .py",
    )


@contextlib.contextmanager
def blaming(what: str, error: type[SaltusError] = TargetError) -> Iterator[None]:
    """Errors of the user's code, told with the user's own lines; `--debug` shows the rest."""
    try:
        yield
    except (Exception, SystemExit) as cause:
        words = cause.msg if isinstance(cause, SyntaxError) else str(cause)
        told = f"{type(cause).__name__}: {words}".replace("\n", _MARGIN)
        raise error(what, found=_MARGIN.join([told, *_user_lines(cause)])) from cause


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
