"""Where the Hessian of a quadratic f is not zero, and how few products with it give all its entries."""

from __future__ import annotations

import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..neighbours import Incidence
from ..preconditioners import Sparse, with_bands
from .colouring import quick_colours
from .reading.dependence import distinct

_MOST_DENSE = 2048  # entries of s: beyond, H is not written out
_MOST_PAIRS = 4_000_000  # of entries with a neighbour in common
_SPARSE = 1 / 16  # share of H that may be other than zero for it to be kept as a list


class Pattern:
    """Of a symmetric (n, n) H, split into what couples a site to itself and the rest.

    Dense: all of H by n products. Sparse: `pairs` (p, 2) of different sites; entries that share no neighbour are in one of a
    few groups, and one product with the sum of a group gives a row of H for each of its entries.
    """

    def __init__(self, size: int, site_of: np.ndarray, pairs: Any = None, groups: Any = None, incidence: Incidence | None = None):
        self.size, self.num_sites = size, int(site_of[-1]) + 1
        self.groups, self.site_of = groups, site_of
        self.pairs = pairs if groups is None or pairs is None else pairs[site_of[pairs[:, 0]] != site_of[pairs[:, 1]]]
        self.incidence = None if groups is None else incidence or Incidence(self.pairs.astype(np.int32), size)
        told = b"" if groups is None else np.asarray(self.pairs, np.int64).tobytes()
        self.digest = hashlib.sha256(told + bytes(str(size), "ascii")).digest()

    @property
    def is_sparse(self) -> bool:
        return self.groups is not None

    def __str__(self) -> str:
        if not self.is_sparse:
            return "with a dense matrix of couplings"
        return f"with {len(self.pairs)} couplings"

    def seeds(self, dtype: Any) -> jax.Array:
        """What H is multiplied by, a vector a row."""
        if self.groups is None:
            return jnp.eye(self.size, dtype=dtype)
        return (jnp.arange(self.groups.max() + 1)[:, None] == jnp.asarray(self.groups)).astype(dtype)

    def split(self, rows: Any) -> tuple[Any, Any]:
        """(off-site entries, on-site blocks (d, m, m)) from the products; off-site is (n, n) where H is dense."""
        m = self.size // self.num_sites
        sites, block = np.arange(self.num_sites), np.arange(m)
        inside = sites[:, None, None] * m + block[:, None], sites[:, None, None] * m + block[None, :]
        if self.groups is None:
            rows = (rows + rows.T) / 2
            same = self.site_of[:, None] == self.site_of[None, :]
            return rows * ~same, rows[inside]
        pairs: Any = self.pairs
        return rows[self.groups[pairs[:, 1]], pairs[:, 0]], rows[self.groups[inside[1]], inside[0]]

    def sparse(self, weights: jax.Array) -> Sparse:
        return with_bands(Sparse(self.incidence, weights))

    def times(self, entries: Any, v: Any) -> Any:
        """H off-site times v."""
        if not self.is_sparse:
            return (entries * v).sum(-1)
        return self.sparse(jnp.asarray(entries)).matvec(jnp.asarray(v))


def pattern_of(
    pairs: np.ndarray | None, size: int, site_of: np.ndarray, incidence: Incidence | None = None
) -> tuple[Pattern | None, str]:
    """The pattern for these pairs of entries that may interact (None: all), or why there is none.

    incidence: of the sites, where it is known already; it serves where every site is one entry.
    """
    m = size // (int(site_of[-1]) + 1)
    if pairs is not None and 2 * len(pairs) <= _SPARSE * size * size:
        groups = _groups(pairs, size, m)
        if groups is not None:
            return Pattern(size, site_of, pairs, groups, incidence if m == 1 else None), ""
    if size <= _MOST_DENSE:
        return Pattern(size, site_of), ""
    return None, f"{size} entries with couplings that are not sparse are too many for a matrix"


def _groups(pairs: np.ndarray, size: int, m: int) -> np.ndarray | None:
    """(n,) such that two entries of a group are neither neighbours nor neighbours of one entry; None where that is hard.

    Entries of one site count as neighbours.
    """
    if m > 1:
        low, high = np.triu_indices(m, 1)
        sites = np.arange(size // m)[:, None] * m
        pairs = np.concatenate([pairs, np.stack([(sites + low).ravel(), (sites + high).ravel()], 1)])
        pairs = _unique_pairs(pairs, size)
    ends, others = pairs.T.ravel(), pairs[:, ::-1].T.ravel()
    counts = np.bincount(ends, minlength=size)
    if (counts**2).sum() > _MOST_PAIRS:
        return None
    others = others[np.argsort(ends, kind="stable")]
    start = np.cumsum(counts) - counts
    num = counts**2
    within = np.arange(num.sum()) - np.repeat(np.cumsum(num) - num, num)
    width, base = np.repeat(counts, num), np.repeat(start, num)
    first, second = others[base + within // width], others[base + within % width]
    shared = np.stack([first, second], 1)[first < second]
    groups = quick_colours(_unique_pairs(np.concatenate([pairs, shared]), size), size)
    return groups if groups is not None and 2 * (groups.max() + 1) <= size else None


def _unique_pairs(pairs: np.ndarray, size: int) -> np.ndarray:
    return np.stack(np.divmod(distinct(pairs[:, 0] * size + pairs[:, 1]), size), axis=1)
