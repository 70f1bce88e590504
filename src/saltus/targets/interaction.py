"""Pairwise interactions of sites: periodic lattices by shifts, any graph by padded neighbour tables; nothing d x d."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._fusion import stored
from .._record import as_array, as_size, is_concrete, record, shown, static
from ..errors import TargetError
from ..neighbours import Incidence
from ..preconditioners import Sparse
from ..structure import Graph
from .checkerboard import Checkerboard, Halves, Shifts, pulled, weighted

Spread = Callable[[jax.Array], jax.Array]
KEPT = 16  # lattices and graphs, with the functions of their targets


@record
class Lattice:
    """A periodic lattice, each edge once (a side of two sites has one edge, not two). Coupling: one number, or one per axis."""

    graph: Graph
    shape: tuple[int, ...] = static()

    @property
    def num_sites(self) -> int:
        return math.prod(self.shape)

    def axes(self) -> list[int]:
        return [axis for axis, side in enumerate(self.shape) if side > 1]

    def pull(self, coupling: jax.Array, s: jax.Array) -> jax.Array:
        """sum_j J_ij s_j for every site; s is (..., d), of floats or small integers."""
        return pulled(coupling, self.near(coupling, s))

    def near(self, coupling: jax.Array, s: jax.Array) -> jax.Array:
        """What `pulled` makes a pull of: sum_j s_j, as small as s is, where all edges have one coupling; else the pull itself."""
        if not self.axes():
            return jnp.zeros_like(s)
        shifts = Shifts(self.shape, s)
        return weighted(coupling, {axis: shifts.along(axis) for axis in self.axes()})

    def halves(self, spread: Spread, field: Callable[[Any], jax.Array], packed: Spread) -> Halves | None:
        """The closed forms of either colour, where there are two; for the arguments see `Halves`."""
        return Halves(Checkerboard(self.shape), spread, field, packed) if all(side % 2 == 0 for side in self.shape) else None

    def weights(self, coupling: jax.Array) -> jax.Array:
        """One coupling per edge, in the order of the graph's edges."""
        per_axis = [len(_axis_edges(self.shape, axis)) for axis in self.axes()]
        coupling = jnp.broadcast_to(coupling, (len(self.shape),))[np.array(self.axes(), int)]
        return jnp.repeat(coupling, np.array(per_axis, int), total_repeat_length=sum(per_axis))

    def check(self, coupling: jax.Array) -> None:
        if coupling.shape not in ((), (len(self.shape),)):
            raise _wrong_coupling(coupling, f"a number, or one per axis: shape ({len(self.shape)},)")


@record
class Network:
    """Any graph; coupling: one number, or one per edge."""

    graph: Graph

    @property
    def num_sites(self) -> int:
        return self.graph.incidence.num_sites

    def halves(self, spread: Spread, field: Callable[[Any], jax.Array], packed: Spread) -> None:
        """None: sites of one colour lie anywhere, and would have to be gathered."""

    def pull(self, coupling: jax.Array, s: jax.Array) -> jax.Array:
        return pulled(coupling, self.near(coupling, s))

    def near(self, coupling: jax.Array, s: jax.Array) -> jax.Array:
        if s.ndim > 1:
            return jax.vmap(self.near, (None, 0))(coupling, s)
        return stored(self._near, coupling, s.astype(coupling.dtype))  # a processor gathers floats faster than small integers

    def _near(self, coupling: jax.Array, s: jax.Array) -> jax.Array:
        if not coupling.ndim:
            return self.graph.incidence.sum(lambda edge, other, sign: s[other])
        return self.graph.incidence.sum(lambda edge, other, sign: coupling[edge] * s[other])

    def weights(self, coupling: jax.Array) -> jax.Array:
        return jnp.broadcast_to(coupling, (self.graph.incidence.num_edges,))

    def check(self, coupling: jax.Array) -> None:
        if coupling.shape not in ((), (self.graph.incidence.num_edges,)):
            raise _wrong_coupling(coupling, f"a number, or one per edge: shape ({self.graph.incidence.num_edges},)")


def _wrong_coupling(coupling: jax.Array, expected: str) -> TargetError:
    return TargetError("`coupling` does not fit.", expected=expected, found=f"shape {coupling.shape}")


def interaction(shape_or_graph: Any) -> Lattice | Network:
    """A tuple of sides is a periodic lattice; a `saltus.Graph` or an (m, 2) array of edges is a graph.

    The same object for the same lattice or graph, so that targets that differ in params only share their functions.
    """
    if isinstance(shape_or_graph, Graph):
        return _network(_Known.of(shape_or_graph)) if is_concrete(shape_or_graph) else Network(shape_or_graph)
    if isinstance(shape_or_graph, tuple) and shape_or_graph and all(isinstance(n, (int, np.integer)) for n in shape_or_graph):
        return _lattice(tuple(as_size(n, "shape", TargetError) for n in shape_or_graph))
    try:
        edges = np.asarray(as_array(shape_or_graph, "shape", TargetError))
    except TargetError:
        edges = np.zeros(0)
    if edges.ndim != 2 or edges.shape[-1] != 2 or edges.dtype.kind not in "iu" or not len(edges):
        raise TargetError(
            "The lattice or graph is not understood.",
            expected="a tuple of sides such as (10, 10), a saltus.Graph, or an (m, 2) array of edges",
            found=f"{type(shape_or_graph).__name__} {shown(shape_or_graph)}",
        )
    return interaction(Graph.from_edges(edges, int(edges.max()) + 1))


@functools.lru_cache(maxsize=KEPT)
def _lattice(shape: tuple[int, ...]) -> Lattice:
    axes = [_axis_edges(shape, axis) for axis, side in enumerate(shape) if side > 1]
    edges = np.concatenate(axes) if axes else np.zeros((0, 2), int)
    parity = np.indices(shape).sum(0).ravel() % 2 if all(side % 2 == 0 for side in shape) else None
    return Lattice(Graph.from_edges(edges, math.prod(shape), parity), shape)


@dataclass(frozen=True)
class _Known:
    """A graph, compared by its edges and colours."""

    content: bytes
    graph: Graph = field(compare=False)

    @classmethod
    def of(cls, graph: Graph) -> _Known:
        told = (np.asarray([graph.incidence.num_sites]), graph.incidence.edges, graph.colours)
        return cls(hashlib.sha256(b"".join(np.asarray(part, np.int64).tobytes() for part in told)).digest(), graph)


@functools.lru_cache(maxsize=KEPT)
def _network(known: _Known) -> Network:
    return Network(known.graph)


def _axis_edges(shape: tuple[int, ...], axis: int) -> np.ndarray:
    """Edges along one axis, wrapping round; one edge, not two, where the side is 2."""
    index = np.arange(math.prod(shape)).reshape(shape)
    if shape[axis] == 2:
        first, second = np.split(index, 2, axis=axis)
    else:
        first, second = index, np.roll(index, -1, axis=axis)
    return np.stack([first.ravel(), second.ravel()], axis=1)


def coupling_matrix(sites: Lattice | Network, coupling: jax.Array, copies: int = 1) -> Sparse:
    """The interactions as a Sparse matrix, one copy per category."""
    incidence: Incidence = sites.graph.incidence
    return Sparse(incidence, sites.weights(coupling), copies=copies)
