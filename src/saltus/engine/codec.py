"""Kernels as data: a JSON structure and named arrays, and back, without pickle and without importing anything."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_float, fill
from ..errors import SaltusError, StorageError
from ..kernels import Kernel
from ..neighbours import Incidence
from ..preconditioners import Preconditioner

USER_FILE = "_saltus_"  # begins the name of a module that the command line made of a file, where its own name was taken
_PACKAGE = __name__.partition(".")[0]
_ROOTS = (Kernel, Preconditioner, Incidence)


def to_data(value: Any, name: str = "") -> tuple[Any, dict[str, np.ndarray]]:
    """(JSON, arrays): records by `record_name` and fields, containers as they are, arrays by the path that leads to them."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value, {}
    if dataclasses.is_dataclass(value) and isinstance(value, _ROOTS):
        parts = {f.name: to_data(getattr(value, f.name), _join(name, f.name)) for f in dataclasses.fields(value)}
        return {"record": record_name(type(value)), "fields": {n: p[0] for n, p in parts.items()}}, _merge(parts.values())
    if isinstance(value, (tuple, list)):
        items = [to_data(item, _join(name, str(i))) for i, item in enumerate(value)]
        return {"items": [p[0] for p in items]}, _merge(items)
    if isinstance(value, (jax.Array, np.ndarray, np.generic)):
        return {"array": name}, {name: np.asarray(value)}
    raise StorageError(
        f"The kernel cannot be saved: its field {name!r} is not data.",
        expected="numbers, arrays, strings, tuples and saltus records",
        found=type(value).__name__,
        hint="such a kernel can be run, but not with checkpoint=",
    )


def from_data(structure: Any, arrays: Any) -> Any:
    """What `to_data` took apart."""
    if not isinstance(structure, dict):
        return structure
    if "array" in structure:
        return jnp.asarray(np.asarray(arrays[structure["array"]]))
    if "items" in structure:
        return tuple(from_data(item, arrays) for item in structure["items"])
    cls = _record_class(structure["record"])
    obj: Any = object.__new__(cls)
    fill(obj, **_defaults(cls, structure["fields"]), **{name: from_data(x, arrays) for name, x in structure["fields"].items()})
    return _checked(obj)


def _checked(obj: Any) -> Any:
    """The record, through the checks that it would pass if a person had built it; StorageError where it does not."""
    try:
        for leaf in jax.tree.leaves(obj):
            as_float(leaf, "a number of the kernel") if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else None
        if isinstance(obj, Kernel) and hasattr(obj, "__post_init__"):
            obj.__post_init__()
    except SaltusError as cause:
        raise StorageError(
            f"The stored {type(obj).__name__} is not possible.",
            expected="settings as saltus wrote them",
            found=str(cause).replace("\n ", ";"),
            hint="the file is damaged, or was not written by saltus",
        ) from cause
    return obj


def _defaults(cls: Any, stored: dict[str, Any]) -> dict[str, Any]:
    """Of fields that the class has got since; StorageError where it is another class altogether."""
    fields = {f.name: f.default for f in dataclasses.fields(cls)}
    odd = [name for name in stored if name not in fields]
    odd += [name for name, default in fields.items() if name not in stored and default is dataclasses.MISSING]
    if odd:
        raise StorageError(
            f"{cls.__name__} has other fields than when it was stored.",
            expected=", ".join(stored) or "no fields",
            found=", ".join(fields) or "no fields",
            hint=f"the version of {cls.__module__} that made it can read it",
        )
    return {name: default for name, default in fields.items() if name not in stored}


def record_name(cls: Any) -> str:
    """By which a file knows a class: its name for ours, "module:name" for those from outside, so that none is taken for another."""
    if _ours(cls):
        return cls.__name__
    return f"{cls.__module__.removeprefix(USER_FILE)}:{cls.__qualname__}"


def same_record(one: str, other: str) -> bool:
    """Whether two names may mean the same class: saltus 0.1 wrote those from outside without their modules."""
    bare, full = sorted((one, other), key=lambda name: ":" in name)
    from_outside = ":" not in bare and bare not in {cls.__name__ for cls in _every() if _ours(cls)}
    return one == other or (from_outside and full.partition(":")[2].rpartition(".")[2] == bare)


def same_structure(one: Any, other: Any) -> bool:
    """Whether two JSON parts of `to_data` are the same, by `same_record`."""
    if isinstance(one, dict) and isinstance(other, dict) and "record" in one and "record" in other:
        mine, its = one["fields"], other["fields"]
        same_fields = set(mine) == set(its) and all(same_structure(mine[name], its[name]) for name in mine)
        return same_fields and same_record(one["record"], other["record"])
    return one == other


def _ours(cls: Any) -> bool:
    return cls.__module__.partition(".")[0] == _PACKAGE


def _record_class(name: str) -> type:
    """Among the records that kernels are made of, those of the user included: what is already imported, nothing else."""
    found = {record_name(cls): cls for cls in _every()}  # one that was defined again replaces the old one
    if name in found:
        return found[name]
    likely = {label: cls for label, cls in found.items() if not _ours(cls) and same_record(label, name)}
    if len(likely) == 1:
        return next(iter(likely.values()))
    module = name.partition(":")[0] if ":" in name else "the module that defines it"
    raise StorageError(
        f"The kernel {name!r} is not known here." if not likely else f"Which {name!r} made this is not known.",
        expected="a kernel of saltus, or one whose module has been imported",
        found=", ".join(likely) or name,
        hint="import only the one that was used" if likely else f"import {module}, then try again",
    )


def check_storable(kernel: Any, must: bool) -> None:
    """StorageError where the kernel must be stored and cannot be; a warning where it need not be."""
    try:
        to_data(kernel)
    except StorageError as cause:
        if must:
            raise
        field = str(cause).splitlines()[0].removeprefix("The kernel cannot be saved: ").rstrip(".")
        told = f"This kernel cannot be saved: {field}. The run will work, checkpoint= and saltus.kernel_of(run) will not."
        warnings.warn(told, stacklevel=5)


def _every() -> list[type]:
    return [cls for root in _ROOTS for cls in (root, *_descendants(root))]


def _descendants(cls: Any) -> list[type]:
    return [d for sub in cls.__subclasses__() for d in (sub, *_descendants(sub))]


def _join(*names: str) -> str:
    return ".".join(filter(None, names))


def _merge(parts: Any) -> dict[str, np.ndarray]:
    return {name: array for _, arrays in parts for name, array in arrays.items()}
