"""A small lattice with three-body terms: as far from log-quadratic as a number says."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_float, as_size
from ..errors import TargetError
from ..local import Differences
from ..spaces import Spin
from ..target import Target
from .interaction import interaction


def third_order(alpha: Any, shape: Any = (4, 4), coupling: Any = 0.4, num_triples: int = 50, seed: int = 0) -> Target:
    r"""f(x) = sum over edges, each once, of J x_i x_j + α sum over random triples of x_i x_j x_k, x in {-1, +1}.

    alpha: α, a number. At 0 this is `ising(shape, coupling)`, and PAVG with its couplings is exact.
    shape, coupling: as in `ising`. seed: draws the triples, once and whatever α is; an index may repeat in a triple.
    All numbers are params, and so are the triples: another α, by `replace` or by another call, never retraces.
    Differences are exact and free: twice the gradient, since x_i² = 1 leaves f linear in every site.
    """
    sites = interaction(shape)
    alpha, coupling = as_float(alpha, "alpha", TargetError), as_float(coupling, "coupling", TargetError)
    if alpha.shape != ():
        raise TargetError("`alpha` is not one number.", expected="a number", found=f"shape {alpha.shape}", hint="one target per α")
    sites.check(coupling)
    size = (as_size(num_triples, "num_triples", TargetError), 3)
    triples = np.random.default_rng(as_size(seed, "seed", TargetError, least=0)).integers(sites.num_sites, size=size)
    params = {
        "alpha": alpha,
        "coupling": sites.weights(coupling),
        "edges": sites.graph.incidence.edges,
        "triples": jnp.asarray(triples, jnp.int32),
    }
    return Target(log_prob, Spin(sites.num_sites), params, differences=Differences(differences, exact=True), structure=None)


def log_prob(params: dict, x: jax.Array) -> jax.Array:
    """Multilinear: a site that comes twice in a triple leaves it, as x_i² = 1."""
    pairs = params["coupling"] * jnp.prod(x[params["edges"]], axis=1)
    i, j, k = params["triples"].T
    x_i, x_j, x_k = x[params["triples"]].T
    products = jnp.where(i == j, x_k, jnp.where(j == k, x_i, jnp.where(i == k, x_j, x_i * x_j * x_k)))
    return jnp.sum(pairs) + params["alpha"] * jnp.sum(products)


def differences(params: dict, x: jax.Array, codes: jax.Array) -> jax.Array:
    return 2 * jax.grad(log_prob, argnums=1)(params, x)
