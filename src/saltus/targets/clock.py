"""The clock model: directions on a circle that prefer to agree."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .._fusion import total
from ..local import Differences
from ..spaces import Clock
from ..structure import Quadratic
from ..target import Target
from .interaction import interaction, site_field
from .sites import KEPT


def clock(shape_or_graph: Any, num_states: int, coupling: Any = None, field: Any = 0.0, *, periodic: Any = True) -> Target:
    r"""f(θ) = sum over edges, each once, of J_ij cos(θ_i - θ_j) + sum_i h_i cos θ_i, θ = 2π c / k, c in 0..k-1.

    shape_or_graph, coupling, periodic: as in `ising`.
    num_states: k, at least 3; s is (d, 2), the cosine and sine of every angle. With k large this is the XY model.
    field: h, a number, one per site, or an array of the lattice's shape; it points along θ = 0.
    Differences are exact: D_i(v) = (v - s_i)·(sum_j J_ij s_j + h_i e_x). TargetError where something does not fit.
    """
    told = interaction(shape_or_graph, coupling, periodic)
    space = Clock(told.sites.num_sites, num_states)
    params = {"coupling": told.coupling, "field": site_field(field, told.sites)}
    log_prob, differences, structure = _functions(told.sites, space)
    exact = Differences(differences, exact=True)  # proved by the tests
    return Target(log_prob, space, params, differences=exact, structure=structure, names=told.names, verify=False)


@functools.lru_cache(maxsize=KEPT)
def _functions(sites: Any, space: Clock) -> tuple[Callable, Callable, Callable]:
    """log_prob, differences and structure: the same objects for the same sites and states, so that nothing recompiles."""

    def log_prob(params: dict, s: jax.Array) -> jax.Array:
        each = jnp.sum(s.T * sites.pull(params["coupling"], s.T), axis=0)
        return total(0.5 * each + params["field"] * s[:, 0])

    def differences(params: dict, s: jax.Array, codes: jax.Array) -> jax.Array:
        pull = sites.pull(params["coupling"], s.T).at[0].add(params["field"])
        return jnp.matmul(pull.T, jnp.asarray(space.values, pull.dtype).T, precision="highest")

    def structure(params: dict) -> tuple:
        h = jnp.broadcast_to(params["field"], (space.num_sites,))
        b = jnp.stack([h, jnp.zeros_like(h)], axis=1).ravel()
        return sites.structures(Quadratic(b, sites.matrix(params["coupling"], 2)))

    return log_prob, differences, structure
