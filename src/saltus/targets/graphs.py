"""Graphs as people have them: networkx, matrices of couplings (dense or scipy's sparse), lists of edges with any labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._record import as_array, shown
from ..errors import TargetError


@dataclass(frozen=True)
class Edges:
    """Each pair of sites once. edges (m, 2); weights (m,), or None where they have none of their own; names of the sites, or None.

    merged: (given,) the edge to which each that was given went, -1 for a self-loop; None where nothing was merged.
    """

    edges: np.ndarray
    num_sites: int
    weights: np.ndarray | None = None
    names: tuple[str, ...] | None = None
    merged: np.ndarray | None = None


def read_graph(given: Any, weight: str = "weight") -> Edges | None:
    """What `given` says about pairs of sites; None where it is no graph. Self-loops and duplicates are merged, and said."""
    for read in (_networkx, _matrix, _edge_list):
        found = read(given, weight)
        if found is not None:
            return _merged(*found)
    return None


def _networkx(graph: Any, weight: str) -> tuple | None:
    """A graph of networkx, or what has its methods. Sites are its nodes in order; J is an edge's `weight`, 1 where it has none."""
    if not all(callable(getattr(graph, name, None)) for name in ("number_of_nodes", "is_directed", "is_multigraph")):
        return None
    labels = list(graph.nodes())
    if not labels:
        raise TargetError("The graph has no nodes.", expected="at least one node", found=shown(graph))
    number = {label: i for i, label in enumerate(labels)}
    told = [(number[a], number[b], data.get(weight)) for a, b, data in graph.edges(data=True)]
    own = [1.0 if w is None else w for _, _, w in told]
    weighted = graph.is_multigraph() or any(w is not None for _, _, w in told)
    if weight != "weight" and told and all(w is None for _, _, w in told):
        raise TargetError("No edge has this attribute.", expected="the name of an attribute of the edges", found=repr(weight))
    edges = np.array([pair[:2] for pair in told], np.int64).reshape(-1, 2)
    return edges, len(labels), _weights(own) if weighted else None, _names(labels)


def _matrix(given: Any, weight: str) -> tuple | None:
    """(d, d) couplings, J_ij of each pair once: symmetric, or triangular."""
    if callable(getattr(given, "tocoo", None)):
        coo = given.tocoo()
        row, column, data, shape = coo.row, coo.col, coo.data, coo.shape
    else:
        array = given if isinstance(given, np.ndarray) or not isinstance(given, (list, tuple)) else _listed(given)
        if getattr(array, "ndim", 0) != 2 or array.shape[0] != array.shape[1] or array.dtype.kind not in "fiub":
            return None
        if array.dtype.kind in "iu" and array.shape == (2, 2):
            return None  # two edges
        array = np.asarray(array)
        shape, (row, column) = array.shape, np.nonzero(array)
        data = array[row, column]
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise TargetError("The matrix of couplings is not square.", expected="J (d, d)", found=f"shape {tuple(shape)}")
    data = _weights(data)
    row, column = row.astype(np.int64), column.astype(np.int64)
    upper, lower = row < column, row > column
    if upper.any() and lower.any():
        _check_symmetric(row, column, data, shape[0])
        kept = ~lower  # the diagonal is merged, and said, with the self-loops
    else:
        kept = np.ones(len(row), bool)
    kept &= data != 0
    return np.stack([row, column], axis=1)[kept], shape[0], data[kept], None


def _check_symmetric(row: np.ndarray, column: np.ndarray, data: np.ndarray, d: int) -> None:
    def sums(mask: np.ndarray, first: np.ndarray, second: np.ndarray) -> dict:
        keys, inverse = np.unique(first[mask] * d + second[mask], return_inverse=True)
        total = np.bincount(inverse.ravel(), data[mask], minlength=len(keys))
        return {"keys": keys[total != 0], "total": total[total != 0]}

    above, below = sums(row < column, row, column), sums(row > column, column, row)
    if not np.array_equal(above["keys"], below["keys"]) or not np.allclose(above["total"], below["total"], rtol=1e-6, atol=0):
        raise TargetError(
            "The matrix of couplings is neither symmetric nor triangular.",
            expected="J_ij = J_ji, the coupling of the pair; or each pair in one triangle",
            found="J_ij that differ from J_ji",
            hint="(J + J.T) / 2 for the mean of both, np.triu(J + J.T, 1) for their sum",
        )


