"""A product of spaces: parts side by side, each with its own values and labels; a part may be a product itself."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import default_float, shown
from ..errors import SpaceError
from ..moves import Joint, Moves
from .base import Piece, Space, smallest_signed


class Product(Space):
    """The states of all parts together: a log-probability sees {name: s of the part}, and codes stay one flat vector.

    parts: spaces by name, in the order of their sites; `Product(z=Binary(20), k=Categorical(10, 3))`. A part may be a product,
        whose state is then a dict within the dict; draws of its parts are named "outer.inner".
    mapping: the same as a dict, for names that are no Python names.
    """

    def __init__(self, mapping: Mapping[str, Space] | None = None, /, **parts: Space):
        parts = _read_parts(mapping, parts)
        self.parts = parts
        self.num_sites = sum(part.num_sites for part in parts.values())
        self.num_values = max(part.num_values for part in parts.values())
        self.num_values_per_site = np.concatenate([part.num_values_per_site for part in parts.values()])
        self.shape: Any = {name: part.shape for name, part in parts.items()}
        self.size = sum(part.size for part in parts.values())
        self.code_dtype = smallest_signed(self.num_values)
        self.form = Joint
        self.one_hot = False
        self._description = f"Product({', '.join(f'{name}={part!r}' for name, part in parts.items())})"
        self._identity = (Product, tuple(parts.items()))
        self._hash = hash(self._identity)

    @functools.cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """Those of all parts, "outer.inner" where a part is a product."""
        found, site, entry = [], 0, 0
        for name, part in self.parts.items():
            for piece in part.pieces:
                own = name if piece.space is part else f"{name}.{piece.name}"
                sites, entries = _moved(piece.sites, site), _moved(piece.entries, entry)
                found.append(Piece(own, f"{own}_site", piece.space, sites, entries))
            site, entry = site + part.num_sites, entry + part.size
        return tuple(found)

    def slices(self) -> Iterator[tuple[Space, slice, slice]]:
        """(space, its sites, its entries of the ravelled s) of every piece, in order."""
        return ((piece.space, piece.sites, piece.entries) for piece in self.pieces)

    def _by_name(self, per_site: Any) -> Iterator[tuple[str, Space, Any]]:
        """(name, part, its slice of (..., d))."""
        site = 0
        for name, part in self.parts.items():
            yield name, part, per_site[..., site : site + part.num_sites]
            site += part.num_sites

    def hops(self, a: Any, b: Any) -> Any:
        """Between codes of all sites: (..., d) both."""
        each = [part.hops(a[..., sites], b[..., sites]) for part, sites, _ in self.slices()]
        return jnp.concatenate(each, axis=-1)

    def hops_at(self, sites: Any, a: Any, b: Any) -> Any:
        found: Any = 0
        for part, own, _ in self.slices():
            found = jnp.where((sites >= own.start) & (sites < own.stop), part.hops(a, b), found)
        return found

    def embed(self, codes: Any) -> Any:
        return {name: part.embed(own) for name, part, own in self._by_name(jnp.asarray(codes))}

    def labelled(self, codes: np.ndarray) -> Any:
        return {name: part.labelled(own) for name, part, own in self._by_name(codes)}

    def encode(self, x: Any, name: str = "x") -> np.ndarray:
        if not isinstance(x, Mapping) or set(x) != set(self.parts):
            found = f"a dict of {list(x)}" if isinstance(x, Mapping) else shown(x)
            raise SpaceError(f"`{name}` is not a state of {self}.", expected=f"a dict of {list(self.parts)}", found=found)
        codes = [part.encode(x[own], f"{name}[{own!r}]") for own, part in self.parts.items()]
        if len({c.shape[:-1] for c in codes}) > 1:
            told = ", ".join(f"{own}: {c.shape[:-1]}" for own, c in zip(self.parts, codes, strict=True))
            raise SpaceError(f"The parts of `{name}` do not fit together.", expected="as many states of each", found=told)
        return np.concatenate(codes, axis=-1)

    def _own(self, sites: np.ndarray) -> Iterator[tuple[str, Space, np.ndarray]]:
        """(name, part, those of `sites` that are its own, numbered within it)."""
        site = 0
        for name, part in self.parts.items():
            yield name, part, sites[(sites >= site) & (sites < site + part.num_sites)] - site
            site += part.num_sites

    def restricted(self, sites: np.ndarray) -> Space:
        return Product({name: part.restricted(own) for name, part, own in self._own(sites) if len(own)})

    def filled(self, whole: Any, part: Any, sites: np.ndarray) -> Any:
        return {n: own.filled(whole[n], part[n], at) if len(at) else whole[n] for n, own, at in self._own(sites)}

    def random(self, key: jax.Array) -> jax.Array:
        sizes = jnp.asarray(self.num_values_per_site, jnp.int32)
        uniform = random.uniform(key, (self.num_sites,))
        return jnp.minimum((uniform * sizes.astype(uniform.dtype)).astype(jnp.int32), sizes - 1)

    def abstract(self) -> Any:
        return {name: part.abstract() for name, part in self.parts.items()}

    def ravel(self, s: Any) -> jax.Array:
        return jnp.concatenate([part.ravel(s[name]) for name, part in self.parts.items()], axis=-1)

    def unravel(self, v: jax.Array) -> Any:
        found, entry = {}, 0
        for name, part in self.parts.items():
            found[name] = part.unravel(v[..., entry : entry + part.size] if v.ndim else v)
            entry += part.size
        return found

    def per_entry(self, c: jax.Array) -> jax.Array:
        """(n,), from a number, one per site or one per entry."""
        if c.shape == (self.num_sites,):
            c = jnp.repeat(c, self._entries_per_site(), total_repeat_length=self.size)
        return jnp.broadcast_to(c, (self.size,))

    def _entries_per_site(self) -> np.ndarray:
        return np.concatenate([np.full(part.num_sites, part.size // part.num_sites) for part, _, _ in self.slices()])

    def per_site(self, v: jax.Array) -> jax.Array:
        return jnp.concatenate([part.per_site(v[entries]) for part, _, entries in self.slices()])

    def displacement(self, a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.concatenate([part.displacement(a[sites], b[sites]) for part, sites, _ in self.slices()])

    def travel(self, a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        each = [part.travel(a[sites], b[sites]) for part, sites, _ in self.slices()]
        return sum((jump for jump, _ in each), jnp.zeros((), default_float())), sum(num for _, num in each)  # type: ignore[return-value]

    def within(self, codes: jax.Array, radius: jax.Array) -> Moves:
        return Joint(codes, tuple(part.within(codes[sites], radius).scores for part, sites, _ in self.slices()))

    @property
    def diameter(self) -> int:
        return max(part.diameter for part in self.parts.values())

    @property
    def numeric(self) -> bool:
        return all(part.numeric for part in self.parts.values())

    @property
    def unit(self) -> float:
        return min(part.unit for part in self.parts.values())


def _moved(here: slice, by: int) -> slice:
    return slice(here.start + by, here.stop + by)


def _read_parts(mapping: Any, named: dict[str, Any]) -> dict[str, Space]:
    """Parts by name, or SpaceError."""
    if mapping is not None and not isinstance(mapping, Mapping):
        raise SpaceError("A product is made of named spaces.", expected="z=saltus.Binary(d), ...", found=shown(mapping))
    parts = {**(mapping or {}), **named}
    wrong = [f"{name}={shown(part)}" for name, part in parts.items() if not isinstance(part, Space)]
    wrong += [f"a part called {name!r}" for name in parts if not isinstance(name, str) or not name or "/" in name or "\0" in name]
    if not parts or wrong:
        found = ", ".join(wrong) or "no part"
        raise SpaceError("A product is made of named spaces.", expected="z=saltus.Binary(d), ...", found=found)
    names = [name if piece.space is part else f"{name}.{piece.name}" for name, part in parts.items() for piece in part.pieces]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SpaceError("Two parts of a product have the same name.", expected="different names", found=f"{twice!r} twice")
    return parts
