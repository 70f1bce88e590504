"""The public surface as data: names with what they take, and what a newer package no longer keeps of a recorded one."""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import importlib
import inspect
import re
import warnings
from types import ModuleType
from typing import Any

MARKS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def read_names(root: ModuleType, modules: list[str], examples: dict[str, str]) -> dict[str, dict[str, Any]]:
    """{path: what it is and takes} of all public names, sorted.

    modules: dotted paths; their `__all__` is public, or without one every function and class they define.
    examples: {path of a class: expression that builds one}, for attributes that only an instance has.
    """
    names: dict[str, dict[str, Any]] = {}
    for module in modules:
        home = find(root, module)
        for name in public_names(home):
            thing, path = getattr(home, name), f"{module}.{name}"
            names[path] = describe(thing)
            if isinstance(thing, type):
                names[path] |= {"example": examples[path]} if path in examples else {}
                names |= {f"{path}.{m}": describe_member(thing, m) for m in members(thing, root, examples.get(path))}
    public = {path.rpartition(".")[2] for path, what in names.items() if what["is"] == "class"} | set(dir(builtins))
    for what in names.values():
        if "kind of" in what:
            what["kind of"] = [base for base in what["kind of"] if base in public]
    return dict(sorted(names.items()))


def public_names(module: ModuleType) -> list[str]:
    mine = [n for n, x in vars(module).items() if n[0] != "_" and getattr(x, "__module__", "") == module.__name__]
    return sorted(getattr(module, "__all__", mine))


def describe(thing: Any) -> dict[str, Any]:
    if isinstance(thing, ModuleType):
        return {"is": "module"}
    if isinstance(thing, type):
        return {"is": "class", "kind of": [c.__name__ for c in thing.__mro__[1:-1]], "takes": takes(thing)}
    if callable(thing):
        return {"is": "function", "takes": takes(thing)}
    return {"is": "value", "holds": list(thing)}


def describe_member(cls: type, name: str) -> dict[str, Any]:
    """A method with what it takes, self left out; anything else is an attribute, read without a call."""
    found = inspect.getattr_static(cls, name, None)
    if isinstance(found, (classmethod, staticmethod)):
        return {"is": "method", "takes": takes(getattr(cls, name))}
    if callable(found) and not isinstance(found, type):
        return {"is": "method", "takes": without_self(takes(found))}
    return {"is": "attribute"}


