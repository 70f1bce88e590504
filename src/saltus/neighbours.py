"""Sums over the edges at each site of a graph, by padded tables of neighbours: gathers only, no scatter, nothing d x d."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._record import as_array, default_float, fill, record, shown, static
from .errors import TargetError


@record
class Incidence:
    """Which edges meet each site.

    Sites are grouped by degree (up to the next power of two), so that a hub does not pad the table of every other site:
    memory is linear in the number of edges. The tables are leaves, concrete even where the graph is built inside a jit.
    """

    edges: jax.Array
    buckets: tuple[tuple[jax.Array, ...], ...]  # per group of degrees: (edge, other end, sign, real), each (sites, width)
    position: jax.Array | None  # row of each site in the stacked groups; None where there is one group
    num_sites: int = static()
    full: tuple[bool, ...] = static()  # per group: nothing is padding

    def __init__(self, edges: Any, num_sites: int):
        edges = _checked(edges, num_sites)
        ends, others = edges.T.ravel(), edges[:, ::-1].T.ravel()  # first ends of all edges, then second ends
        order = np.argsort(ends, kind="stable").astype(np.int32)
        degrees = np.bincount(ends, minlength=num_sites)
        starts = np.cumsum(degrees) - degrees
        width = np.maximum(degrees, 1)
        if (width != width[0]).any():
            width = 2 ** np.ceil(np.log2(width)).astype(int)
        buckets, full = [], []
        for w in np.flatnonzero(np.bincount(width)):
            sites = np.flatnonzero(width == w)
            real = np.arange(w) < degrees[sites][:, None]
            full.append(bool((degrees[sites] == w).all()))
            if full[-1] and len(sites) == num_sites:  # all of one degree: in order already
                entry = order.reshape(num_sites, w)
            else:
                entry = np.where(real, starts[sites][:, None] + np.arange(w), 0)
                entry = order[entry] if len(edges) else entry
            other = others[entry] if len(edges) else entry
            second = entry >= len(edges)
            edge = entry - np.where(second, np.int32(len(edges)), np.int32(0)) if len(edges) else entry
            buckets.append((_int(edge), _int(other), np.where(second & (len(edges) > 0), np.int32(-1), np.int32(1)), real))
        position = _int(np.argsort(np.argsort(width, kind="stable"), kind="stable")) if len(buckets) > 1 else None
        with jax.ensure_compile_time_eval():
            tables = jax.tree.map(jnp.asarray, (edges, tuple(buckets), position))
        fill(self, edges=tables[0], buckets=tables[1], position=tables[2], num_sites=num_sites, full=tuple(full))

    @property
    def num_edges(self) -> int:
        return self.edges.shape[0]

    def sum(self, term: Callable[[jax.Array, jax.Array, jax.Array], jax.Array], shape: tuple[int, ...] = ()) -> jax.Array:
        """(d, *shape): for each site the sum of term(edge, other end, sign) over its edges; sign +1 at an edge's first end."""
        if not self.num_edges:
            return jnp.zeros((self.num_sites, *shape), default_float())
        sums = []
        for (edge, other, sign, real), full in zip(self.buckets, self.full, strict=True):
            terms = term(edge, other, sign)
            mask = real.reshape(real.shape + (1,) * (terms.ndim - 2))
            sums.append(jnp.sum(terms if full else jnp.where(mask, terms, 0), axis=1))
        stacked = jnp.concatenate(sums) if len(sums) > 1 else sums[0]
        return stacked if self.position is None else jnp.take(stacked, self.position, axis=0)


def greedy_colours(edges: np.ndarray, num_sites: int) -> np.ndarray:
    """(d,) colours such that no edge joins two sites of one colour; sites of high degree choose first."""
    neighbours: list[list[int]] = [[] for _ in range(num_sites)]
    for i, j in np.asarray(edges).tolist():
        neighbours[i].append(j)
        neighbours[j].append(i)
    colour = np.full(num_sites, -1)
    for i in sorted(range(num_sites), key=lambda i: -len(neighbours[i])):
        taken = {colour[j] for j in neighbours[i]}
        colour[i] = next(c for c in range(len(taken) + 1) if c not in taken)
    return colour


def _int(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int32, copy=False)


def read_edges(edges: Any) -> np.ndarray:
    """(m, 2) pairs of whole numbers, or TargetError."""
    try:
        given = np.asarray(as_array(edges, "edges", TargetError))
    except TargetError:
        given = np.zeros(1)
    if given.size == 0:
        return np.zeros((0, 2), np.int32)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise TargetError("`edges` is not a list of pairs.", expected="integers of shape (m, 2)", found=shown(edges))
    return given


def _checked(edges: Any, num_sites: int) -> np.ndarray:
    edges = read_edges(edges)
    if not len(edges):
        return edges
    if edges.min() < 0 or edges.max() >= num_sites:
        row = int(np.argmax(((edges < 0) | (edges >= num_sites)).any(1)))
        raise TargetError(
            "An edge leaves the graph.", expected=f"sites 0..{num_sites - 1}", found=f"edge {row}: {edges[row].tolist()}"
        )
    if (edges[:, 0] == edges[:, 1]).any():
        row = int(np.argmax(edges[:, 0] == edges[:, 1]))
        raise TargetError(
            "An edge joins a site to itself.", expected="two different sites", found=f"edge {row}: {edges[row].tolist()}"
        )
    low, high = np.minimum(edges[:, 0], edges[:, 1]), np.maximum(edges[:, 0], edges[:, 1])
    keys = np.sort(low.astype(np.int64) * num_sites + high)
    again = keys[1:] == keys[:-1]
    if again.any():
        twice = list(map(int, divmod(int(keys[1:][again][0]), num_sites)))
        raise TargetError(
            "An edge is listed twice.", expected="each pair of sites once", found=f"{twice}", hint="add its weights instead"
        )
    return edges.astype(np.int32)
