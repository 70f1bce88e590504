"""Colours of the sites of a large graph, without a loop over sites."""

from __future__ import annotations

import numpy as np

_MOST_COLOURS = 63  # colours that are in use are kept as the bits of one integer


def quick_colours(edges: np.ndarray, num_sites: int) -> np.ndarray | None:
    """(d,) colours such that no edge joins two of one colour: two where that is possible, else by rounds of a greedy choice.

    None where 63 colours do not suffice.
    """
    if not len(edges):
        return np.zeros(num_sites, np.int32)
    two = two_colours(edges, num_sites)
    return two if two is not None else _by_rounds(edges, num_sites)


def two_colours(edges: np.ndarray, num_sites: int) -> np.ndarray | None:
    """(d,) 0 or 1 where the graph is bipartite, else None. Trees are merged, each hung with its parity under a smaller root."""
    parent, parity = np.arange(num_sites), np.zeros(num_sites, np.int8)
    first, second = edges[:, 0].astype(np.int64), edges[:, 1].astype(np.int64)
    while True:
        low, high = np.minimum(parent[first], parent[second]), np.maximum(parent[first], parent[second])
        apart = low != high
        if not (apart | (parity[first] != parity[second])).all():
            return None  # an edge within a tree, between two of one parity
        if not apart.any():
            return parity.astype(np.int32)
        low, high = low[apart], high[apart]
        flip = parity[first[apart]] ^ parity[second[apart]] ^ 1
        parent[high], parity[high] = low, flip  # of several, the last one written; both are written alike
        while (parent[parent] != parent).any():
            parity ^= np.where(parent[parent] != parent, parity[parent], 0).astype(np.int8)
            parent = parent[parent]


def _by_rounds(edges: np.ndarray, num_sites: int) -> np.ndarray | None:
    """In each round every site that comes before all its uncoloured neighbours takes the smallest free colour."""
    ends, others = edges.T.ravel().astype(np.int64), edges[:, ::-1].T.ravel().astype(np.int64)
    degrees = np.bincount(ends, minlength=num_sites)
    rank = np.empty(num_sites, np.int64)
    rank[np.lexsort((np.random.default_rng(0).permutation(num_sites), -degrees))] = np.arange(num_sites)
    used = np.zeros(num_sites, np.int64)
    colours = np.full(num_sites, -1, np.int32)
    while len(ends):
        waiting = np.full(num_sites, num_sites, np.int64)
        np.minimum.at(waiting, ends, rank[others])
        now = np.flatnonzero((colours < 0) & (rank < waiting))
        free = ~used[now]
        lowest = free & -free
        if (lowest <= 0).any() or (lowest > 1 << (_MOST_COLOURS - 1)).any():
            return None
        colours[now] = np.log2(lowest.astype(np.float64)).astype(np.int32)
        done = colours[ends] >= 0
        told = done & (colours[others] < 0)
        np.bitwise_or.at(used, others[told], np.int64(1) << colours[ends[told]].astype(np.int64))
        left = ~done & (colours[others] < 0)
        ends, others = ends[left], others[left]
    rest = np.flatnonzero(colours < 0)
    free = ~used[rest]
    lowest = free & -free
    if (lowest <= 0).any():
        return None
    colours[rest] = np.log2(lowest.astype(np.float64)).astype(np.int32)
    return colours
