"""A kernel from its name and options. Which sampler has which option is read off the kernels themselves."""

from __future__ import annotations

import dataclasses
import difflib
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import KernelError, StorageError
from ..kernels import Kernel
from ..run.settings import SAMPLERS


def build_kernel(sampler: str, **options: Any) -> Kernel:
    """The kernel of that name; `options` by field, None where an option was not given."""
    name = sampler.lower().replace("_", "-")
    if name not in SAMPLERS:
        near = difflib.get_close_matches(name, SAMPLERS, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else ""
        raise KernelError(f"--sampler {sampler} is not known.", expected=", ".join(SAMPLERS), hint=hint)
    kind = SAMPLERS[name]
    given = {field: value for field, value in options.items() if value is not None}
    has = [field.name for field in dataclasses.fields(kind) if field.name in options]
    needs = [field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING]
    for field in given:
        if field not in has:
            owners = [n for n, other in SAMPLERS.items() if field in {f.name for f in dataclasses.fields(other)}]
            raise KernelError(
                f"--sampler {name} has no {_option(field)}.",
                expected=", ".join(map(_option, has)),
                found=_option(field),
                hint=f"{_option(field)} belongs to {' and '.join(owners)}",
            )
    missing = [field for field in needs if field not in given]
    if missing:
        options_of = ", ".join(_option(field) if field in needs else f"perhaps {_option(field)}" for field in has)
        raise KernelError(f"--sampler {name} needs {' and '.join(map(_option, missing))}.", hint=f"{name} takes {options_of}")
    return kind(**given)


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


def _option(field: str) -> str:
    return "--" + field.replace("_", "-")
