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
from .local import Differences, brute_force
from .neighbours import Incidence, greedy_colours
from .preconditioners import Preconditioner, Sparse, symmetric
from .shifted import Shifted
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
        b = _fitting(self.b, "b", (n,)).reshape(d, -1)
        values = jnp.asarray(space.values.reshape(k, -1), default_float())
        on_site, coupling = _split(self.H, d, n)
        linear = jnp.matmul(b, values.T, precision="highest")
        potentials = linear + 0.5 * jnp.einsum("kl,dlm,km->dk", values, on_site, values, precision="highest")
        if self.potentials is not None:
            potentials = potentials + _fitting(self.potentials, "potentials", (d, k))
        return SiteQuadratic(potentials, coupling, as_float(self.constant, "constant", TargetError))


def _fitting(given: Any, name: str, shape: tuple[int, ...]) -> jax.Array:
    array = as_float(given, name, TargetError)
    if array.shape not in ((), shape):
        raise TargetError(f"`{name}` does not fit the space.", expected=f"a number, or shape {shape}", found=f"shape {array.shape}")
    return jnp.broadcast_to(array, shape)


def _split(H: Any, d: int, n: int) -> tuple[jax.Array, Preconditioner]:
    """(d, m, m) blocks of H that couple a site to itself, and the rest."""
    m = n // d
    if isinstance(H, Sparse):
        if H.size != n:
            raise TargetError("`H` does not fit the space.", expected=f"size {n}", found=f"size {H.size}")
        edges = H.edges.edges
        if is_concrete(edges) and (np.diff(np.asarray(edges) * H.copies // m, axis=1) == 0).any():
            raise TargetError("H couples a site to itself.", expected="edges between sites", hint="put it into `potentials`")
        blocks = jax.vmap(jnp.diag)(H.diagonal.reshape(d, m))
        return blocks, changed(H, diagonal=jnp.zeros_like(H.diagonal))
    H = as_float(H, "H", TargetError)
    if H.shape != (n, n):
        raise TargetError("`H` does not fit the space.", expected=f"shape ({n}, {n})", found=f"shape {H.shape}")
    H = symmetric(H, "`H`", TargetError)
    same = jnp.asarray(np.kron(np.eye(d, dtype=bool), np.ones((m, m), bool)))
    blocks = H.reshape(d, m, d, m)[np.arange(d), :, np.arange(d), :]
    return blocks, Shifted(jnp.where(same, 0, H))


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
    colours: jax.Array  # (d,) the row of `blocks` in which each site is

    def __init__(self, neighbours: Any, colours: Any = None):
        pairs = {(i, int(j)) for i, row in enumerate(neighbours) for j in row if j >= 0}
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
        incidence = Incidence(edges, num_sites)
        edges = np.asarray(incidence.edges)
        colours = np.asarray(greedy_colours(edges, num_sites) if colours is None else colours)
        if colours.shape != (num_sites,):
            raise TargetError(
                "`colours` does not fit.", expected=f"one per site, shape ({num_sites},)", found=f"shape {colours.shape}"
            )
        if (colours[edges[:, 0]] == colours[edges[:, 1]]).any():
            row = int(np.argmax(colours[edges[:, 0]] == colours[edges[:, 1]]))
            raise TargetError(
                "`colours` is not a colouring.", expected="different colours at the ends of an edge", found=f"edge {edges[row]}"
            )
        groups = [np.flatnonzero(colours == c) for c in np.unique(colours)]
        blocks = np.full((len(groups), max(map(len, groups))), num_sites, np.int32)
        for block, group in zip(blocks, groups, strict=True):
            block[: len(group)] = group
        with jax.ensure_compile_time_eval():
            numbers = np.unique(colours, return_inverse=True)[1].astype(np.int32)
            fill(self, incidence=incidence, blocks=jnp.asarray(blocks), colours=jnp.asarray(numbers.ravel()))

    def __repr__(self) -> str:
        return f"Graph({self.incidence.num_sites} sites, {self.incidence.num_edges} edges, {len(self.blocks)} colours)"

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
    """Test every claim at random states: TargetError names the first that is false."""
    rng = np.random.default_rng(20220)
    for part in target.structure:
        (_verify_quadratic if isinstance(part, SiteQuadratic) else _verify_graph)(part, target, rng)


@jax.jit
def _values(target: Any, states: jax.Array) -> jax.Array:
    return jax.vmap(target.value)(states)


@jax.jit
def _claims(target: Any, part: SiteQuadratic, states: jax.Array) -> jax.Array:
    return jax.vmap(lambda c: part.value(target.space, c, part.coupling.matvec(target.space.ravel(target.space.embed(c)))))(states)


def _tolerance(target: Any, *values: np.ndarray) -> float:
    """Rounding of sums of about n terms. float32's in both precisions: a log_prob may hold float32 constants."""
    return float(np.finfo(np.float32).eps) * (8 * sum(_largest(v) for v in values) + 4 * target.space.size)


def _largest(values: np.ndarray) -> float:
    return float(np.abs(values[np.isfinite(values)]).max(initial=0))


def _verify_quadratic(part: SiteQuadratic, target: Any, rng: np.random.Generator) -> None:
    space = target.space
    states = jnp.asarray(rng.integers(space.num_values, size=(max(min(16, 2**22 // space.size), 4), space.num_sites)), jnp.int32)
    f, told = (np.asarray(v, np.float64) for v in (_values(target, states), _claims(target, part, states)))
    with np.errstate(invalid="ignore"):
        error = np.abs(np.diff(f) - np.diff(told))
    if not (error <= _tolerance(target, f, told)).all():  # not <=: a log_prob of -inf or NaN is no quadratic
        i = int(np.argmax(~(error <= _tolerance(target, f, told))))
        raise TargetError(
            "`structure` says quadratic, but log_prob is not this quadratic.",
            expected=f"f(s') - f(s) = {told[i + 1] - told[i]:.6g} between two random states",
            found=f"{f[i + 1] - f[i]:.6g}",
            hint="saltus.Quadratic(b, H) means b·s + ½ sᵀHs: note the ½, and that H_ij = H_ji both count",
        )


def _verify_graph(part: Graph, target: Any, rng: np.random.Generator) -> None:
    """Sites that are no neighbours do not interact: f(both changed) - f(one) - f(other) + f(neither) = 0."""
    space = target.space
    most = max(min(64, 2**20 // space.size), 4)
    pairs = _strangers(np.asarray(part.incidence.edges), space.num_sites, rng, most)
    if not len(pairs):
        return
    pairs = np.resize(pairs, (most, 2))  # few pairs are tried several times, each from another state
    rows = np.arange(most)
    states = np.repeat(rng.integers(space.num_values, size=(1, most, space.num_sites)), 4, axis=0)
    new = (states[0][rows[:, None], pairs] + rng.integers(1, space.num_values, size=(most, 2))) % space.num_values
    for change, end in ((1, 0), (2, 1), (3, 0), (3, 1)):
        states[change, rows, pairs[:, end]] = new[:, end]
    f = np.asarray(_values(target, jnp.asarray(states.reshape(-1, space.num_sites), jnp.int32)), np.float64).reshape(4, -1)
    finite = np.isfinite(f).all(axis=0)  # a pair of impossible states says nothing
    mixed = np.where(finite, f[3] - f[1] - f[2] + f[0], 0)
    wrong = np.abs(mixed) > 2 * _tolerance(target, f)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise TargetError(
            f"`structure` says that sites {pairs[i, 0]} and {pairs[i, 1]} do not interact, but they do.",
            expected="f(both changed) - f(one) - f(other) + f(neither) = 0",
            found=f"{mixed[i]:.6g}",
            hint="list every pair of sites that appears together in a term of log_prob",
        )


def verify_differences(target: Any) -> None:
    """Test that closed-form differences declared exact are: at a random state, at up to 16 sites."""
    if not (isinstance(target.differences, Differences) and target.differences.exact):
        return
    space, rng = target.space, np.random.default_rng(20221)
    codes = jnp.asarray(
        rng.integers(space.num_values, size=space.num_sites) if target.initial is None else target.initial, jnp.int32
    )
    sites = jnp.asarray(rng.permutation(space.num_sites)[:16], jnp.int32)
    told, true = (np.asarray(table, np.float64) for table in _both_rows(target, codes, sites))
    current = np.asarray(codes)[np.asarray(sites)]
    told, change = (table - np.take_along_axis(table, current[:, None], 1) for table in (told, true))
    seen = np.isfinite(change)
    error = np.abs(np.where(seen, told - change, 0))
    if not (error <= 2 * _tolerance(target, true, np.where(seen, told, 0))).all():
        row, value = np.unravel_index(int(np.argmax(np.where(np.isnan(error), np.inf, error))), error.shape)
        raise TargetError(
            "`differences` says exact, but it is not.",
            expected=f"f changes by {change[row, value]:.6g} when site {int(sites[row])} takes value {value}",
            found=f"{told[row, value]:.6g}",
            hint="saltus.Differences(fn) without exact=True may be approximate: every sampler but Gibbs can use it as it is",
        )


@jax.jit
def _both_rows(target: Any, codes: jax.Array, sites: jax.Array) -> tuple[jax.Array, jax.Array]:
    f = target.value(codes)
    return target.differences.rows(target, codes, f, sites)[0], brute_force(target, codes, f, sites)[0]


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
