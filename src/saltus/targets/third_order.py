"""Three-body terms: pairs and triples of spins."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_array, as_float, as_size, shown
from ..errors import TargetError
from ..local import Differences
from ..spaces import Spin
from ..target import Target
from .interaction import interaction, site_field


def third_order(
    alpha: Any,
    shape: Any = (4, 4),
    coupling: Any = 0.4,
    num_triples: int = 50,
    seed: int = 0,
    *,
    triples: Any = None,
    field: Any = None,
    periodic: Any = True,
) -> Target:
    r"""f(x) = sum over edges, each once, of J x_i x_j + sum over triples of α x_i x_j x_k + sum_i h_i x_i, x in {-1, +1}.

    alpha: α, a number, or one per triple where `triples` are given. At 0 this is `ising(shape, coupling)`.
    shape, coupling, periodic: as in `ising`, any lattice or graph.
    num_triples, seed: so many random triples, the same ones whatever α is; an index may repeat in a triple.
    triples: (n, 3) sites, in place of random ones, such as `saltus.targets.triangular(shape).triangles`.
    field: h, as in `ising`; default none.
    All numbers are params, and so are the triples: another α, by `replace` or by another call, never retraces.
    Differences are exact and free: twice the gradient, since x_i² = 1 leaves f linear in every site.
    """
    told = interaction(shape, coupling, periodic)
    sites = told.sites
    if triples is None:
        size = (as_size(num_triples, "num_triples", TargetError), 3)
        triples = np.random.default_rng(as_size(seed, "seed", TargetError, least=0)).integers(sites.num_sites, size=size)
        each: tuple = ()
    else:
        each = (len(_checked(triples, sites.num_sites)),)
    alpha = as_float(alpha, "alpha", TargetError)
    if alpha.shape not in ((), each):
        expected = "a number" + (f", or one for each of {each[0]} triples" if each else "")
        raise TargetError("`alpha` is not one number.", expected=expected, found=f"shape {alpha.shape}", hint="one target per α")
    params = {
        "alpha": alpha,
        "coupling": sites.weights(told.coupling),
        "edges": sites.graph.incidence.edges,
        "triples": jnp.asarray(triples, jnp.int32),
    }
    params |= {} if field is None else {"field": site_field(field, sites)}
    exact = Differences(differences, exact=True)
    return Target(log_prob, Spin(sites.num_sites), params, differences=exact, structure=None, names=told.names)


def _checked(given: Any, num_sites: int) -> np.ndarray:
    triples = np.asarray(as_array(given, "triples", TargetError, "sites, shape (n, 3)"))
    fits = triples.ndim == 2 and triples.shape[1] == 3 and len(triples) and triples.dtype.kind in "iu"
    if not fits or triples.min() < 0 or triples.max() >= num_sites:
        expected = f"whole numbers of shape (n, 3), sites 0..{num_sites - 1}"
        raise TargetError("`triples` is not usable.", expected=expected, found=shown(given))
    return triples


def log_prob(params: dict, x: jax.Array) -> jax.Array:
    """Multilinear: a site that comes twice in a triple leaves it, as x_i² = 1."""
    pairs = params["coupling"] * jnp.prod(x[params["edges"]], axis=1)
    i, j, k = params["triples"].T
    x_i, x_j, x_k = x[params["triples"]].T
    products = jnp.where(i == j, x_k, jnp.where(j == k, x_i, jnp.where(i == k, x_j, x_i * x_j * x_k)))
    f = jnp.sum(pairs) + (jnp.sum(params["alpha"] * products) if params["alpha"].ndim else params["alpha"] * jnp.sum(products))
    return f + jnp.sum(params["field"] * x) if "field" in params else f


def differences(params: dict, x: jax.Array, codes: jax.Array) -> jax.Array:
    return 2 * jax.grad(log_prob, argnums=1)(params, x)
