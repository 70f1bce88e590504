"""`file.py:target` and `package.module:target`: the user's Target, or the user's own line where it cannot be had."""

from __future__ import annotations

import difflib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import TargetError
from ..target import Target
from .importing import blaming, forms, imported

_WANTED = "the name of a saltus.Target, or of a function without arguments that returns one"


def load_target(given: str) -> Target:
    """The target that `given` names, or TargetError."""
    where, colon, name = given.rpartition(":")
    if not colon or not where:
        is_file = given.endswith(".py") or Path(given).is_file()
        raise TargetError(
            f"{given!r} does not name a target.",
            expected=forms("target"),
            found="no colon" if not colon else "nothing before the colon",
            hint=f"{given}:target, if that is its name in the file" if is_file else "",
        )
    with imported(where, "target") as module:
        return _target(_look_up(module, where, name), where, name)


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
    with blaming(f"{where}:{name} fails when it is called."):
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
