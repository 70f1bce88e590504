r"""What a target may know about itself: that it is quadratic, or which sites interact.

Both are claims about log_prob; `Target` tests them at random states where it is built and refuses what is not so.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._record import as_float, changed, default_float, fill, is_concrete, record
from .errors import TargetError
from .neighbours import Incidence, greedy_colours
from .preconditioners import Dense, Preconditioner, Sparse
from .spaces import Space


@record
class Quadratic:
    r"""f(s) = constant + sum_i φ_i(s_i) + b·s + ½ sᵀHs, with s ravelled: b (n,), H (n, n) or `Sparse`, φ (d, k) tables."""

    b: Any
    H: Any
    potentials: Any = None
    constant: Any = 0.0

    def bind(self, space: Space) -> SiteQuadratic:
        """Move the on-site part of H and b into site potentials: f = constant + sum_i φ_i(s_i) + ½ sᵀ(H off-site)s."""
        d, k, n = space.num_sites, space.num_values, space.size
        b = jnp.broadcast_to(as_float(self.b, "b", TargetError), (n,)).reshape(d, -1)
        values = jnp.asarray(space.values.reshape(k, -1), default_float())
        on_site, coupling = _split(self.H, d, n)
        potentials = b @ values.T + 0.5 * jnp.einsum("kl,dlm,km->dk", values, on_site, values)
        if self.potentials is not None:
            potentials = potentials + as_float(self.potentials, "potentials", TargetError)
        return SiteQuadratic(potentials, coupling, as_float(self.constant, "constant", TargetError))


def _split(H: Any, d: int, n: int) -> tuple[jax.Array, Preconditioner]:
    """(d, m, m) blocks of H that couple a site to itself, and the rest."""
    m = n // d
    if isinstance(H, Sparse):
        if H.size != n:
            raise TargetError("`H` does not fit the space.", expected=f"size {n}", found=f"size {H.size}")
        site = np.asarray(H.edges.edges) * H.copies // m
        if (site[:, 0] == site[:, 1]).any():
            raise TargetError("H couples a site to itself.", expected="edges between sites", hint="put it into `potentials`")
        blocks = jax.vmap(jnp.diag)(H.diagonal.reshape(d, m))
        return blocks, changed(H, diagonal=jnp.zeros_like(H.diagonal))
    H = as_float(H, "H", TargetError)
    if H.shape != (n, n):
        raise TargetError("`H` does not fit the space.", expected=f"shape ({n}, {n})", found=f"shape {H.shape}")
    same = jnp.asarray(np.kron(np.eye(d, dtype=bool), np.ones((m, m), bool)))
    blocks = H.reshape(d, m, d, m)[np.arange(d), :, np.arange(d), :]
    return blocks, Dense(jnp.where(same, 0, H))


@record
class SiteQuadratic:
    """A `Quadratic` bound to its space: potentials φ (d, k), and a coupling H without on-site part."""

    potentials: jax.Array
    coupling: Preconditioner
    constant: jax.Array

    def value(self, space: Space, codes: jax.Array, Hs: jax.Array) -> jax.Array:
        s = space.ravel(space.embed(codes))
        chosen = jnp.take_along_axis(self.potentials, codes[:, None], axis=1)
        return self.constant + jnp.sum(chosen) + 0.5 * jnp.dot(s, Hs, precision="highest")


@record
class Graph:
    """Which sites interact: given the others, a site depends on its neighbours only.

    `neighbours[i]` lists the neighbours of site i (rows of a table may be padded with -1); or use `Graph.from_edges`.
    `blocks` (colours, widest) lists the sites of each colour, padded with d: sites of one colour do not interact.
    """

    incidence: Incidence
    blocks: jax.Array

    def __init__(self, neighbours: Any, colours: Any = None):
        pairs = {(i, int(j)) for i, row in enumerate(neighbours) for j in row if j >= 0}
        alone = [p for p in pairs if p[::-1] not in pairs]
        if alone:
            i, j = min(alone)
            raise TargetError("`neighbours` is not symmetric.", expected=f"{i} among the neighbours of {j}", found=f"only {j} among those of {i}")
        edges = np.array(sorted(p for p in pairs if p[0] <= p[1]), np.int32).reshape(-1, 2)
        self._fill(edges, len(neighbours), colours)

    @classmethod
    def from_edges(cls, edges: Any, num_sites: int, colours: Any = None) -> Graph:
        graph = object.__new__(cls)
        graph._fill(edges, num_sites, colours)
        return graph

    def _fill(self, edges: Any, num_sites: int, colours: Any) -> None:
        incidence = Incidence(edges, num_sites)
        edges = np.asarray(incidence.edges)
        colours = np.asarray(greedy_colours(edges, num_sites) if colours is None else colours)
        if (colours[edges[:, 0]] == colours[edges[:, 1]]).any():
            row = int(np.argmax(colours[edges[:, 0]] == colours[edges[:, 1]]))
            raise TargetError("`colours` is not a colouring.", expected="different colours at the ends of an edge", found=f"edge {edges[row]}")
        groups = [np.flatnonzero(colours == c) for c in np.unique(colours)]
        blocks = np.full((len(groups), max(map(len, groups))), num_sites, np.int32)
        for row, group in zip(blocks, groups, strict=True):
            row[: len(group)] = group
        fill(self, incidence=incidence, blocks=jnp.asarray(blocks))

    def bind(self, space: Space) -> Graph:
        if self.incidence.num_sites != space.num_sites:
            raise TargetError("The graph does not fit the space.", expected=f"{space.num_sites} sites", found=f"{self.incidence.num_sites}")
        return self


def bind_structure(structure: Any, space: Space) -> tuple:
    """Any number of structures, each bound to the space."""
    parts = structure if isinstance(structure, (tuple, list)) else () if structure is None else (structure,)
    for part in parts:
        if not isinstance(part, (Quadratic, Graph)):
            raise TargetError("`structure` is not known.", expected="saltus.Quadratic or saltus.Graph", found=type(part).__name__)
    return tuple(part.bind(space) for part in parts)


def verify_structure(target: Any) -> None:
    """Test every claim at random states: TargetError names the first that is false. Skipped where values are traced."""
    if not target.structure or not is_concrete(target):
        return
    keys = jax.random.split(jax.random.key(20220), 6)
    states = [target.space.random(key) for key in keys]
    f = [float(target.value(codes)) for codes in states]
    noise = 1e-5 + 64 * float(jnp.finfo(default_float()).eps)
    for part in target.structure:
        if isinstance(part, SiteQuadratic):
            _verify_quadratic(part, target.space, states, f, noise)
        else:
            _verify_graph(part, target, states, f, noise)


def _verify_quadratic(part: SiteQuadratic, space: Space, states: list, f: list, noise: float) -> None:
    told = [float(part.value(space, c, part.coupling.matvec(space.ravel(space.embed(c))))) for c in states]
    for a, b in zip(range(len(f) - 1), range(1, len(f)), strict=True):
        error = abs((f[b] - f[a]) - (told[b] - told[a]))
        if error > noise * (1 + abs(f[a]) + abs(f[b])):
            raise TargetError(
                "`structure` says quadratic, but log_prob is not this quadratic.",
                expected=f"f(s') - f(s) = {told[b] - told[a]:.6g} between two random states",
                found=f"{f[b] - f[a]:.6g}",
                hint="saltus.Quadratic(b, H) means b·s + ½ sᵀHs: note the ½, and that H_ij = H_ji both count",
            )


def _verify_graph(part: Graph, target: Any, states: list, f: list, noise: float) -> None:
    """Two sites of one colour may not interact: f(both) - f(one) - f(other) + f(neither) = 0."""
    rng = np.random.default_rng(0)
    d, k = target.space.num_sites, target.space.num_values
    for codes, value in zip(states, f, strict=True):
        block = np.asarray(part.blocks)[rng.integers(len(part.blocks))]
        block = rng.permutation(block[block < d])[:2]
        if len(block) < 2:
            continue
        both, one, other = (
            float(target.value(codes.at[sites].set((codes[sites] + 1) % k))) for sites in (block, block[:1], block[1:])
        )
        if abs(both - one - other + value) > noise * (1 + abs(both) + abs(one) + abs(other) + abs(value)):
            raise TargetError(
                f"`structure` says that sites {block[0]} and {block[1]} do not interact, but they do.",
                expected="f(both changed) - f(one) - f(other) + f(neither) = 0",
                found=f"{both - one - other + value:.6g}",
                hint="list every pair of sites that appears together in a term of log_prob",
            )
