"""Samplers from their names and options. Which has which option is read off the kernels themselves."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.samplers import AUTO, find_sampler, is_sampler
from ..errors import KernelError, StorageError
from ..kernels import Kernel, samplers
from .importing import forms, imported

OPTIONS = ("step_size", "radius", "scan", "preconditioner", "scale", "shift")


def read_samplers(names: str | Sequence[str], **options: Any) -> Any:
    """What `saltus.sample` takes: one sampler as `read_sampler` reads it, or a list of those that race."""
    names = [names] if isinstance(names, str) else list(names)
    if len(names) == 1:
        return read_sampler(names[0], **options)
    given = [option_name(field) for field, value in options.items() if value is not None]
    if given and names:
        hint = f"{given[0]} belongs to one sampler; those of a race are tuned"
        raise KernelError(f"Several samplers have no {given[0]}.", expected="one --sampler", found=", ".join(names), hint=hint)
    return [AUTO if name.lower() == AUTO else find_kind(name) for name in names]


def read_sampler(sampler: str, **options: Any) -> Any:
    """What `saltus.sample` takes: "auto", the kernel that the options make, or where none is given the class, to be tuned.

    `options` by field, None where an option was not given.
    """
    given = {field: value for field, value in options.items() if value is not None}
    if sampler.lower() == AUTO:
        for field in given:
            hint = f"{option_name(field)} belongs to {_owners(field)}: say which with --sampler"
            raise KernelError(f"--sampler {AUTO} has no {option_name(field)}.", found=option_name(field), hint=hint)
        return AUTO
    kind = find_kind(sampler)
    return _build_kernel(kind, given, sampler) if given else kind


def find_kind(sampler: str) -> Any:
    """The class of a sampler, by its name or by where it is; a kernel that is there will do as well."""
    if ":" in sampler:
        return _of_the_user(sampler)
    try:
        return find_sampler(sampler)
    except KernelError as cause:
        near = difflib.get_close_matches(sampler.lower().replace("_", "-"), samplers(), n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else ""
        expected = f"{', '.join(samplers())}, {forms('MyKernel')}"
        raise KernelError(f"--sampler {sampler} is not known.", expected=expected, hint=hint) from cause


def _of_the_user(sampler: str) -> Any:
    where, _, name = sampler.rpartition(":")
    if not where or not name:
        raise KernelError(f"--sampler {sampler} does not name a sampler.", expected=forms("MyKernel"), found=repr(sampler))
    with imported(where, "MyKernel", KernelError) as module:
        found = getattr(module, name, None)
        if is_sampler(found) or isinstance(found, Kernel):
            return found
        known = [n for n, value in vars(module).items() if is_sampler(value) and value.__module__ == module.__name__]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    raise KernelError(
        f"{where} has no {name!r}." if found is None else f"--sampler {sampler} is not a sampler.",
        expected="the name of a saltus.Kernel class, or of a kernel",
        found=f"samplers: {', '.join(known) or 'none'}" if found is None else repr(found),
        hint=f"did you mean {where}:{near[0]}?" if near else "",
    )


def options_of(kind: type[Kernel]) -> list[str]:
    """Those of its fields that the command line has; the others keep their defaults."""
    return [field.name for field in dataclasses.fields(kind) if field.name in OPTIONS]


def needed_by(kind: type[Kernel]) -> list[str]:
    """Those of its fields that have no default."""
    return [
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]


def _build_kernel(kind: Any, given: dict[str, Any], name: str) -> Kernel:
    if isinstance(kind, Kernel):
        option = option_name(next(iter(given)))
        raise KernelError(f"--sampler {name} is a kernel with settings of its own.", found=option, hint=f"leave {option} out")
    has, needs = options_of(kind), needed_by(kind)
    name = name if ":" in name else kind.name
    for field in given:
        if field not in has:
            raise KernelError(
                f"--sampler {name} has no {option_name(field)}.",
                expected=", ".join(map(option_name, has)) or "no option",
                found=option_name(field),
                hint=f"{option_name(field)} belongs to {_owners(field)}",
            )
    missing = [field for field in needs if field not in given]
    if missing:
        takes = ", ".join(option_name(field) if field in needs else f"perhaps {option_name(field)}" for field in has)
        raise KernelError(
            f"--sampler {name} needs {' and '.join(map(option_name, missing))}.",
            hint=f"{name} takes {takes}; with none of them it is tuned",
        )
    return kind(**given)


def _owners(field: str) -> str:
    *others, last = [name for name, kind in samplers().items() if field in {f.name for f in dataclasses.fields(kind)}]
    return f"{', '.join(others)} and {last}" if others else last


def load_array(path: Path | None, option: str) -> np.ndarray | None:
    """The array of an .npy file; pickles are refused."""
    if path is None:
        return None
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as cause:
        found = f"{type(cause).__name__}: {cause}"
        if isinstance(cause, FileNotFoundError):
            found = "no such file"
        elif isinstance(cause, ValueError) and "pickle" in str(cause):  # numpy's guess at whatever it does not know
            found = "something else, or an array of objects"
        raise StorageError(f"{option} {path} cannot be read.", expected="one array, as np.save writes it", found=found) from cause
    if not isinstance(array, np.ndarray):
        array.close()
        raise StorageError(f"{option} {path} is not one array.", expected="an .npy file", found="an archive of several arrays")
    return array


def option_name(field: str) -> str:
    return "--" + field.replace("_", "-")
