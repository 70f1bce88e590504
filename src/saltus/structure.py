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
        incidence = Incidence(edges, num_sites)
        edges = np.asarray(incidence.edges)
        colours = np.asarray(greedy_colours(edges, num_sites) if colours is None else colours)
        if (colours[edges[:, 0]] == colours[edges[:, 1]]).any():
            row = int(np.argmax(colours[edges[:, 0]] == colours[edges[:, 1]]))
            raise TargetError(
                "`colours` is not a colouring.", expected="different colours at the ends of an edge", found=f"edge {edges[row]}"
            )
        groups = [np.flatnonzero(colours == c) for c in np.unique(colours)]
        blocks = np.full((len(groups), max(map(len, groups))), num_sites, np.int32)
        for block, group in zip(blocks, groups, strict=True):
            block[: len(group)] = group
        fill(self, incidence=incidence, blocks=jnp.asarray(blocks))

    def bind(self, space: Space) -> Graph:
        if self.incidence.num_sites != space.num_sites:
            raise TargetError(
                "The graph does not fit the space.", expected=f"{space.num_sites} sites", found=f"{self.incidence.num_sites}"
            )
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
    rng = np.random.default_rng(20220)
    for part in target.structure:
        (_verify_quadratic if isinstance(part, SiteQuadratic) else _verify_graph)(part, target, rng)


@jax.jit
def _values(target: Any, states: jax.Array) -> jax.Array:
    return jax.vmap(target.value)(states)


@jax.jit
def _claims(target: Any, part: SiteQuadratic, states: jax.Array) -> jax.Array:
    return jax.vmap(lambda c: part.value(target.space, c, part.coupling.matvec(target.space.ravel(target.space.embed(c)))))(states)


def _tolerance(target: Any, f: np.ndarray) -> float:
    """Rounding of sums of about n terms, on top of 1e-5 of the values."""
    return 1e-5 * (1 + float(np.abs(f).max())) + 64 * float(jnp.finfo(default_float()).eps) * target.space.size


def _verify_quadratic(part: SiteQuadratic, target: Any, rng: np.random.Generator) -> None:
    space = target.space
    states = jnp.asarray(rng.integers(space.num_values, size=(6, space.num_sites)), jnp.int32)
    f, told = (np.asarray(v, np.float64) for v in (_values(target, states), _claims(target, part, states)))
    error = np.abs(np.diff(f) - np.diff(told))
    if error.max() > _tolerance(target, f):
        i = int(error.argmax())
        raise TargetError(
            "`structure` says quadratic, but log_prob is not this quadratic.",
            expected=f"f(s') - f(s) = {told[i + 1] - told[i]:.6g} between two random states",
            found=f"{f[i + 1] - f[i]:.6g}",
            hint="saltus.Quadratic(b, H) means b·s + ½ sᵀHs: note the ½, and that H_ij = H_ji both count",
        )


def _verify_graph(part: Graph, target: Any, rng: np.random.Generator) -> None:
    """Sites that are no neighbours do not interact: f(both changed) - f(one) - f(other) + f(neither) = 0."""
    space = target.space
    pairs = _strangers(np.asarray(part.incidence.edges), space.num_sites, rng, most=max(min(64, 2**20 // space.size), 4))
    if not len(pairs):
        return
    rows = np.arange(len(pairs))
    states = np.tile(rng.integers(space.num_values, size=space.num_sites), (4, len(pairs), 1))
    for change, end in ((1, 0), (2, 1), (3, 0), (3, 1)):
        states[change, rows, pairs[:, end]] = (states[change, rows, pairs[:, end]] + 1) % space.num_values
    f = np.asarray(_values(target, jnp.asarray(states.reshape(-1, space.num_sites), jnp.int32)), np.float64).reshape(4, -1)
    mixed = f[3] - f[1] - f[2] + f[0]
    wrong = np.abs(mixed) > _tolerance(target, f)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise TargetError(
            f"`structure` says that sites {pairs[i, 0]} and {pairs[i, 1]} do not interact, but they do.",
            expected="f(both changed) - f(one) - f(other) + f(neither) = 0",
            found=f"{mixed[i]:.6g}",
            hint="list every pair of sites that appears together in a term of log_prob",
        )


def _strangers(edges: np.ndarray, d: int, rng: np.random.Generator, most: int) -> np.ndarray:
    """(p, 2) pairs of sites without an edge: all of them where they are few, else a random choice."""
    if d * (d - 1) // 2 <= most:
        pairs = np.stack(np.triu_indices(d, 1), axis=1)
    else:
        pairs = np.sort(rng.integers(d, size=(4 * most, 2)), axis=1)
        pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)
    ordered = np.sort(edges.astype(np.int64), axis=1)
    known = np.isin(pairs[:, 0] * d + pairs[:, 1], ordered[:, 0] * d + ordered[:, 1])
    return rng.permutation(pairs[~known])[:most]
