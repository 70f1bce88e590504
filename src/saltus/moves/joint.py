"""Moves of a product of spaces: those of its parts, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from .. import random
from .._record import record
from .base import Moves
from .flips import Flips
from .tables import Tables


@record
class Joint(Moves):
    """One Moves for each part: `scores` is a tuple of theirs, `codes` those of all sites in order. Sums run over parts."""

    @property
    def parts(self) -> tuple[Moves, ...]:
        return tuple(form(codes, scores) for form, codes, scores in _apart(self.codes, self.scores))

    @property
    def num_values(self) -> int:
        return max(part.num_values for part in self.parts)

    def each(self, codes: jax.Array) -> jax.Array:
        return jnp.concatenate([part.each(own) for part, own in self._with_own(codes)])

    def recentre(self, codes: jax.Array) -> Joint:
        return Joint(codes, tuple(part.recentre(own).scores for part, own in self._with_own(codes)))

    def only(self, sites: jax.Array) -> Joint:
        return Joint(self.codes, tuple(part.only(own).scores for part, own in self._with_own(sites)))

    def normaliser(self) -> tuple[jax.Array, jax.Array]:
        tops, masses = zip(*(part.normaliser() for part in self.parts), strict=True)
        return jnp.concatenate(tops), jnp.concatenate(masses)

    def choose(self, u: jax.Array) -> jax.Array:
        return jnp.concatenate([part.choose(own) for part, own in self._with_own(u)])

    def departures(self) -> jax.Array:
        return jnp.concatenate([part.departures() for part in self.parts])

    def depart(self, index: jax.Array) -> jax.Array:
        codes, start = [], 0
        for part in self.parts:
            num = part.departures().shape[0]
            here = (index >= start) & (index < start + num)
            codes.append(jnp.where(here, part.depart(jnp.clip(index - start, 0, num - 1)), part.codes))
            start += num
        return jnp.concatenate(codes)

    def table(self) -> jax.Array:
        return _padded([part.table() for part in self.parts])

    def _with_own(self, per_site: jax.Array) -> list[tuple[Moves, jax.Array]]:
        """Each part with its own slice of (..., d); of uniforms as many rows as it asks for."""
        slices = [own for _, own, _ in _apart(per_site, self.scores)]
        return [
            (part, own[: random.num_units(part.num_values)] if own.ndim == 2 else own)
            for part, own in zip(self.parts, slices, strict=True)
        ]

    @classmethod
    def linear(cls, space: Any, codes: jax.Array, h: jax.Array) -> Joint:
        h = space.ravel(h) if isinstance(h, dict) else h
        return cls._of(space, codes, lambda part, own, entries: part.linear(own, h[entries]))

    @classmethod
    def quadratic(cls, space: Any, codes: jax.Array, c: jax.Array) -> Joint:
        c = space.per_entry(c)
        return cls._of(space, codes, lambda part, own, entries: part.quadratic(own, c[entries]))

    @classmethod
    def _of(cls, space: Any, codes: jax.Array, make: Callable[[Any, jax.Array, slice], Moves]) -> Joint:
        """`make(part, its codes, its entries of s)` of every part."""
        return cls(codes, tuple(make(part, codes[sites], entries).scores for part, sites, entries in space.slices()))

    @classmethod
    def packed(cls, space: Any, table: jax.Array) -> tuple:
        return tuple(part.form.packed(part, table[sites, : part.num_values]) for part, sites, _ in space.slices())

    @classmethod
    def unpacked(cls, codes: jax.Array, packed: tuple) -> Joint:
        return cls(codes, tuple(form.unpacked(own, table).scores for form, own, table in _apart(codes, packed)))

    @classmethod
    def rows(cls, codes: jax.Array, packed: tuple) -> jax.Array:
        return _padded([form.rows(own, table) for form, own, table in _apart(codes, packed)])

    @classmethod
    def conditionals(cls, codes: jax.Array, packed: tuple) -> Joint:
        return cls(codes, tuple(form.conditionals(own, table).scores for form, own, table in _apart(codes, packed)))

    @classmethod
    def chosen(cls, codes: jax.Array, packed: tuple, u: jax.Array) -> jax.Array:
        return cls.conditionals(codes, packed).choose(u)


def _apart(per_site: jax.Array, tables: tuple) -> Iterator[tuple[type[Moves], jax.Array, jax.Array]]:
    """(form, slice of (..., d), table) of each part; a table of two values has one axis, of more it has two."""
    start = 0
    for table in tables:
        num = table.shape[-1]
        yield (Flips if table.ndim == 1 else Tables), per_site[..., start : start + num], table
        start += num


def _padded(tables: list[jax.Array]) -> jax.Array:
    """(sites, k) tables of all parts, one above the other; values that a part does not have are impossible."""
    most = max(table.shape[1] for table in tables)
    return jnp.concatenate([jnp.pad(t, ((0, 0), (0, most - t.shape[1])), constant_values=-jnp.inf) for t in tables])
