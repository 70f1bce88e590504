"""The Ising model on a lattice or any graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from .._fusion import total
from ..local import ClosedForm
from ..spaces import Spin
from ..structure import Quadratic
from ..target import Target
from .checkerboard import pulled
from .interaction import interaction, site_field
from .sites import KEPT


def ising(shape_or_graph: Any, coupling: Any = None, field: Any = 0.0, *, periodic: Any = True) -> Target:
    r"""f(x) = sum over edges, each once, of J_ij x_i x_j + sum_i h_i x_i, x in {-1, +1}.

    shape_or_graph: who interacts.
        a tuple of sides: a square or cubic lattice, e.g. (10, 10) or (8, 8, 8);
        `saltus.targets.triangular(shape)`;
        a `saltus.Graph`, or a graph of networkx with any labels, whose edges may have a `weight`;
        a matrix J (d, d), dense or scipy's sparse, symmetric or triangular: J_ij is the coupling of the pair, counted once;
        a list of edges (i, j) or (i, j, J), with sites 0, 1, ... or any labels.
    coupling: J, a number; one per axis of a lattice; one per bond, in the order of `saltus.targets.lattice(shape).edges` or as an
        array (axes, *shape) of the bonds from each site on along each axis; one per edge of a graph. Negative: antiferromagnetic.
        Where edges have weights: None, or a number that multiplies them, or the name of another attribute. The paper's is 0.4.
    field: h, a number, one per site, or an array of the lattice's shape.
    periodic: of a lattice: True, False (open sides), or one of them for each axis.
    Self-loops are left out, duplicate edges merged, with a warning. TargetError where something does not fit.
    Differences are exact and free, D_i(v) = (v - x_i) (sum_j J_ij x_j + h_i); BlockGibbs and coloured Gibbs apply.
    """
    told = interaction(shape_or_graph, coupling, periodic, full=True)
    params = {"coupling": told.coupling, "field": site_field(field, told.sites)}
    log_prob, exact, structure = _functions(told.sites)
    space = Spin(told.sites.num_sites)  # what follows is proved by the tests
    return Target(log_prob, space, params, differences=exact, structure=structure, names=told.names, verify=False)


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
        return sites.structures(Quadratic(params["field"], sites.matrix(params["coupling"])))

    halves = sites.halves(_spins, _field, _packed)
    return log_prob, ClosedForm(differences, exact=True, both=both, table=table, halves=halves), structure


def _spins(codes: jax.Array) -> jax.Array:
    return 2 * codes - 1


def _packed(pull: jax.Array) -> jax.Array:
    return 2 * pull


def _field(params: dict) -> jax.Array:
    return params["field"]
