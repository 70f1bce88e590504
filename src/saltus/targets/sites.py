"""Sites that interact in pairs: lattices by shifts, graphs by padded neighbour tables, a full matrix of couplings as it is."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._fusion import stored
from .._record import changed, record, shown, static
from ..errors import TargetError
from ..preconditioners import Sparse
from ..structure import Graph
from .bonds import TRIANGULAR, axis_steps, bonds, lattice_colours, read_periodic, read_shape
from .checkerboard import Checkerboard, Shifts, TwoColours, pulled, weighted

Spread = Callable[[jax.Array], jax.Array]
KEPT = 16  # lattices and graphs, with the functions of their targets


class Sites:
    """Sites that interact in pairs. coupling: as `fitted` returns it."""

    graph: Graph | None
    shape: tuple[int, ...]  # of fields

    @property
    def num_sites(self) -> int:
        return math.prod(self.shape)

    def pull(self, coupling: jax.Array, s: jax.Array) -> jax.Array:
        """sum_j J_ij s_j for every site; s is (..., d), of floats or small integers."""
        return pulled(coupling, self.near(coupling, s))

    def near(self, coupling: jax.Array, s: jax.Array) -> jax.Array:
        """What `pulled` makes a pull of: sum_j s_j, as small as s is, where all edges have one coupling; else the pull itself."""
        raise NotImplementedError

    def halves(self, spread: Spread, field: Callable[[Any], jax.Array], packed: Spread) -> TwoColours | None:
        """The closed forms of either colour of a checkerboard, where it is one; for the arguments see `TwoColours`."""
        return None

    def weights(self, coupling: jax.Array) -> jax.Array:
        """(m,) one coupling per edge, in the order of the graph's edges."""
        raise NotImplementedError

    def matrix(self, coupling: jax.Array, copies: int = 1) -> Any:
        """H: the interactions as a Sparse matrix, one copy per category."""
        assert self.graph is not None
        return Sparse(self.graph.incidence, self.weights(coupling), copies=copies)

    def structures(self, quadratic: Any) -> tuple:
        """What a target of these sites knows: its quadratic, and the graph where there is one."""
        return (quadratic, self.graph)


@record
class Lattice(Sites):
    """A square or cubic lattice. coupling: (), (axes,), or of bonds (axes, d), from each site on along each axis."""

    graph: Graph
    shape: tuple[int, ...] = static()
    periodic: tuple[bool, ...] = static()
    per_bond: bool = static(default=False)

    def axes(self) -> list[int]:
        return [axis for axis, side in enumerate(self.shape) if side > 1]

    @property
    def edges(self) -> np.ndarray:
        """(m, 2) pairs of sites: along the first axis, then along the second, ...; couplings may be given in this order."""
        return np.asarray(self.graph.incidence.edges)

    def near(self, coupling: jax.Array, s: jax.Array) -> jax.Array:
        if not self.axes():
            return jnp.zeros_like(s)
        shifts = Shifts(self.shape, s, self.periodic)
        if not self.per_bond:
            return weighted(coupling, {axis: shifts.along(axis) for axis in self.axes()})
        behind = Shifts(self.shape, coupling, self.periodic)
        return sum(
            coupling[axis] * shifts.next(axis, 1).astype(coupling.dtype)
            + behind.next(axis, -1)[axis] * shifts.next(axis, -1).astype(coupling.dtype)
            for axis in self.axes()
        )  # type: ignore[return-value]

    def halves(self, spread: Spread, field: Callable[[Any], jax.Array], packed: Spread) -> TwoColours | None:
        folds = all(side % 2 == 0 for side in self.shape) and all(self.periodic) and not self.per_bond
        return TwoColours(Checkerboard(self.shape), spread, field, packed) if folds else None

    def weights(self, coupling: jax.Array) -> jax.Array:
        if not coupling.ndim:
            return jnp.broadcast_to(coupling, (len(self.edges),))
        first, axis = self._placed
        return coupling[axis, first] if self.per_bond else coupling[axis]

    @property
    def _placed(self) -> tuple[np.ndarray, np.ndarray]:
        """(m,) the first site and the axis of every edge."""
        num = [len(each) for each in bonds(self.shape, axis_steps(len(self.shape)), self.periodic)]
        return self.edges[:, 0], np.repeat(np.arange(len(num)), num)

    def fitted(self, coupling: jax.Array) -> tuple[Lattice, jax.Array]:
        """These sites and the coupling as they need it; TargetError where it does not fit."""
        num, d = len(self.shape), self.num_sites
        if coupling.shape in ((), (num,)):
            return self, coupling
        first, axis = self._placed
        if coupling.shape == (len(first),):
            each = jnp.zeros((num, d), coupling.dtype).at[axis, first].set(coupling)
        elif coupling.shape in ((num, *self.shape), (num, d)):
            real = np.zeros((num, d), bool)
            real[axis, first] = True
            each = jnp.where(real, coupling.reshape(num, d), 0)
        else:
            expected = f"a number, one per axis ({num},), one per bond ({len(first)},), or {(num, *self.shape)}"
            raise TargetError("`coupling` does not fit.", expected=expected, found=f"shape {coupling.shape}")
        return _per_bond(self.shape, self.periodic), each


