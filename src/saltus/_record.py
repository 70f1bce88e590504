"""`record`: a frozen dataclass that is also a JAX pytree, and the checks its numbers pass on the way in."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from .errors import KernelError, SaltusError

T = TypeVar("T")
_LONGEST = 200  # characters of a value in an error
Number = Any  # of a kernel: given as a number or an array, kept as a jax.Array


def static(**options: Any) -> Any:
    """A field that is part of the tree's structure (hashed and compared), not a leaf."""
    return dataclasses.field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(static,))
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen dataclass whose fields are pytree leaves, except those declared `static()`.

    Unflattening bypasses `__init__`, so JAX may put tracers, `None` or `object()` where numbers were; validation
    happens where a person builds the object. Equality is identity: arrays have no truth value.
    """
    cls = dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    leaves = [f.name for f in fields if not f.metadata.get("static")]
    statics = [f.name for f in fields if f.metadata.get("static")]

    def flatten(obj: Any) -> tuple[tuple, tuple]:
        return tuple(getattr(obj, n) for n in leaves), tuple(getattr(obj, n) for n in statics)

    def flatten_with_keys(obj: Any) -> tuple[tuple, tuple]:
        children, aux = flatten(obj)
        return tuple((jax.tree_util.GetAttrKey(n), c) for n, c in zip(leaves, children, strict=True)), aux

    def unflatten(aux: tuple, children: Any) -> Any:
        obj: Any = object.__new__(cls)
        fill(obj, **dict(zip(leaves, children, strict=True)), **dict(zip(statics, aux, strict=True)))
        return obj

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    if cls.__repr__ is object.__repr__:
        cls.__repr__ = _describe  # type: ignore[method-assign]
    return cls


def fill(obj: Any, **values: Any) -> None:
    """Set fields of a frozen record while it is being built.

    obj: the record, in its `__post_init__`. Example: `fill(self, step_size=as_positive(self.step_size, "step_size"))`.
    """
    for name, value in values.items():
        object.__setattr__(obj, name, value)


def changed(obj: Any, **values: Any) -> Any:
    """A copy of a record with some fields replaced, without running its `__init__`.

    obj: the record. Example: `changed(kernel, step_size=eps)`.
    """
    new = object.__new__(type(obj))
    fill(new, **{f.name: getattr(obj, f.name) for f in dataclasses.fields(obj)})
    fill(new, **values)
    return new


def _describe(obj: Any) -> str:
    """`NCG(step_size=0.5)`: numbers as numbers, arrays as their shape, defaults left out."""
    parts = []
    for f in dataclasses.fields(obj):
        value = getattr(obj, f.name)
        text = _brief(value)
        if f.default is dataclasses.MISSING or text != _brief(f.default):
            parts.append(f"{f.name}={text}")
    return f"{type(obj).__name__}({', '.join(parts)})"


def _brief(value: Any) -> str:
    if is_concrete(value) and np.shape(value) == () and isinstance(value, (jax.Array, np.ndarray, np.generic, float)):
        return f"{np.asarray(value).item():g}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"array{tuple(value.shape)}"
    return repr(value)


def is_concrete(value: Any) -> bool:
    """False for tracers: inside `jit` nothing can be checked, and nothing is raised."""
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))


def default_float() -> Any:
    """float32, or float64 where x64 is enabled."""
    return jnp.result_type(float)


def as_float(value: Any, name: str, error: type[SaltusError] = KernelError) -> jax.Array:
    """A strongly typed float array, so that 0.5, 1 and float32(1) give one trace; finite where that can be seen.

    value: what was given. name: of the argument, for the error. error: the exception to raise.
    """
    try:
        real = not np.iscomplexobj(value) and getattr(getattr(value, "dtype", None), "kind", "f") in "biufV"  # V: bfloat16
        array = jnp.asarray(value, dtype=default_float()) if real else None
    except Exception:  # JAX and numpy have many
        array = None
    if array is None:
        raise error(f"`{name}` is not a number.", expected="a real number or array", found=shown(value))
    if is_concrete(array) and not np.isfinite(array).all():
        raise error(f"`{name}` is not finite.", expected="finite numbers", found=_brief(_first(array, ~np.isfinite(array))))
    return array


def as_positive(value: Any, name: str) -> jax.Array:
    """`as_float`, and greater than zero.

    value, name: as for `as_float`; KernelError where it is not.
    """
    array = as_float(value, name)
    if is_concrete(array) and not (np.asarray(array) > 0).all():
        raise KernelError(f"`{name}` must be positive.", expected=f"{name} > 0", found=_brief(_first(array, ~(array > 0))))
    smallest = 4 / float(jnp.finfo(array.dtype).max)
    if is_concrete(array) and (np.asarray(array) < smallest).any():
        raise KernelError(
            f"`{name}` is too small: its inverse overflows.", expected=f"{name} > {smallest:.1e}", found=_brief(np.min(array))
        )
    return array


def as_radius(value: Any) -> jax.Array:
    """A whole number of hops, at least 1; a leaf too, so `vmap` over radii works.

    value: what was given; KernelError where it is not.
    """
    hint = "a radius counts hops between values (or sites), so it is a whole number"
    try:
        given = as_array(value, "radius", KernelError)
    except KernelError:
        given = np.zeros(())
    if given.dtype.kind not in "iu":
        raise KernelError("`radius` is not a whole number.", expected="an integer >= 1", found=shown(value), hint=hint)
    if is_concrete(given) and (not given.size or not (np.asarray(given) >= 1).all()):
        raise KernelError("`radius` is too small.", expected="an integer >= 1", found=shown(value), hint=hint)
    return jnp.asarray(np.minimum(given, 2**31 - 1) if is_concrete(given) else given, dtype=jnp.int32)  # huge: everything


def as_size(value: Any, name: str, error: type[SaltusError], least: int = 1, most: int = 2**63 - 1) -> int:
    """A concrete whole number >= `least`, and <= `most`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        expected = f"an integer >= {least}" + (f" and <= {most}" if isinstance(value, (int, np.integer)) and value > most else "")
        raise error(f"`{name}` is not usable.", expected=expected, found=shown(value))
    return int(value)


