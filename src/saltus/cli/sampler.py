"""A sampler from its name and options. Which has which option is read off the kernels themselves."""

from __future__ import annotations

import dataclasses
import difflib
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import KernelError, StorageError
from ..kernels import Kernel
from ..run.choice import AUTO
from ..run.settings import SAMPLERS

OPTIONS = ("step_size", "radius", "scan", "preconditioner", "scale", "shift")


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
    return _build_kernel(kind, given) if given else kind


def find_kind(sampler: str) -> type[Kernel]:
    """The class of a sampler."""
    name = sampler.lower().replace("_", "-")
    if name not in SAMPLERS:
        near = difflib.get_close_matches(name, SAMPLERS, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else ""
        raise KernelError(f"--sampler {sampler} is not known.", expected=", ".join(SAMPLERS), hint=hint)
    return SAMPLERS[name]


def options_of(kind: type[Kernel]) -> list[str]:
    """Those of its fields that the command line has; the others keep their defaults."""
    return [field.name for field in dataclasses.fields(kind) if field.name in OPTIONS]


def _build_kernel(kind: type[Kernel], given: dict[str, Any]) -> Kernel:
    name = next(name for name, other in SAMPLERS.items() if other is kind)
    has = options_of(kind)
    needs = [field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING]
    for field in given:
        if field not in has:
            raise KernelError(
                f"--sampler {name} has no {option_name(field)}.",
                expected=", ".join(map(option_name, has)),
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
    return " and ".join(name for name, kind in SAMPLERS.items() if field in {f.name for f in dataclasses.fields(kind)})


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