@record
class Network(Sites):
    """Any graph. coupling: one number, or one per edge. shape: that of the lattice it is, or (d,). num: edges of each direction."""

    graph: Graph
    shape: tuple[int, ...] = static()
    num: tuple[int, ...] = static(default=())

    @property
    def edges(self) -> np.ndarray:
        """(m, 2) pairs of sites; couplings may be given in this order."""
        return np.asarray(self.graph.incidence.edges)

    @property
    def triangles(self) -> np.ndarray:
        """(n, 3) of a triangular lattice: a site, one on along one direction, and one on along both; for `third_order`."""
        if not self.num:
            raise TargetError("This graph has no triangles of its own.", expected="saltus.targets.triangular(shape)")
        right, down, both = np.split(self.edges, np.cumsum(self.num)[:-1])
        ways = [{int(a): int(b) for a, b in each} for each in (right, down, both)]
        found = {tuple(sorted((a, way[a], b))) for way in ways[:2] for a, b in ways[2].items() if a in way}
        return np.array(sorted(t for t in found if len(set(t)) == 3), np.int32).reshape(-1, 3)

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

    def fitted(self, coupling: jax.Array) -> tuple[Network, jax.Array]:
        m, num = self.graph.incidence.num_edges, len(self.num)
        if coupling.shape in ((), (m,)):
            return self, coupling
        if num and coupling.shape == (num,):
            return self, coupling[np.repeat(np.arange(num), self.num)]
        if num and coupling.shape in ((num, *self.shape), (num, self.num_sites)):
            return self, coupling.reshape(num, -1)[np.repeat(np.arange(num), self.num), self.edges[:, 0]]
        also = f", one per direction ({num},), or {(num, *self.shape)}" if num else ""
        expected = f"a number, or one per edge: shape ({m},){also}"
        raise TargetError("`coupling` does not fit.", expected=expected, found=f"shape {coupling.shape}")


@record
class Full(Sites):
    """Sites most of which interact. coupling: the matrix (d, d), symmetric and without diagonal."""

    graph: None = static(default=None)
    shape: tuple[int, ...] = static(default=())

    def near(self, coupling: jax.Array, s: jax.Array) -> jax.Array:
        return jnp.matmul(s.astype(coupling.dtype), coupling, precision="highest")

    def matrix(self, coupling: jax.Array, copies: int = 1) -> Any:
        return coupling

    def structures(self, quadratic: Any) -> tuple:
        return (quadratic,)


def lattice(shape: Any, periodic: Any = True) -> Lattice:
    """A square or cubic lattice of any shape, for `ising`, `potts`, `clock` and `third_order`.

    shape: its sides, such as (10, 10) or (8, 8, 8).
    periodic: True, False (open sides), or one of them for each axis. Each pair of sites has one bond: a periodic side of two
        sites has one bond where a torus would have two.
    Returns a `Lattice`: `.edges` (m, 2) lists its bonds, along the first axis first. TargetError where a side is not usable.
    """
    sides = read_shape(shape)
    return _lattice(sides, read_periodic(periodic, len(sides)))


def triangular(shape: Any, periodic: Any = True) -> Network:
    """A triangular lattice: a square one with bonds from each site (i, j) to (i + 1, j + 1) as well.

    shape: two sides. periodic: as for `lattice`.
    Returns a `Network` for `ising`, `potts`, `clock` and `third_order`: `.edges` (m, 2), first those along the first axis, then
    the second, then the diagonals; `.triangles` (n, 3). TargetError where the shape is not usable.
    """
    sides = read_shape(shape)
    if len(sides) != 2:
        raise TargetError("A triangular lattice has two sides.", expected="such as (10, 10)", found=shown(shape))
    return _triangular(sides, read_periodic(periodic, 2))


@functools.lru_cache(maxsize=KEPT)
def _lattice(shape: tuple[int, ...], periodic: tuple[bool, ...]) -> Lattice:
    steps = axis_steps(len(shape))
    edges = np.concatenate(bonds(shape, steps, periodic))
    return Lattice(Graph.from_edges(edges, math.prod(shape), lattice_colours(shape, steps, periodic)), shape, periodic)


@functools.lru_cache(maxsize=KEPT)
def _per_bond(shape: tuple[int, ...], periodic: tuple[bool, ...]) -> Lattice:
    return changed(_lattice(shape, periodic), per_bond=True)


@functools.lru_cache(maxsize=KEPT)
def _triangular(shape: tuple[int, ...], periodic: tuple[bool, ...]) -> Network:
    found = bonds(shape, TRIANGULAR, periodic)
    graph = Graph.from_edges(np.concatenate(found), math.prod(shape), lattice_colours(shape, TRIANGULAR, periodic))
    return Network(graph, shape, tuple(map(len, found)))