def as_array(value: Any, name: str, error: type[SaltusError] = SaltusError, expected: str = "an array of real numbers") -> Any:
    """What is an array of real numbers, booleans among them: on the host, unless it is JAX's own."""
    try:
        array = value if isinstance(value, jax.Array) else np.asarray(value)
        real = getattr(array.dtype, "kind", "?") in "biuf" or jnp.issubdtype(array.dtype, jnp.floating)
    except Exception:  # ragged lists, objects that only look like arrays
        real = False
    if not real:
        raise error(f"`{name}` is not an array of numbers.", expected=expected, found=shown(value))
    return array


def as_flag(value: Any, name: str, error: type[SaltusError]) -> bool:
    """True or False, nothing else."""
    if not isinstance(value, (bool, np.bool_)):
        raise error(f"`{name}` is not usable.", expected="True or False", found=shown(value))
    return bool(value)


def as_choice(value: Any, name: str, choices: Any, error: type[SaltusError]) -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in choices:
        raise error(f"`{name}` is not known.", expected=" or ".join(map(repr, choices)), found=shown(value))
    return value


def as_sequence(value: Any, name: str, error: type[SaltusError], expected: str) -> list:
    """What can be gone through, as a list; not a word."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return list(value)
    except Exception:
        raise error(f"`{name}` is not usable.", expected=expected, found=shown(value)) from None


def as_real(value: Any, name: str, error: type[SaltusError], expected: str = "a finite number") -> float:
    """One finite real number, on the host."""
    array = np.asarray(as_array(value, name, error, expected))
    if array.shape != () or array.dtype.kind == "b" or not np.isfinite(array):
        raise error(f"`{name}` is not usable.", expected=expected, found=shown(value))
    return float(array)


def shown(value: Any) -> str:
    """A value in an error: short, whatever it is."""
    if hasattr(value, "shape") and hasattr(value, "dtype") and np.shape(value):
        return f"an array of {value.dtype}, shape {tuple(value.shape)}"
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _first(array: Any, where: Any) -> Any:
    return np.asarray(array)[np.asarray(where)].ravel()[0]
