"""Kernels as data: a JSON structure and named arrays, and back, without pickle and without importing anything."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import fill
from ..errors import StorageError
from ..kernels import Kernel
from ..neighbours import Incidence
from ..preconditioners import Preconditioner


def to_data(value: Any, name: str = "") -> tuple[Any, dict[str, np.ndarray]]:
    """(JSON, arrays): records by class name and fields, containers as they are, arrays by the path that leads to them."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value, {}
    if dataclasses.is_dataclass(value) and _known().get(type(value).__name__) is type(value):
        parts = {f.name: to_data(getattr(value, f.name), _join(name, f.name)) for f in dataclasses.fields(value)}
        return {"record": type(value).__name__, "fields": {n: p[0] for n, p in parts.items()}}, _merge(parts.values())
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
    obj: Any = object.__new__(_record_class(structure["record"]))
    fill(obj, **{name: from_data(field, arrays) for name, field in structure["fields"].items()})
    return obj


def _known() -> dict[str, type]:
    return {cls.__name__: cls for root in (Kernel, Preconditioner, Incidence) for cls in (root, *_descendants(root))}


def _record_class(name: str) -> type:
    """Among the records that kernels are made of, those of the user included: what is already imported, nothing else."""
    known = _known()
    if name not in known:
        raise StorageError(
            f"The kernel {name!r} is not known here.",
            expected="a kernel of saltus, or one whose module has been imported",
            found=name,
            hint="import the module that defines it, then try again",
        )
    return known[name]


def _descendants(cls: Any) -> list[type]:
    return [d for sub in cls.__subclasses__() for d in (sub, *_descendants(sub))]


def _join(*names: str) -> str:
    return ".".join(filter(None, names))


def _merge(parts: Any) -> dict[str, np.ndarray]:
    return {name: array for _, arrays in parts for name, array in arrays.items()}
