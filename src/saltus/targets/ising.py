"""The Ising model on a lattice or any graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from .._fusion import total
from .._record import as_float
from ..errors import TargetError
from ..local import ClosedForm
from ..spaces import Spin
from ..structure import Quadratic
from ..target import Target
from .checkerboard import pulled
from .interaction import KEPT, coupling_matrix, interaction


def ising(shape_or_graph: Any, coupling: Any, field: Any = 0.0) -> Target:
    r"""f(x) = sum over edges, each once, of J_ij x_i x_j + sum_i h_i x_i, x in {-1, +1}.

    shape_or_graph: sides of a periodic lattice, e.g. (10, 10), a `saltus.Graph`, or an (m, 2) array of edges.
    coupling: J, a number, one per axis of a lattice, or one per edge of a graph. The paper's model is 0.4 on (10, 10).
    field: h, a number or one per site.
    Differences are exact and free, D_i(v) = (v - x_i) (sum_j J_ij x_j + h_i); BlockGibbs and coloured Gibbs apply.
    """
    sites = interaction(shape_or_graph)
    coupling = as_float(coupling, "coupling", TargetError)
    sites.check(coupling)
    field = as_float(field, "field", TargetError)
    if field.shape not in ((), (sites.num_sites,)):
        raise TargetError(
            "`field` does not fit.", expected=f"a number, or shape ({sites.num_sites},)", found=f"shape {field.shape}"
        )
    log_prob, exact, structure = _functions(sites)
    params = {"coupling": coupling, "field": field}
    space = Spin(sites.num_sites)
    return Target(log_prob, space, params, differences=exact, structure=structure, verify=False)  # proved by the tests


@functools.lru_cache(maxsize=KEPT)
def _functions(sites: Any) -> tuple[Callable, ClosedForm, Callable]:
    """log_prob, differences and structure: the same objects for the same sites, so that nothing recompiles."""
    space = Spin(sites.num_sites)

    def log_prob(params: dict, x: jax.Array) -> jax.Array:
        return total(x * (0.5 * sites.pull(params["coupling"], x) + params["field"]))

    def differences(params: dict, x: jax.Array, codes: jax.Array) -> jax.Array:
        return 2 * (sites.pull(params["coupling"], x) + params["field"])

    def both(params: dict, codes: jax.Array) -> tuple[jax.Array, jax.Array]:
        near, x = sites.near(params["coupling"], _spins(codes)), space.embed(codes)
        return total(x * (0.5 * pulled(params["coupling"], near) + params["field"])), near

    def table(params: dict, near: jax.Array) -> jax.Array:
        return _packed(pulled(params["coupling"], near) + params["field"])

    def structure(params: dict) -> tuple:
        return Quadratic(params["field"], coupling_matrix(sites, params["coupling"])), sites.graph

    halves = sites.halves(_spins, _field, _packed)
    return log_prob, ClosedForm(differences, exact=True, both=both, table=table, halves=halves), structure


def _spins(codes: jax.Array) -> jax.Array:
    return 2 * codes - 1


def _packed(pull: jax.Array) -> jax.Array:
    return 2 * pull


def _field(params: dict) -> jax.Array:
    return params["field"]