def _edge_list(given: Any, weight: str) -> tuple | None:
    """(i, j) or (i, j, J), with sites 0, 1, ... or with any labels."""
    array = given if hasattr(given, "dtype") else _listed(given)
    if getattr(array, "ndim", 0) == 2 and array.shape[1] == 2 and array.dtype.kind in "iu" and len(array):
        edges = np.asarray(array).astype(np.int64)
        if edges.min() < 0:
            raise TargetError("A site has a negative number.", expected="sites 0, 1, ...", found=shown(int(edges.min())))
        return edges, int(edges.max()) + 1, None, None
    if hasattr(given, "dtype") or isinstance(given, (str, bytes, dict)):
        return None
    try:
        rows = [tuple(row) for row in given if not isinstance(row, (str, bytes))]
    except TypeError:
        return None
    if not rows or any(len(row) not in (2, 3) for row in rows) or len({len(row) for row in rows}) > 1:
        return None
    return _labelled(rows)


def _labelled(rows: list[tuple]) -> tuple | None:
    weights = _weights([row[2] for row in rows]) if len(rows[0]) == 3 else None
    ends = [end for row in rows for end in row[:2]]
    if all(isinstance(end, (int, np.integer)) and not isinstance(end, bool) and end >= 0 for end in ends):
        edges = np.array(ends, np.int64).reshape(-1, 2)
        return edges, int(edges.max()) + 1, weights, None
    try:
        labels = list(dict.fromkeys(ends))
    except TypeError:
        return None
    if not all(isinstance(label, (str, int, tuple, np.integer)) for label in labels):
        return None
    number = {label: i for i, label in enumerate(labels)}
    return np.array([number[end] for end in ends], np.int64).reshape(-1, 2), len(labels), weights, _names(labels)


def _listed(given: Any) -> Any:
    """A list of rows as an array; None where it is none. A list of tuples is a list of edges, whatever its size."""
    if isinstance(given, list) and given and all(isinstance(row, tuple) and len(row) == 3 for row in given):
        return None
    try:
        return np.asarray(as_array(given, "graph", TargetError))
    except TargetError:
        return None


def _weights(given: Any) -> np.ndarray:
    weights = np.asarray(as_array(given, "coupling", TargetError, "one number for each edge"), np.float64)
    if weights.ndim != 1 or not np.isfinite(weights).all():
        raise TargetError("A coupling is not a finite number.", expected="one number for each edge", found=shown(given))
    return weights


def _names(labels: list) -> tuple[str, ...] | None:
    """Of the sites, where labels differ as words and say more than 0, 1, ..."""
    names = tuple(map(str, labels))
    return names if len(set(names)) == len(names) and names != tuple(map(str, range(len(names)))) else None


def _merged(edges: np.ndarray, num_sites: int, weights: np.ndarray | None, names: tuple[str, ...] | None) -> Edges:
    low, high = np.minimum(edges[:, 0], edges[:, 1]), np.maximum(edges[:, 0], edges[:, 1])
    loops = low == high
    keys = low * num_sites + high
    unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if len(unique) == len(keys) and not loops.any():
        return Edges(edges, num_sites, weights, names)
    kept = np.sort(first[~loops[first]])  # the order in which they were given
    place = np.full(len(keys), -1)
    place[kept] = np.arange(len(kept))
    merged = np.where(loops, -1, place[first[inverse.ravel()]])
    _say(int(loops.sum()), int((~loops).sum()) - len(kept), weights is not None)
    if weights is not None:
        weights = np.bincount(merged[~loops], weights[~loops], minlength=len(kept))
    return Edges(edges[kept], num_sites, weights, names, merged)


def _say(loops: int, again: int, weighted: bool) -> None:
    told = [f"{loops} self-loop{'s' * (loops > 1)} left out (a constant)"] if loops else []
    how = "their couplings are added" if weighted else "each bond counts once"
    told += [f"{again} duplicate edge{'s' * (again > 1)} merged: {how}"] if again else []
    warnings.warn(f"The graph is simplified: {'; '.join(told)}.", UserWarning, stacklevel=6)
