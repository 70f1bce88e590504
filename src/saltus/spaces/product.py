"""A product of spaces: parts side by side, each with its own values and labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import default_float
from ..errors import SpaceError
from ..moves import Joint, Moves
from .base import Space, smallest_signed


class Product(Space):
    """The states of all parts together: a log-probability sees {name: s of the part}, and codes stay one flat vector.

    parts: spaces by name, in the order of their sites; `Product(z=Binary(20), k=Categorical(10, 3))`.
    """

    def __init__(self, **parts: Space):
        wrong = {name: part for name, part in parts.items() if type(part) is Product or not isinstance(part, Space)}
        if not parts or wrong:
            found = ", ".join(f"{name}={part!r}" for name, part in wrong.items()) or "no part"
            raise SpaceError("A product is made of spaces.", expected="name=saltus.Binary(d), ...", found=found)
        self.parts = parts
        self.num_sites = sum(part.num_sites for part in parts.values())
        self.num_values = max(part.num_values for part in parts.values())
        self.num_values_per_site = np.concatenate([part.num_values_per_site for part in parts.values()])
        self.shape: Any = {name: part.shape for name, part in parts.items()}
        self.size = sum(part.size for part in parts.values())
        self.code_dtype = smallest_signed(self.num_values)
        self.form = Joint
        self._description = f"Product({', '.join(f'{name}={part!r}' for name, part in parts.items())})"
        self._identity = (Product, tuple(parts.items()))
        self._hash = hash(self._identity)

    def slices(self) -> Iterator[tuple[Space, slice, slice]]:
        """(part, its sites, its entries of the ravelled s), in order."""
        site = entry = 0
        for part in self.parts.values():
            yield part, slice(site, site + part.num_sites), slice(entry, entry + part.size)
            site, entry = site + part.num_sites, entry + part.size

    def _by_name(self, per_site: Any) -> Iterator[tuple[str, Space, Any]]:
        """(name, part, its slice of (..., d))."""
        for name, (part, sites, _) in zip(self.parts, self.slices(), strict=True):
            yield name, part, per_site[..., sites]

    def hops(self, a: Any, b: Any) -> Any:
        """Between codes of all sites: (..., d) both."""
        ours = zip(self._by_name(a), self._by_name(b), strict=True)
        return jnp.concatenate([part.hops(own, other) for (_, part, own), (_, _, other) in ours], axis=-1)

    def embed(self, codes: Any) -> Any:
        return {name: part.embed(own) for name, part, own in self._by_name(jnp.asarray(codes))}

    def labelled(self, codes: np.ndarray) -> Any:
        return {name: part.labelled(own) for name, part, own in self._by_name(codes)}

    def encode(self, x: Any, name: str = "x") -> np.ndarray:
        if not isinstance(x, dict) or set(x) != set(self.parts):
            found = f"a dict of {list(x)}" if isinstance(x, dict) else type(x).__name__
            raise SpaceError(f"`{name}` is not a state of {self}.", expected=f"a dict of {list(self.parts)}", found=found)
        return np.concatenate([part.encode(x[own], f"{name}[{own!r}]") for own, part in self.parts.items()], axis=-1)

    def random(self, key: jax.Array) -> jax.Array:
        sizes = jnp.asarray(self.num_values_per_site, jnp.int32)
        uniform = random.uniform(key, (self.num_sites,))
        return jnp.minimum((uniform * sizes.astype(uniform.dtype)).astype(jnp.int32), sizes - 1)

    def abstract(self) -> Any:
        return {name: part.abstract() for name, part in self.parts.items()}

    def ravel(self, s: Any) -> jax.Array:
        return jnp.concatenate([part.ravel(s[name]) for name, part in self.parts.items()], axis=-1)

    def unravel(self, v: jax.Array) -> Any:
        names = zip(self.parts, self.slices(), strict=True)
        return {name: part.unravel(v[..., entries] if v.ndim else v) for name, (part, _, entries) in names}

    def per_entry(self, c: jax.Array) -> jax.Array:
        """(n,), from a number, one per site or one per entry."""
        if c.shape == (self.num_sites,):
            c = jnp.repeat(c, self._entries_per_site(), total_repeat_length=self.size)
        return jnp.broadcast_to(c, (self.size,))

    def _entries_per_site(self) -> np.ndarray:
        return np.concatenate([np.full(part.num_sites, part.size // part.num_sites) for part in self.parts.values()])

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
