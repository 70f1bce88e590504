r"""A log_prob as a sum of terms, each of a few sites: exact differences at the price of a few evaluations.

Where f(s) = sum_t F_t(s) and no term sees two sites of one colour, all sites of a colour may change at once, and each term tells
what its own site did:

$$ D_i(v) = \sum_{t \ni i} F_t(s \text{ with every site of the colour of } i \text{ at } v) + \text{const}_i $$

so that C colours and k values take C k evaluations, not d (k - 1). The terms are the arrays that log_prob sums at its end, found
in its jaxpr; which sites each element sees is read as in `reading`.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal, jaxpr_as_fun

from ..spaces import Space
from .colouring import quick_colours
from .reading.constants import UNKNOWN
from .reading.dependence import Dependence, TooLarge, distinct
from .reading.reader import Nothing, Reader, as_value

_MOST_PAIRS = 4_000_000
_PRECISE = ("float32", "float64")
_ADD, _SAME = ("add", "sub", "add_any"), ("convert_element_type", "reshape", "squeeze", "transpose", "copy", "neg", "reduce_sum")
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr"}
_CALLS |= {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "custom_vjp_call_jaxpr": "fun_jaxpr"}


@dataclass(frozen=True, eq=False)
class Terms:
    """`differences` of a target whose log_prob is such a sum: call it with (params, s, codes) for the (d, k) table.

    Two are equal where log_prob, space and the shapes of params are, so that nothing recompiles.
    """

    log_prob: Any
    space: Space
    shapes: Any
    terms: Any  # closed jaxpr: leaves of params, then of s -> arrays of terms
    signs: tuple[float, ...]
    colours: np.ndarray  # (d,)
    of_site: np.ndarray  # (d, m) the terms of each site, padded with their number

    @property
    def num_colours(self) -> int:
        return int(self.colours.max()) + 1

    @property
    def evaluations(self) -> int:
        """Of log_prob, for one table."""
        return self.num_colours * self.space.num_values

    def __call__(self, params: Any, s: Any, codes: jax.Array) -> jax.Array:
        colours, last = jnp.asarray(self.colours), jnp.asarray(self.space.num_values_per_site - 1, codes.dtype)
        k = self.space.num_values

        def row(index: jax.Array) -> jax.Array:
            """(T,) the terms with all sites of one colour at one value."""
            value = jnp.minimum((index % k).astype(codes.dtype), last)
            return self._terms(params, jnp.where(colours == index // k, value, codes))

        every = jnp.arange(self.num_colours * k, dtype=jnp.int32)
        each = jax.vmap(row)(every).reshape(self.num_colours, k, -1)
        each = jnp.concatenate([each, jnp.zeros((*each.shape[:2], 1), each.dtype)], axis=2)
        own = (
            each[colours[:, None], :, jnp.asarray(self.of_site)]
            if self.num_colours > 1
            else jnp.moveaxis(each[0][:, jnp.asarray(self.of_site)], 0, -1)
        )
        return jnp.sum(own, axis=1)

    def _terms(self, params: Any, codes: jax.Array) -> jax.Array:
        leaves = jax.tree.leaves(params) + jax.tree.leaves(self.space.embed(codes))
        arrays = jaxpr_as_fun(self.terms)(*leaves)
        return jnp.concatenate([sign * jnp.ravel(x) for sign, x in zip(self.signs, arrays, strict=True)])

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Terms) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple:
        return self.log_prob, self.space, self.shapes


def find_terms(log_prob: Any, space: Space, params: Any) -> Terms | None:
    """log_prob(params, s) as a sum of terms; None where that saves nothing, or cannot be seen."""
    abstract = jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)), params)
    shapes = (str(jax.tree.structure(abstract)), tuple((x.shape, str(x.dtype)) for x in jax.tree.leaves(abstract)))
    closed = jax.make_jaxpr(log_prob)(abstract, space.abstract())
    inlined = jax.make_jaxpr(functools.partial(_inlined, closed.jaxpr, closed.consts))(*closed.in_avals)
    leaves, signs = _summands(inlined.jaxpr)
    outputs = inlined.replace(jaxpr=inlined.jaxpr.replace(outvars=leaves, debug_info=inlined.jaxpr.debug_info.with_unknown_names()))
    sites = _sites_of_terms(outputs, space)
    if sites is None:
        return None
    owner, site = sites
    colours = _colours(owner, site, space.num_sites)
    num_terms = sum(math.prod(v.aval.shape) for v in leaves)
    if colours is None or (int(colours.max()) + 1) * space.num_values > space.num_sites * (space.num_values - 1) // 2 + 2:
        return None
    of_site = _padded(owner, site, space.num_sites, num_terms)
    return None if of_site is None else Terms(log_prob, space, shapes, outputs, tuple(signs), colours, of_site)


def _inlined(jaxpr: Any, consts: Any, *args: Any) -> Any:
    """The jaxpr with calls written out: only their values matter here."""
    known: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))
    value = lambda atom: atom.val if isinstance(atom, Literal) else known[atom]  # noqa: E731
    for eqn in jaxpr.eqns:
        inputs = [value(atom) for atom in eqn.invars]
        inner = eqn.params.get(_CALLS.get(eqn.primitive.name, ""))
        if inner is not None:
            closed = hasattr(inner, "consts")
            out = _inlined(inner.jaxpr if closed else inner, inner.consts if closed else (), *inputs)
        else:
            bound = eqn.primitive.bind(*inputs, **eqn.params)
            out = bound if eqn.primitive.multiple_results else [bound]
        known.update(zip(eqn.outvars, out, strict=True))
    return [value(atom) for atom in jaxpr.outvars]


def _summands(jaxpr: Any) -> tuple[list[Any], list[float]]:
    """(variables whose elements, times their signs, sum to the output; the signs)."""
    made = {out: eqn for eqn in jaxpr.eqns for out in eqn.outvars}
    todo, leaves = [(jaxpr.outvars[0], 1.0)], []
    while todo:
        variable, sign = todo.pop()
        if isinstance(variable, Literal):
            continue  # a constant says nothing of any site
        eqn = made.get(variable)
        name = eqn.primitive.name if eqn and str(variable.aval.dtype) in _PRECISE else ""  # sums of others round, or wrap round
        whole = eqn is not None and all(
            isinstance(a, Literal) or math.prod(a.aval.shape) == math.prod(variable.aval.shape) for a in eqn.invars
        )
        if eqn is not None and name in _ADD and whole:
            signs = [sign, -sign if name == "sub" else sign]
            todo += list(zip(eqn.invars, signs, strict=True))
        elif eqn is not None and name in _SAME and _no_wider(eqn.invars[0], variable):
            todo.append((eqn.invars[0], -sign if name == "neg" else sign))
        elif eqn is not None and name == "broadcast_in_dim" and whole:
            todo.append((eqn.invars[0], sign))
        elif eqn is not None and name == "mul" and any(isinstance(a, Literal) for a in eqn.invars):
            number, other = sorted(eqn.invars, key=lambda a: not isinstance(a, Literal))
            todo.append((other, sign * float(number.val)))
        elif eqn is not None and name == "div" and isinstance(eqn.invars[1], Literal):
            todo.append((eqn.invars[0], sign / float(eqn.invars[1].val)))
        else:
            leaves.append((variable, sign))
    together: dict[Any, float] = {}
    for variable, sign in leaves:
        together[variable] = together.get(variable, 0.0) + sign
    return list(together), list(together.values())


def _no_wider(before: Any, after: Any) -> bool:
    """Whether a float is kept as it is, digit by digit."""
    return jnp.issubdtype(before.aval.dtype, jnp.floating) and before.aval.dtype.itemsize <= after.aval.dtype.itemsize


def _sites_of_terms(closed: Any, space: Space) -> tuple[np.ndarray, np.ndarray] | None:
    """(term, site) for every site that a term may depend on."""
    entries = jax.tree.leaves(space.unravel(jnp.asarray(np.arange(space.size, dtype=np.int32))))
    state: list[Any] = [Dependence(np.shape(e), np.arange(np.size(e) + 1), np.asarray(e).ravel().astype(np.int64)) for e in entries]
    unknown: list[Any] = [UNKNOWN] * (len(closed.jaxpr.invars) - len(state))
    site_of = space.site_of_entries()
    try:
        found = Reader(space.size, site_of).run(closed.jaxpr, [as_value(c) for c in closed.consts], [*unknown, *state])
    except (TooLarge, Nothing):
        return None
    owners, sites, start = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for value, variable in zip(found, closed.jaxpr.outvars, strict=True):
        num = math.prod(variable.aval.shape)
        if isinstance(value, Dependence):
            if value.indptr is None:
                owners.append(np.repeat(start + np.arange(num), len(value.entries)))
                sites.append(np.tile(site_of[value.entries], num))
            else:
                owners.append(start + value.owners())
                sites.append(site_of[value.entries])
        start += num
    if sum(map(len, owners)) > _MOST_PAIRS:
        return None
    keys = distinct(np.concatenate(owners) * space.num_sites + np.concatenate(sites))
    return np.divmod(keys, space.num_sites)


def _colours(owner: np.ndarray, site: np.ndarray, num_sites: int) -> np.ndarray | None:
    """(d,) such that no term has two sites of one colour."""
    counts = np.bincount(owner) if len(owner) else np.zeros(1, int)
    if (counts.astype(np.int64) ** 2).sum() > _MOST_PAIRS:
        return None
    pairs = [np.zeros((0, 2), np.int64)]
    for size in np.unique(counts[counts > 1]):
        rows = site[np.isin(owner, np.flatnonzero(counts == size))].reshape(-1, size)
        pairs += [np.sort(rows[:, [i, j]], axis=1) for i, j in itertools.combinations(range(size), 2)]
    edges = np.unique(np.concatenate(pairs), axis=0)
    return quick_colours(edges, num_sites)


def _padded(owner: np.ndarray, site: np.ndarray, num_sites: int, num_terms: int) -> np.ndarray | None:
    """(d, m) the terms of each site; None where a few sites have so many that the table would be mostly padding."""
    counts = np.bincount(site, minlength=num_sites)
    widest = max(int(counts.max()), 1)
    if widest * num_sites > 16 * (len(site) + num_sites) and widest * num_sites > 2**20:
        return None
    order = np.argsort(site, kind="stable")
    table = np.full((num_sites, widest), num_terms, np.int32)
    within = np.arange(len(site)) - np.repeat(np.cumsum(counts) - counts, counts)
    table[site[order], within] = owner[order]
    return table
