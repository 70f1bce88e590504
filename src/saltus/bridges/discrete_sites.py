"""Discrete sites of a model in another language: which values they take, and the product space they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import TargetError
from ..spaces import Binary, Categorical, Ordinal, Product, Space

_MOST_VALUES = 2**14


@dataclass(frozen=True)
class Group:
    """Elements of a site that take the same values: their space among the parts of the product, and where they are in the site."""

    part: str
    low: int
    index: tuple[int, ...]


@dataclass(frozen=True)
class Site:
    """A discrete site. groups: of elements with the same support. fixed: ((element, value), ...) of those with one value."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    groups: tuple[Group, ...]
    fixed: tuple[tuple[int, int], ...]
    one_hot: bool
    dims: tuple[str, ...]

    def value(self, s: dict[str, jax.Array], as_float: bool) -> jax.Array:
        """The site's value, from a state of the product."""
        flat = [self._numbers(s[group.part]) for group in self.groups]
        order = np.concatenate([np.asarray(g.index, int) for g in self.groups] + [np.asarray([i for i, _ in self.fixed], int)])
        joined = jnp.concatenate([*flat, jnp.asarray([float(v) for _, v in self.fixed], flat[0].dtype)])
        joined = joined if (order == np.arange(len(order))).all() else joined[np.argsort(order)]
        joined = joined.reshape(self.shape)
        return joined if as_float else jnp.round(joined).astype(jnp.int32)

    def _numbers(self, s: jax.Array) -> jax.Array:
        return jnp.sum(s * jnp.arange(s.shape[-1], dtype=s.dtype), axis=-1) if s.ndim == 2 else s

    def shown(self, codes: dict[str, np.ndarray]) -> np.ndarray:
        """(..., *shape) from the codes of the parts (..., sites)."""
        lead = codes[self.groups[0].part].shape[:-1]
        flat = np.zeros((*lead, int(np.prod(self.shape, dtype=int))), np.dtype(self.dtype))
        for group in self.groups:
            flat[..., list(group.index)] = codes[group.part].astype(np.int64) + group.low
        for element, value in self.fixed:
            flat[..., element] = value
        return flat.reshape(*lead, *self.shape)

    def codes(self, value: Any, space: Product) -> dict[str, Any]:
        """{part: codes} of a value of the site."""
        flat = jnp.ravel(jnp.asarray(value))
        return {g.part: (flat[np.asarray(g.index)] - g.low).astype(space.code_dtype) for g in self.groups}


@dataclass(frozen=True)
class Sites:
    """What there is to sample in a model. continuous: {name: unbounded shape} as a tuple; dims: of every continuous site."""

    discrete: tuple[Site, ...]
    space: Product
    continuous: tuple[tuple[str, tuple[int, ...]], ...]
    dims: tuple[tuple[str, tuple[str, ...]], ...]

    def values(self, s: dict[str, jax.Array], as_float: bool) -> dict[str, jax.Array]:
        return {site.name: site.value(s, as_float) for site in self.discrete}

    def shown(self, codes: np.ndarray) -> dict[str, np.ndarray]:
        """{site: (..., *shape)} from flat codes (..., d)."""
        parts = {piece.name: codes[..., piece.sites] for piece in self.space.pieces}
        return {site.name: site.shown(parts) for site in self.discrete}

    def encode(self, values: dict[str, Any]) -> Any:
        """(d,) flat codes of values of all discrete sites."""
        parts: dict[str, Any] = {}
        for site in self.discrete:
            parts |= site.codes(values[site.name], self.space)
        return jnp.concatenate([parts[piece.name] for piece in self.space.pieces])


def make_site(
    name: str, dtype: str, low: np.ndarray, high: np.ndarray, one_hot: bool, dims: tuple[str, ...], parts: dict[str, Space]
) -> Site:
    """A site whose elements take the whole numbers from `low` to `high`; its spaces are added to `parts`."""
    if (high - low).max(initial=0) >= _MOST_VALUES:
        found = str(int((high - low).max()) + 1)
        raise TargetError(f"{name!r} has too many values.", expected=f"at most {_MOST_VALUES}", found=found)
    shape, low, high = np.shape(low), np.ravel(low), np.ravel(high)
    kinds = sorted({(int(a), int(b)) for a, b in zip(low, high, strict=True) if a < b})
    groups = []
    for number, (a, b) in enumerate(kinds):
        index = tuple(int(i) for i in np.flatnonzero((low == a) & (high == b)))
        part = name if len(kinds) == 1 else f"{name}.{number}"
        parts[part] = _space(len(index), a, b, one_hot)
        groups.append(Group(part, a, index))
    if not groups:
        raise TargetError(f"{name!r} has one value only.", expected="two values or more", found=f"{low[:1]} everywhere")
    fixed = tuple((int(i), int(low[i])) for i in np.flatnonzero(low == high))
    return Site(name, tuple(shape), dtype, tuple(groups), fixed, one_hot, dims)


def unbounded(name: str, kind: str, truncated: str) -> TargetError:
    """The error for a site that takes infinitely many values."""
    return TargetError(
        f"The support of {name!r} ~ {kind} has no upper bound.",
        expected="a finite number of values",
        found="all counts",
        hint=f"truncate it where the probability is negligible: {truncated}",
    )


def depends(name: str, found: str) -> TargetError:
    """The error for a support that is not always the same."""
    return TargetError(
        f"The support of {name!r} depends on another site.",
        expected="the same values whatever the other sites are",
        found=found,
        hint=f"give {name!r} the largest support, and log-probability -inf to what is impossible",
    )


def _space(num: int, low: int, high: int, one_hot: bool) -> Space:
    if one_hot and high > 1 and low == 0:
        return Categorical(num, high + 1)
    return Binary(num) if (low, high) == (0, 1) else Ordinal(num, np.arange(low, high + 1))