def members(cls: type, root: ModuleType, example: str | None = None) -> list[str]:
    """Public methods, properties, fields and, where there is an example, attributes of the instance."""
    ours = [c for c in cls.__mro__ if c.__module__.split(".")[0] == root.__name__]
    names = {n for c in ours for n in (*vars(c), *inspect.get_annotations(c))}
    names |= {f.name for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    if example:
        with contextlib.suppress(Exception):  # what can no longer be built so is told as a change of its class
            names |= set(vars(eval(example, {root.__name__: root})))
    return sorted(n for n in names if n[0] != "_")


def takes(call: Any) -> list[str] | None:
    """["target", "/", "sampler='auto'", "*", "seed=0", "**options"]; None where Python cannot tell."""
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except ValueError:
        return None
    words: list[str] = []
    only_position = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not any(w[0] == "*" for w in words):
            words.append("*")
        words.append(MARKS.get(p.kind, "") + p.name + ("" if p.default is p.empty else f"={spelled(p.default)}"))
        if i + 1 == len(only_position):
            words.append("/")
    return words


def without_self(words: list[str] | None) -> list[str] | None:
    return words and [w for w in words[1:] if w != "/" or "/" in words[2:]]


def spelled(default: Any) -> str:
    """A default as a person writes it: classes and functions by name, nothing that changes from run to run."""
    named = isinstance(default, type) or inspect.isfunction(default)
    return default.__name__ if named else re.sub(r" at 0x[0-9a-f]+", "", repr(default))


def find(root: ModuleType, path: str) -> Any:
    """What a dotted path leads to, modules imported on the way; AttributeError where it leads nowhere."""
    thing: Any = root
    for part in path.split(".")[1:]:
        try:
            thing = getattr(thing, part)
        except AttributeError:
            if not isinstance(thing, ModuleType):
                raise
            thing = imported(f"{thing.__name__}.{part}")
    return thing


def imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as cause:
        raise AttributeError(name) from cause


def broken_names(recorded: dict[str, dict[str, Any]], root: ModuleType) -> list[str]:
    """One line for everything recorded that no longer holds. What is there but deprecated holds."""
    lines: list[str] = []
    gone: list[str] = []
    for path, was in sorted(recorded.items()):
        if any(path.startswith(f"{parent}.") for parent in gone):
            continue
        parent = path.rpartition(".")[0]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                owner = find(root, parent)
                lines += [f"{path}: {text}" for text in changes(was, owner, path, root, recorded.get(parent, {}))]
        except AttributeError:
            gone.append(path)
            lines.append(f"{path}: gone")
    return lines


def changes(was: dict[str, Any], owner: Any, path: str, root: ModuleType, recorded_owner: dict[str, Any]) -> list[str]:
    """What is different for those who use it; AttributeError where it is gone."""
    name = path.rpartition(".")[2]
    if isinstance(owner, type):
        if name not in members(owner, root, recorded_owner.get("example")) and not hasattr(owner, name):
            raise AttributeError(path)
        now, call = describe_member(owner, name), getattr(owner, name, None)
    else:
        call = find(root, path)
        now = describe(call)
    if now["is"] != was["is"]:
        return [f"was a {was['is']}, is a {now['is']}"]
    lost = [x for key in ("kind of", "holds") for x in was.get(key, []) if x not in now.get(key, [])]
    lines = [f"no longer {'a kind of' if was['is'] == 'class' else 'holds'} {x}" for x in lost]
    if was.get("takes") is None:
        return lines
    return lines + [text for parameter, text in broken_call(was["takes"], now["takes"] or []) if not warns(call, parameter)]


def broken_call(was: list[str], now: list[str]) -> list[tuple[str, str]]:
    """(parameter, what is wrong) for calls that were right and no longer are."""
    old, new = parsed(was), parsed(now)
    place = [name for name, (kind, _) in new.items() if kind in ("/", "")]
    wrong = []
    for i, (name, (kind, default)) in enumerate(old.items()):
        if name[0] == "*":
            wrong += [] if any(n.count("*") == name.count("*") for n in new) else [(name, f"no longer takes {name}")]
        elif name not in new:
            wrong.append((name, f"no longer takes `{name}`"))
        elif kind != "*" and (name not in place or place.index(name) != i):
            wrong.append((name, f"`{name}` is no longer argument {i + 1}"))
        elif kind != "/" and new[name][0] == "/":
            wrong.append((name, f"`{name}` can no longer be given by name"))
        elif default is not None and new[name][1] != default:
            wrong.append((name, f"default of `{name}` was {default}, is {new[name][1] or 'gone'}"))
    added = [n for n, (_, default) in new.items() if n not in old and n[0] != "*" and default is None]
    return wrong + [(name, f"`{name}` is new and has no default") for name in added]


def parsed(words: list[str]) -> dict[str, tuple[str, str | None]]:
    """{name: (kind, default)}; kind: "/" by position only, "*" by name only, "" either; stars stay on the names that have them."""
    found: dict[str, tuple[str, str | None]] = {}
    kind = "/" if "/" in words else ""
    for word in words:
        name, equals, default = word.partition("=")
        if word == "/":
            kind = ""
        elif word != "*":
            found[name] = (kind, default if equals else None)
        if name[0] == "*":
            kind = "*"
    return found


def warns(call: Any, parameter: str) -> bool:
    """Whether the parameter, though gone from the signature or with another default, is taken and deprecated by its name.

    The warning has to come before anything else is looked at: all that is required is given as None.
    """
    required = [p for p in inspect.signature(call).parameters.values() if p.default is p.empty and p.kind not in MARKS]
    by_name = {p.name: None for p in required if p.kind is p.KEYWORD_ONLY}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            call(*[None] * (len(required) - len(by_name)), **by_name, **{parameter: None})
    except DeprecationWarning as warning:
        return parameter in str(warning)
    except Exception:
        return False
    return False
