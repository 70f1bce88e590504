"""Which entries of s each element of an array may depend on: sparse boolean rows, with a budget.

Entries of s are numbered 0..n-1 in the order of `space.ravel`. Every set here is an upper bound: an entry that is missing
from a row cannot influence that element; one that is present may or may not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

MANY = 3  # the degree of what is no polynomial of degree 2 or less


class TooLarge(Exception):
    """The budget is spent: nothing is found."""


class Budget:
    """Numbers that may be handled in all: so the time to read a log_prob is limited, whatever it does."""

    def __init__(self, num_entries: int):
        self.left = 1_200_000 + 200 * num_entries

    def spend(self, amount: int) -> None:
        self.left -= int(amount)
        if self.left < 0:
            raise TooLarge


@dataclass(frozen=True)
class Dependence:
    """An array that depends on s.

    indptr, entries: row e is entries[indptr[e]:indptr[e + 1]], sorted, for element e of the ravelled array; an empty row is
    a constant. indptr None: every element may depend on all of `entries`.
    degree: of each element as a polynomial of s, 0, 1, 2 or MANY; on-site parts of any other form are not counted, but are
    told by `potential`. finite: no element can be infinite or NaN, so that a factor of zero removes it.
    pairs: where every element has been made by one product of two entries that is not listed among the interactions yet,
    its key, lower entry times n plus higher; -1 for none.
    """

    shape: tuple[int, ...]
    indptr: np.ndarray | None
    entries: np.ndarray
    degree: int = 1
    potential: bool = False
    finite: bool = True
    pairs: np.ndarray | None = None

    @property
    def num(self) -> int:
        return math.prod(self.shape)

    @property
    def weight(self) -> int:
        """Numbers it takes to hold it."""
        return len(self.entries) + (self.num if self.indptr is not None else 0)

    def like(self, **changes: Any) -> Dependence:
        return replace(self, **changes)

    def counts(self) -> np.ndarray:
        assert self.indptr is not None
        return np.diff(self.indptr)

    def owners(self) -> np.ndarray:
        """The element that each of `entries` belongs to."""
        return np.repeat(np.arange(self.num), self.counts())

    def by_element(self) -> Dependence:
        """The same, with a row for each element."""
        if self.indptr is not None:
            return self
        return self.like(indptr=np.arange(self.num + 1) * len(self.entries), entries=np.tile(self.entries, self.num))

    def taken(self, index: np.ndarray, shape: tuple[int, ...]) -> Dependence:
        """The array whose elements are those at `index` of this one; -1 is a constant."""
        pairs = None if self.pairs is None else np.where(index >= 0, self.pairs[index], -1)
        if self.indptr is None:
            return self.like(shape=shape, pairs=pairs)
        indptr, entries = taken_rows(self.indptr, self.entries, index)
        return self.like(shape=shape, indptr=indptr, entries=entries, pairs=pairs)

    def without(self, zero: np.ndarray) -> Dependence:
        """Elements where `zero` has been multiplied by 0."""
        if self.indptr is None or not zero.any():
            return self
        return self.taken(np.where(zero, -1, np.arange(self.num)), self.shape)

    def one_site_each(self, site_of: np.ndarray) -> bool:
        """Whether every element depends on one site at most."""
        if not len(self.entries):
            return True
        sites = site_of[self.entries]
        if self.indptr is None:
            return bool((sites == sites[0]).all())
        new_row = np.zeros(len(sites), bool)
        new_row[self.indptr[:-1][self.counts() > 0]] = True
        return bool((new_row[1:] | (sites[1:] == sites[:-1])).all())


def taken_rows(indptr: np.ndarray, entries: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a sparse boolean matrix; -1 is an empty row."""
    counts = np.where(index >= 0, (indptr[1:] - indptr[:-1])[index] if len(indptr) > 1 else 0, 0)
    new = np.zeros(len(index) + 1, np.int64)
    np.cumsum(counts, out=new[1:])
    if len(counts) and counts.max(initial=0) == 1:
        return new, entries[indptr[index[counts == 1]]]
    start = np.repeat(indptr[index] - new[:-1], counts)
    return new, entries[start + np.arange(new[-1])]


def shared(shape: tuple[int, ...], entries: np.ndarray, like: Dependence) -> Dependence:
    """An array of which every element may depend on all of `entries`."""
    return like.like(shape=shape, indptr=None, entries=entries, pairs=None)


def all_entries(*parts: Dependence) -> np.ndarray:
    """Every entry in any of them, sorted."""
    return distinct(np.concatenate([part.entries for part in parts]))


def distinct(values: np.ndarray) -> np.ndarray:
    """np.unique for integers, by a mask where they are small."""
    if not len(values):
        return values
    top = int(values.max()) + 1
    if top <= 8 * len(values) + 1024:
        mask = np.zeros(top, bool)
        mask[values] = True
        return np.flatnonzero(mask)
    ordered = np.sort(values)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]


def grouped(part: Dependence, group: np.ndarray, shape: tuple[int, ...], num_entries: int) -> Dependence:
    """Element g of the result depends on what any element e with group[e] == g does."""
    if part.indptr is None:
        return shared(shape, part.entries, part)
    return _from_owners(group[part.owners()], part.entries, shape, num_entries, part)


def united(parts: list[Dependence], shape: tuple[int, ...], num_entries: int) -> Dependence:
    """Element e of the result depends on what element e of any part does; all have this shape."""
    first = parts[0].like(
        degree=max(part.degree for part in parts),
        potential=any(part.potential for part in parts),
        finite=all(part.finite for part in parts),
        pairs=None,
    )
    if len(parts) == 1:
        return first
    if any(part.indptr is None for part in parts):
        return shared(shape, all_entries(*parts), first)
    if all(_same(part.indptr, first.indptr) and _same(part.entries, first.entries) for part in parts[1:]):
        return first
    owners = np.concatenate([part.owners() for part in parts])
    return _from_owners(owners, np.concatenate([part.entries for part in parts]), shape, num_entries, first)


def _same(a: Any, b: Any) -> bool:
    return a is b or np.array_equal(a, b)


def mapped(part: Dependence, out: np.ndarray, into: np.ndarray, shape: tuple[int, ...], num_entries: int) -> Dependence:
    """Element out[t] of the result depends on what element into[t] of `part` does, for every t."""
    if part.indptr is None:
        return shared(shape, part.entries, part)
    indptr, entries = taken_rows(part.indptr, part.entries, into)
    return _from_owners(np.repeat(out, np.diff(indptr)), entries, shape, num_entries, part)


def _from_owners(owner: np.ndarray, entries: np.ndarray, shape: tuple[int, ...], n: int, like: Dependence) -> Dependence:
    keys = distinct(owner.astype(np.int64) * n + entries)
    owner, entries = np.divmod(keys, max(n, 1))
    indptr = np.zeros(math.prod(shape) + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=math.prod(shape)), out=indptr[1:])
    return like.like(shape=shape, indptr=indptr, entries=entries, pairs=None)
