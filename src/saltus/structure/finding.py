r"""Structure that is found in a log_prob, not declared.

`find` reads the jaxpr (`reading`) and decides what it is good for; `Found` is then called with params like a structure that
was declared as a function of them: who interacts is the same for all params, b and H come from derivatives of log_prob.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._compiling import program
from .._record import default_float, is_concrete
from ..preconditioners import Plain, Shifted
from ..spaces import Space
from .colouring import quick_colours
from .graph import Graph
from .local_terms import LocalTerms, find_terms
from .pattern import Pattern, pattern_of
from .quadratic import BoundQuadratic, SiteQuadratic
from .reading import MANY, Reading, read
from .reading.constants import UNKNOWN
from .reading.dependence import Dependence, distinct

_FACTORISED = 300  # sites up to which a dense H is factorised, as BlockGibbs needs it: beyond, that takes too long
_AT_ONCE = 256  # products with H, or evaluations, that are made together
_MOST_POTENTIALS = 4096  # evaluations of log_prob that on-site parts may take


@dataclass(frozen=True, eq=False)
class Found:
    """What was found in a log_prob, as a function of params.

    graph: who interacts; None where that was not found, or is everybody with everybody. pattern: where H is not zero; None
    where f is not quadratic. potential: f has on-site parts that are no polynomials. terms: of an f that is not quadratic, the
    local terms that it is the sum of; the graph's colours are then theirs. why: what was not found, and why not.
    Two that say the same about one log_prob are equal, so that nothing recompiles.
    """

    log_prob: Callable
    space: Space
    with_params: bool
    graph: Graph | None = None
    pattern: Pattern | None = None
    potential: bool = False
    terms: LocalTerms | None = None
    why: tuple[str, ...] = ()

    def __call__(self, params: Any) -> tuple:
        if not is_concrete(params):
            return self._structure(params)
        with jax.ensure_compile_time_eval():  # as numbers, even while something else is traced
            if params is not None:
                return self._structure(params)
            if default_float() not in self._once:
                self._once[default_float()] = self._structure(params)
            return self._once[default_float()]

    @functools.cached_property
    def _once(self) -> dict[Any, tuple]:
        """The structure where there are no params to follow, by the type of its numbers."""
        return {}

    def _structure(self, params: Any) -> tuple:
        quadratic = None if self.pattern is None else self._quadratic(self.pattern, params)
        return tuple(part for part in (quadratic, self.graph, self.terms) if part is not None)

    def without(self, kind: type, why: str) -> Found:
        """The same less one part, which has failed its test."""
        part = "pattern" if issubclass(kind, BoundQuadratic) else "terms" if issubclass(kind, LocalTerms) else "graph"
        dropped = {part: None}
        return replace(self, **dropped, why=(*self.why, why))  # type: ignore[arg-type]

    def log_prob_of(self, params: Any, v: jax.Array) -> jax.Array:
        """f of the ravelled state."""
        s = self.space.unravel(v)
        return jnp.asarray(self.log_prob(params, s) if self.with_params else self.log_prob(s), default_float())

    def _quadratic(self, pattern: Pattern, params: Any) -> BoundQuadratic | None:
        """None where f, or its slope, is not finite where it is looked at: -inf less -inf says nothing."""
        with np.errstate(invalid="ignore"):
            numbers = _numbers(self, params)
        if is_concrete(numbers) and not all(np.isfinite(x).all() for x in numbers):
            return None
        potentials, entries, constant = (jnp.asarray(x, default_float()) for x in numbers)
        if pattern.is_sparse:
            return SiteQuadratic(potentials, pattern.sparse(entries), constant)
        if self.space.size <= _FACTORISED:
            return SiteQuadratic(potentials, Shifted(entries), constant)
        return BoundQuadratic(potentials, Plain(entries), constant)

    def _content(self) -> tuple:
        told = hashlib.sha256()
        for array in (*(() if self.graph is None else (self.graph.incidence.edges, self.graph.colours)),):
            told.update(np.asarray(array).tobytes())
        if self.terms is not None:
            told.update(np.asarray(self.terms.lists).tobytes())
        shape = None if self.pattern is None else self.pattern.digest
        return (self.log_prob, self.space, self.with_params, self.potential, told.digest(), self.graph is None, shape)

    def __eq__(self, other: Any) -> bool:
        return self is other or (isinstance(other, Found) and self._content() == other._content())

    def __hash__(self) -> int:
        return hash((self.log_prob, self.space, self.graph is None, self.pattern is None))

    def __str__(self) -> str:
        """What was found and what it is used for, a line each."""
        lines = []
        if self.pattern is not None:
            forms = "and on-site terms, " if self.potential else ""
            lines += [
                f"found: f is quadratic, {forms}{self.pattern}",
                "  used for exact differences and Gibbs sweeps that do not evaluate log_prob"
                + ("" if self.space.size > _FACTORISED and not self.pattern.is_sparse else ", and for BlockGibbs"),
            ]
        if self.graph is not None:
            alone = self.space.num_sites - len(np.unique(self.graph.incidence.edges))
            lines += [
                f"found: {self.graph.incidence.num_edges} of "
                f"{self.space.num_sites * (self.space.num_sites - 1) // 2} pairs of sites interact"
                + (f"; independent of all others: {alone} of the sites" if alone else ""),
                f"  used for Gibbs sweeps that draw all sites of a colour at once ({len(self.graph.blocks)} colours)",
            ]
        if self.terms is not None:
            lines += [
                f"found: f is a sum of {self.terms.num_terms} local terms",
                f"  used for exact differences and Gibbs sweeps by colours: {self.terms.evaluations(self.space)} evaluations "
                f"in place of {1 + self.space.num_sites * (self.space.num_values - 1)}",
            ]
        return "\n".join([*lines, *(f"not found: {line}" for line in self.why)])


def find(log_prob: Callable, space: Space, params: Any, jaxpr: Any, quadratic: bool = True) -> Found:
    """What can be told of log_prob from its jaxpr, a function of the leaves of params, then those of s.

    quadratic: False where the numbers of a quadratic form that was found are not finite.
    """
    nothing = Found(log_prob, space, params is not None)
    if any(isinstance(c, jax.core.Tracer) for c in (*jaxpr.consts, *jax.tree.leaves(params))):
        return replace(nothing, why=("this target was built while JAX was tracing, so its numbers cannot be seen",))
    leaves = jax.tree.leaves(space.unravel(jnp.asarray(np.arange(space.size, dtype=np.int32))))
    entries = [np.asarray(leaf) for leaf in leaves]
    state = [Dependence(leaf.shape, np.arange(leaf.size + 1), leaf.ravel().astype(np.int64)) for leaf in entries]
    unknown = [UNKNOWN] * (len(jaxpr.jaxpr.invars) - len(state))
    inputs: list[Any] = [*unknown, *state]
    site_of = space.site_of_entries()
    found = decide(nothing, read(jaxpr.jaxpr, jaxpr.consts, inputs, space.size, site_of), site_of)
    if not quadratic:
        found = found.without(BoundQuadratic, "a quadratic form: log_prob or its slope is not finite at some values of a site")
    return found if found.pattern is not None or found.graph is None else _with_terms(found, params, inputs, site_of)


def _with_terms(found: Found, params: Any, inputs: list[Any], site_of: np.ndarray) -> Found:
    """Where f is not quadratic but some sites do not interact: its local terms, and a graph coloured as they are.

    Sites that share a term may not interact: there are more colours than the graph alone would need, and each is drawn at the
    price of k - 1 evaluations, however many sites it has.
    """
    graph = found.graph
    assert graph is not None
    try:
        terms, reason = find_terms(found.log_prob, found.space, params, inputs, site_of)
    except Exception as cause:  # a jaxpr that cannot be evaluated outside its function
        terms, reason = None, f"its terms cannot be evaluated on their own ({type(cause).__name__})"
    if terms is None:
        return replace(found, why=(*found.why, f"local terms: {reason}"))
    coloured = Graph.from_edges(np.asarray(graph.incidence.edges), found.space.num_sites, np.asarray(terms.colours))
    return replace(found, graph=coloured, terms=terms)


def decide(nothing: Found, reading: Reading, site_of: np.ndarray) -> Found:
    """What a reading is good for."""
    space, why = nothing.space, []
    pattern, (graph, no_graph) = None, _graph(reading, space.num_sites, site_of)
    if reading.degree == MANY:
        why.append(f"a quadratic form: {reading.why}")
    elif not hasattr(space, "values"):
        why.append("a quadratic form: sites of a product have no values in common")
    elif reading.potential and space.num_sites * (space.num_values - 1) > _MOST_POTENTIALS:
        why.append(f"a quadratic form: its on-site terms would take more than {_MOST_POTENTIALS} evaluations")
    else:
        pattern, reason = pattern_of(reading.pairs, space.size, site_of, None if graph is None else graph.incidence)
        why += [f"a quadratic form: {reason}"] if reason else []
    why += [f"sites that do not interact: {no_graph}"] if no_graph else []
    return replace(nothing, graph=graph, pattern=pattern, potential=reading.potential, why=tuple(why))


def _graph(reading: Reading, num_sites: int, site_of: np.ndarray) -> tuple[Graph | None, str]:
    if reading.pairs is None:
        return None, reading.why or "all of them may"
    ends = site_of[reading.pairs]
    ends = ends[ends[:, 0] != ends[:, 1]]
    keys = distinct(ends.min(1) * num_sites + ends.max(1))
    edges = np.stack(np.divmod(keys, num_sites), axis=1)
    if 2 * len(edges) == num_sites * (num_sites - 1) > 0:
        return None, "all of them may"
    colours = quick_colours(edges, num_sites)
    if colours is None or 2 * (colours.max() + 1) > max(num_sites, 4):
        return None, f"{len(edges)} pairs of {num_sites} sites do, too many for sweeps by colours"
    return Graph.from_edges(edges, num_sites, colours), ""


@program(once=True, static_argnums=0)
def _derivatives(found: Found, params: Any, start: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """(f, its gradient, H times the seeds of its pattern) at `start`, and f for every value of every site of it."""
    f, pattern, space = partial(found.log_prob_of, params), found.pattern, found.space
    assert pattern is not None
    value, slope = jax.value_and_grad(f)(start)
    along = lambda v: jax.jvp(jax.grad(f), (start,), (v,))[1]  # noqa: E731
    seeds = pattern.seeds(start.dtype)
    rows = jax.vmap(along)(seeds) if len(seeds) <= _AT_ONCE else jax.lax.map(along, seeds, batch_size=_AT_ONCE)
    if not found.potential:
        return value, slope, rows, value
    d, k = space.num_sites, space.num_values
    state = lambda i: f(space.ravel(space.embed(jnp.zeros(d, jnp.int32).at[i // k].set(i % k))))  # noqa: E731
    return value, slope, rows, jax.lax.map(state, jnp.arange(d * k, dtype=jnp.int32), batch_size=_AT_ONCE)


def _numbers(found: Found, params: Any) -> tuple[Any, Any, Any]:
    r"""(φ, H off-site, constant) such that f = constant + sum_i φ_i(s_i) + ½ sᵀHs.

    A polynomial is expanded at s⁰ = 0: φ_i(v) = b_i·v + ½ v·H_ii v, constant = f(0). With other on-site parts s⁰ is a
    state and φ_i(v) = e_i(v) - v·(H s⁰)_i, e_i(v) the change of f when s⁰_i becomes v, constant = f(s⁰) + ½ s⁰ᵀ H s⁰.
    """
    space, pattern = found.space, found.pattern
    assert pattern is not None
    d, k, dtype = space.num_sites, space.num_values, default_float()
    values = space.values.reshape(k, -1).astype(dtype)
    start = np.repeat(values[:1], d, axis=0).ravel() if found.potential else np.zeros(space.size, dtype)
    numbers = _derivatives(found, params, start)
    if is_concrete(numbers):  # few numbers: numpy needs no compiling
        numbers = tuple(np.asarray(x) for x in numbers)
    value, slope, rows, each = numbers
    entries, on_site = pattern.split(rows)
    if not found.potential:
        linear = (slope.reshape(d, 1, -1) * values).sum(-1)
        bent = ((on_site[:, None] * values[:, None, :]).sum(-1) * values).sum(-1)
        return linear + 0.5 * bent, entries, value
    pull = pattern.times(entries, start)
    potentials = each.reshape(d, k) - value - (pull.reshape(d, 1, -1) * values).sum(-1)
    return potentials, entries, value + 0.5 * (start * pull).sum()
