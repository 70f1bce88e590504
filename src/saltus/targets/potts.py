"""The Potts model on a lattice or any graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .._fusion import stored, total
from ..local import ClosedForm
from ..moves import over_values
from ..spaces import Categorical
from ..structure import Quadratic
from ..target import Target
from .checkerboard import pulled
from .interaction import interaction, site_field
from .sites import KEPT


def potts(shape_or_graph: Any, num_states: int, coupling: Any = None, field: Any = 0.0, *, periodic: Any = True) -> Target:
    r"""f(s) = sum over edges, each once, of J_ij [c_i = c_j] + sum_i h_i(c_i); s is one-hot.

    shape_or_graph, coupling, periodic: as in `ising`.
    num_states: k, at least 2.
    field: h, a number, one per state (k,), or one per site and state, as (d, k) or (*shape, k).
    Differences are exact and free: D_i(v) = sum_j J_ij [c_j = v] + h_i(v), up to its value at the current state.
    """
    told = interaction(shape_or_graph, coupling, periodic)
    space = Categorical(told.sites.num_sites, num_states)
    params = {"coupling": told.coupling, "field": site_field(field, told.sites, (space.num_values,))}
    log_prob, exact, structure = _functions(told.sites, space)  # proved by the tests
    return Target(log_prob, space, params, differences=exact, structure=structure, names=told.names, verify=False)


@functools.lru_cache(maxsize=KEPT)
def _functions(sites: Any, space: Categorical) -> tuple[Callable, ClosedForm, Callable]:
    """log_prob, differences and structure: the same objects for the same sites and states, so that nothing recompiles."""
    num_states = space.num_values

    def log_prob(params: dict, s: jax.Array) -> jax.Array:
        return total(over_values(jnp.add, s.T * (0.5 * sites.pull(params["coupling"], s.T) + _per_state(params["field"]))))

    def differences(params: dict, s: jax.Array, codes: jax.Array) -> jax.Array:
        return (sites.pull(params["coupling"], s.T) + _per_state(params["field"])).T

    def one_hot(codes: jax.Array) -> jax.Array:
        return (codes == jnp.arange(num_states, dtype=codes.dtype)[:, None]).astype(jnp.int8)

    def both(params: dict, codes: jax.Array) -> tuple[jax.Array, jax.Array]:
        s, h = one_hot(codes), _per_state(params["field"])
        near = stored(sites.near, params["coupling"], s)
        each = 0.5 * pulled(params["coupling"], near) + h
        return total(over_values(jnp.add, s.astype(each.dtype) * each)), near

    def table(params: dict, near: jax.Array) -> jax.Array:
        return packed(pulled(params["coupling"], near) + _per_state(params["field"]))

    def packed(pull: jax.Array) -> jax.Array:
        return space.form.packed(space, pull.T)

    def structure(params: dict) -> tuple:
        b = jnp.broadcast_to(params["field"], space.shape).ravel()
        return sites.structures(Quadratic(b, sites.matrix(params["coupling"], num_states)))

    halves = sites.halves(one_hot, _field, packed)
    return log_prob, ClosedForm(differences, exact=True, both=both, table=table, halves=halves), structure


def _per_state(field: jax.Array) -> jax.Array:
    """(), (k,) or (d, k) as something that adds to (k, d)."""
    return field[:, None] if field.ndim == 1 else field.T


def _field(params: dict) -> jax.Array:
    return _per_state(params["field"])
