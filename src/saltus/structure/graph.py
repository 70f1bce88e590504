"""The claim that only neighbours interact, with a colouring of the sites."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_array, as_sequence, as_size, fill, record, shown
from ..errors import TargetError
from ..neighbours import Incidence, greedy_colours
from ..spaces import Space
from .colouring import quick_colours

_MANY = 2**17  # edges from which colours are found without a loop over sites


@record
class Graph:
    """Which sites interact: given the others, a site depends on its neighbours only.

    `neighbours[i]` lists the neighbours of site i (rows of a table may be padded with -1); or use `Graph.from_edges`.
    `blocks` (colours, widest) lists the sites of each colour, padded with d: sites of one colour do not interact.
    """

    incidence: Incidence
    blocks: jax.Array
    colours: jax.Array  # (d,) the row of `blocks` in which each site is

    def __init__(self, neighbours: Any, colours: Any = None):
        rows = as_sequence(neighbours, "neighbours", TargetError, "for each site the list of its neighbours")
        lists = [np.asarray(as_array(row, "neighbours", TargetError)) for row in map(_listed, rows)]
        whole = all(row.ndim == 1 and (row.dtype.kind in "iu" or not row.size) for row in lists)
        if not lists or not whole:
            expected = "for each of one site or more the list of its neighbours, whole numbers"
            raise TargetError("`neighbours` is not usable.", expected=expected, found=shown(neighbours))
        neighbours, pairs = rows, {(i, int(j)) for i, row in enumerate(lists) for j in row if j >= 0}
        far = [p for p in pairs if p[1] >= len(neighbours)]
        if far:
            i, j = min(far)
            raise TargetError(f"Site {i} has a neighbour {j}, which is no site.", expected=f"sites 0..{len(neighbours) - 1}")
        alone = [p for p in pairs if p[::-1] not in pairs]
        if alone:
            i, j = min(alone)
            raise TargetError(
                "`neighbours` is not symmetric.", expected=f"{i} among the neighbours of {j}", found=f"only {j} among those of {i}"
            )
        edges = np.array(sorted(p for p in pairs if p[0] <= p[1]), np.int32).reshape(-1, 2)
        self._fill(edges, len(neighbours), colours)

    @classmethod
    def from_edges(cls, edges: Any, num_sites: int, colours: Any = None) -> Graph:
        graph = object.__new__(cls)
        graph._fill(edges, num_sites, colours)
        return graph

    def _fill(self, edges: Any, num_sites: int, colours: Any) -> None:
        num_sites = as_size(num_sites, "num_sites", TargetError, most=2**31 - 1)
        incidence = Incidence(edges, num_sites)
        edges = np.asarray(incidence.edges)
        colours = _coloured(edges, num_sites) if colours is None else as_array(colours, "colours", TargetError)
        colours = np.asarray(colours)
        if colours.shape != (num_sites,):
            raise TargetError(
                "`colours` does not fit.", expected=f"one per site, shape ({num_sites},)", found=f"shape {colours.shape}"
            )
        if (colours[edges[:, 0]] == colours[edges[:, 1]]).any():
            row = int(np.argmax(colours[edges[:, 0]] == colours[edges[:, 1]]))
            raise TargetError(
                "`colours` is not a colouring.", expected="different colours at the ends of an edge", found=f"edge {edges[row]}"
            )
        names, numbers = np.unique(colours, return_inverse=True)
        groups = [np.flatnonzero(colours == name) for name in names]
        blocks = np.full((len(groups), max(map(len, groups))), num_sites, np.int32)
        for block, group in zip(blocks, groups, strict=True):
            block[: len(group)] = group
        with jax.ensure_compile_time_eval():
            fill(self, incidence=incidence, blocks=jnp.asarray(blocks), colours=jnp.asarray(numbers.ravel().astype(np.int32)))

    def __repr__(self) -> str:
        return f"Graph({self.incidence.num_sites} sites, {self.incidence.num_edges} edges, {len(self.blocks)} colours)"

    def scaled(self, beta: Any) -> Graph:
        """That of β f: the same sites interact."""
        return self

    def bind(self, space: Space) -> Graph:
        if self.incidence.num_sites != space.num_sites:
            raise TargetError(
                "The graph does not fit the space.", expected=f"{space.num_sites} sites", found=f"{self.incidence.num_sites}"
            )
        return self


def _coloured(edges: np.ndarray, num_sites: int) -> np.ndarray:
    """Few colours for a small graph; for a large one those that are found quickly."""
    quick = quick_colours(edges, num_sites) if len(edges) > _MANY else None
    return greedy_colours(edges, num_sites) if quick is None else quick


def _listed(row: Any) -> list:
    return as_sequence(row, "neighbours", TargetError, "for each site the list of its neighbours")
