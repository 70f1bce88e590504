"""The continuous part of a model: named arrays, mapped to one vector of real numbers without bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._compiling import program
from .._record import default_float, shown
from ..errors import TargetError

_EXPECTED = '"real", "positive", "unit", "simplex", "ordered", (low, high), or a pair of functions (forward, log_det)'


@dataclass(frozen=True)
class Transform:
    """x = forward(u) of unbounded u, and log |dx/du|; `shape` is that of u where x has the shape given."""

    forward: Callable[[jax.Array], jax.Array]
    log_det: Callable[[jax.Array], jax.Array]
    shape: Callable[[tuple[int, ...]], tuple[int, ...]]


def _same(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape


def _one_less(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-1], shape[-1] - 1)


def _nothing(u: jax.Array) -> jax.Array:
    return jnp.zeros((), u.dtype)


def _log_sigmoid_slope(u: jax.Array) -> jax.Array:
    return -jax.nn.softplus(u) - jax.nn.softplus(-u)


def _sticks(u: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(log of what is broken off, log of what is left before), by breaking a stick; uniform for u = 0."""
    n = u.shape[-1]
    u = u - jnp.log(jnp.arange(n, 0, -1, dtype=u.dtype))
    taken, kept = jax.nn.log_sigmoid(u), jax.nn.log_sigmoid(-u)
    left = jnp.concatenate([jnp.zeros((*u.shape[:-1], 1), u.dtype), jnp.cumsum(kept, axis=-1)], axis=-1)
    return jnp.concatenate([taken, jnp.zeros((*u.shape[:-1], 1), u.dtype)], axis=-1), left


def _simplex(u: jax.Array) -> jax.Array:
    taken, left = _sticks(u)
    return jnp.exp(taken + left)


def _simplex_log_det(u: jax.Array) -> jax.Array:
    shifted = u - jnp.log(jnp.arange(u.shape[-1], 0, -1, dtype=u.dtype))
    return jnp.sum(_log_sigmoid_slope(shifted) + _sticks(u)[1][..., :-1])


def _ordered(u: jax.Array) -> jax.Array:
    return jnp.cumsum(jnp.concatenate([u[..., :1], jnp.exp(u[..., 1:])], axis=-1), axis=-1)


_KNOWN = {
    "real": Transform(lambda u: u, _nothing, _same),
    "positive": Transform(jnp.exp, jnp.sum, _same),
    "unit": Transform(jax.nn.sigmoid, lambda u: jnp.sum(_log_sigmoid_slope(u)), _same),
    "simplex": Transform(_simplex, _simplex_log_det, _one_less),
    "ordered": Transform(_ordered, lambda u: jnp.sum(u[..., 1:]), _same),
}


@dataclass(frozen=True)
class Interval:
    """Between two numbers; equal for equal ones."""

    low: float
    high: float

    def forward(self, u: jax.Array) -> jax.Array:
        return self.low + (self.high - self.low) * jax.nn.sigmoid(u)

    def log_det(self, u: jax.Array) -> jax.Array:
        return jnp.sum(_log_sigmoid_slope(u) + math.log(self.high - self.low))

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape


def read_transform(given: Any, name: str) -> Any:
    """By its word, as an interval or as a pair of functions; TargetError otherwise."""
    if isinstance(given, str) and given in _KNOWN:
        return _KNOWN[given]
    if isinstance(given, (tuple, list)) and len(given) == 2:
        if all(map(callable, given)):
            return Transform(given[0], given[1], _same)
        if all(isinstance(x, (int, float)) and math.isfinite(x) for x in given) and given[0] < given[1]:
            return Interval(float(given[0]), float(given[1]))
    raise TargetError(f"The transform of {name!r} is not known.", expected=_EXPECTED, found=shown(given))


@dataclass(frozen=True)
class Continuous:
    """Which continuous variables there are. names, shapes, transforms: one each; hashable, so that nothing recompiles."""

    treedef: Any
    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    transforms: tuple[Any, ...]

    @property
    def size(self) -> int:
        """Numbers without bounds, in all."""
        return sum(math.prod(t.shape(shape)) for t, shape in zip(self.transforms, self.shapes, strict=True))

    def _parts(self, theta: jax.Array) -> list[jax.Array]:
        found, start = [], 0
        for transform, shape in zip(self.transforms, self.shapes, strict=True):
            own = transform.shape(shape)
            found.append(theta[start : start + math.prod(own)].reshape(own))
            start += math.prod(own)
        return found

    def constrained(self, theta: jax.Array) -> Any:
        """The variables as log_prob sees them."""
        each = [t.forward(u) for t, u in zip(self.transforms, self._parts(theta), strict=True)]
        return jax.tree.unflatten(self.treedef, each)

    def log_det(self, theta: jax.Array) -> jax.Array:
        """log |dx/dθ|."""
        each = [jnp.asarray(t.log_det(u), theta.dtype) for t, u in zip(self.transforms, self._parts(theta), strict=True)]
        return sum(each, jnp.zeros((), theta.dtype))


@program(once=True, static_argnums=0)
def constrained_draws(continuous: Continuous, theta: jax.Array) -> Any:
    """The variables, of θ (chains, draws, n)."""
    return jax.vmap(jax.vmap(continuous.constrained))(theta)


def read_continuous(given: Any, transforms: Any) -> Continuous:
    """Shapes, or a tree of arrays with the shapes, by name; TargetError where it is neither."""
    expected = "{name: shape}, such as {'mu': (3,), 'sigma': ()}, or a tree of arrays of these shapes"

    def is_shape(x: Any) -> bool:
        return isinstance(x, tuple) and all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 0 for n in x)

    if not isinstance(given, Mapping):
        raise TargetError("`continuous` is not usable.", expected=expected, found=shown(given))
    leaves, treedef = jax.tree_util.tree_flatten_with_path(dict(given), is_leaf=is_shape)
    names, shapes = [], []
    for path, leaf in leaves:
        names.append(".".join(str(getattr(key, "key", getattr(key, "idx", key))) for key in path))
        try:
            shapes.append(tuple(int(n) for n in leaf) if is_shape(leaf) else tuple(np.shape(leaf)))
        except Exception:
            raise TargetError("`continuous` is not usable.", expected=expected, found=shown(leaf)) from None
    if not names or not sum(math.prod(shape) for shape in shapes):
        raise TargetError(
            "`continuous` has no number in it.", expected=expected, found=shown(given), hint="saltus.sample is for discrete targets"
        )
    told = _read_transforms(transforms, names)
    for name, shape, transform in zip(names, shapes, told, strict=True):
        if transform.shape is _one_less and (not shape or shape[-1] < 2):
            raise TargetError(f"A simplex has two entries or more: {name!r}.", expected="shape (..., k), k >= 2", found=str(shape))
    return Continuous(treedef, tuple(names), tuple(shapes), tuple(told))


def _read_transforms(transforms: Any, names: list[str]) -> list[Any]:
    if transforms is not None and not isinstance(transforms, Mapping):
        expected = "{name: transform} of continuous variables"
        raise TargetError("`transforms` is not usable.", expected=expected, found=shown(transforms))
    unknown = sorted(map(str, set(transforms or {}) - set(names)))
    if unknown:
        raise TargetError("`transforms` names what is not there.", expected=f"some of {names}", found=", ".join(unknown))
    return [read_transform((transforms or {}).get(name, "real"), name) for name in names]


def zeros(continuous: Continuous) -> jax.Array:
    return jnp.zeros(continuous.size, default_float())
