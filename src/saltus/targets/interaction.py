"""Who interacts, and how strongly: from a lattice, a graph, a matrix or a list of edges, as a person has it."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_float, is_concrete, shown
from ..errors import TargetError
from ..structure import Graph
from .graphs import Edges, read_graph
from .sites import KEPT, Full, Lattice, Network, lattice

_FULL, _LARGEST = 0.25, 4096  # share of all pairs from which a matrix is kept as it is; sites of such a matrix


@dataclass(frozen=True)
class Interaction:
    """Sites, their coupling as `sites` needs it, and names of the sites where the graph has them."""

    sites: Any
    coupling: jax.Array
    names: tuple[str, ...] | None = None


def interaction(shape_or_graph: Any, coupling: Any = 1.0, periodic: Any = True, full: bool = False) -> Interaction:
    """Who interacts, and how strongly. The same `sites` for the same lattice or graph: targets that differ in params only
    share their functions.

    shape_or_graph: a tuple of sides, what `lattice` or `triangular` returned, a `saltus.Graph`, a graph of networkx, a matrix
        of couplings (scipy's sparse ones too), or a list of edges (i, j) or (i, j, J) with any labels.
    coupling: a number, or one per axis or bond. Where edges have weights of their own, None or a number that multiplies them; or
        the name of the edges' attribute that holds them.
    full: whether a matrix may be kept as it is.
    """
    attribute = coupling if isinstance(coupling, str) else "weight"
    coupling = None if coupling is None or isinstance(coupling, str) else as_float(coupling, "coupling", TargetError)
    sites = _known_sites(shape_or_graph, periodic)
    if sites is not None:
        if coupling is None:
            raise TargetError(
                "`coupling` is missing.", expected="a number, or one per bond", hint="this graph has no weights of its own"
            )
        return Interaction(*sites.fitted(coupling))
    told = read_graph(shape_or_graph, attribute)
    if told is None:
        raise TargetError(
            "The lattice or graph is not understood.",
            expected="a tuple of sides such as (10, 10), saltus.targets.triangular(shape), a saltus.Graph, a graph of networkx, "
            "a matrix of couplings, or a list of edges (i, j) or (i, j, J)",
            found=f"{type(shape_or_graph).__name__} {shown(shape_or_graph)}",
        )
    return _of_edges(told, coupling, full)


def _known_sites(given: Any, periodic: Any) -> Lattice | Network | None:
    if isinstance(given, (Lattice, Network)):
        return given
    if isinstance(given, Graph):
        sites = Network(given, (given.incidence.num_sites,))
        return _network(_Known.of(given)) if is_concrete(given) else sites
    if isinstance(given, tuple) and given and all(isinstance(n, (int, np.integer)) for n in given):
        return lattice(given, periodic)
    return None


def _of_edges(told: Edges, coupling: jax.Array | None, full: bool) -> Interaction:
    m, d = len(told.edges), told.num_sites
    J = _of_given_edges(told, coupling) if coupling is not None and coupling.ndim else coupling
    if told.weights is not None:
        if J is not None and J.ndim:
            expected = "None or a number, which multiplies them"
            raise TargetError("The edges have couplings of their own.", expected=expected, found=f"shape {J.shape}")
        J = as_float(told.weights, "coupling", TargetError) * (1.0 if J is None else J)
    if J is None:
        raise TargetError(
            "`coupling` is missing.", expected="a number, or one per edge", hint="these edges have no weights of their own"
        )
    if full and told.weights is not None and d <= _LARGEST and m > _FULL * d * (d - 1) / 2:
        i, j = told.edges.T
        return Interaction(_full(d), jnp.zeros((d, d), J.dtype).at[i, j].set(J).at[j, i].set(J), told.names)
    sites = _network(_Known.of(Graph.from_edges(told.edges, d)))
    return Interaction(*sites.fitted(J), told.names)


def _of_given_edges(told: Edges, coupling: jax.Array) -> jax.Array:
    """Couplings of the edges that were given, added where edges were merged."""
    if told.merged is None or coupling.shape != told.merged.shape:
        return coupling
    real = told.merged >= 0
    return jnp.zeros(len(told.edges), coupling.dtype).at[told.merged[real]].add(coupling[real])


@functools.lru_cache(maxsize=KEPT)
def _full(num_sites: int) -> Full:
    return Full(None, (num_sites,))


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
    return Network(known.graph, (known.graph.incidence.num_sites,))


def site_field(given: Any, sites: Any, each: tuple[int, ...] = ()) -> jax.Array:
    """h: a number, one per value where sites have several numbers (`each`), or one per site, as (d,) or of the lattice's shape."""
    h = as_float(given, "field", TargetError)
    if h.shape in ((), each):
        return h
    if h.shape in ((sites.num_sites, *each), (*sites.shape, *each)):
        return h.reshape(sites.num_sites, *each)
    fitting = [*([each] if each else []), (sites.num_sites, *each), *([(*sites.shape, *each)] if len(sites.shape) > 1 else [])]
    expected = "a number, or shape " + " or ".join(map(str, fitting))
    raise TargetError("`field` does not fit.", expected=expected, found=f"shape {h.shape}")
