"""Mixtures of fifty bumps along the diagonal of an ordinal grid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import scipy  # its parts are imported when first used

from .._record import as_size, default_float
from ..errors import TargetError
from ..spaces import Ordinal
from ..target import Target

_GRID = np.linspace(-1.5, 3.0, 50)
_COMPONENTS = 50
# g(t), highest power first, and how far the last component is shifted.
_POLYNOMIALS = {2: ([-6.0, -2.0, 0.0], 2.0), 4: ([-2.0, -2.0, 2.0, -2.0, 0.0], 3.0)}


def polynomial_mixture(order: int = 2, num_sites: int = 20) -> Target:
    r"""A mixture of K = 50 products of polynomial bumps on 50 grid points from -1.5 to 3.

    $$ f(s) = \log \frac1K \sum_k \prod_i p_k(s_i), \qquad p_k(v) = e^{g(v - m_k)} / \sum_{v'} e^{g(v' - m_k)} $$

    order 2: g(t) = -2t - 6t^2, m_k from 0 to 2. order 4: g(t) = 2(-t + t^2 - t^3 - t^4), m_k from 0 to 3.
    Every factor is normalised on the grid, and so is f. This follows the authors' code: the printed shifts have the
    wrong sign and the printed order 4 is half as wide (docs/deviations.md). `truth` is a `MixtureTruth`.

    num_sites: dimension of s.
    """
    if not isinstance(order, (int, np.integer)) or order not in _POLYNOMIALS:
        raise TargetError("No such mixture.", expected="order 2 or 4", found=f"order {order!r}")
    num_sites = as_size(num_sites, "num_sites", TargetError)
    polynomial, last = _POLYNOMIALS[order]
    shifts = last * np.arange(_COMPONENTS) / (_COMPONENTS - 1)
    scores = np.polyval(polynomial, _GRID - shifts[:, None])
    log_z = scipy.special.logsumexp(scores, axis=1)
    derivatives = [np.polyder(polynomial, j) / math.factorial(j) for j in range(order + 1)]
    constants = {
        "shifts": shifts,
        "offsets": num_sites * log_z + math.log(_COMPONENTS),
        "taylor": [np.pad(row, (order + 1 - len(row), 0)) for row in derivatives],
    }
    params = {name: jnp.asarray(value, default_float()) for name, value in constants.items()}
    truth = _truth(np.exp(scores - log_z[:, None]), num_sites)
    return Target(log_prob, Ordinal(num_sites, _GRID), params, initial=np.full(num_sites, 11), truth=truth, structure=None)


def log_prob(params: dict, s: jax.Array) -> jax.Array:
    r"""f(s), through the mean and the central moments of s: Σ_i g(s_i - m) = Σ_j g^(j)(mean - m)/j! Σ_i (s_i - mean)^j.

    One polynomial in m for all components, instead of num_sites x 50 of them, and nothing large cancels.
    """
    mean = jnp.mean(s)
    moments = jnp.stack([jnp.sum((s - mean) ** j) for j in range(params["taylor"].shape[0])])
    polynomial = jnp.matmul(moments, params["taylor"], precision="highest")
    return jax.nn.logsumexp(jnp.polyval(polynomial, mean - params["shifts"]) - params["offsets"])


@dataclass(frozen=True)
class MixtureTruth:
    """Everything about the mixture: moments, marginals, and independent draws."""

    mean: np.ndarray  # (d,)
    covariance: np.ndarray  # (d, d)
    marginals: np.ndarray  # (d, k)
    components: np.ndarray  # (K, k), the p_k
    log_normaliser: float = 0.0

    def sample(self, key: jax.Array, num: int) -> jax.Array:
        """Codes (num, d) of independent draws: a component each, then every site from it by its inverse CDF."""
        key_component, key_site = jax.random.split(key)
        which = jax.random.randint(key_component, (num,), 0, len(self.components))
        edges = jnp.asarray(np.cumsum(self.components, axis=1)[:, :-1], default_float())
        uniforms = jax.random.uniform(key_site, (num, len(self.mean)))
        return jax.vmap(lambda k, u: jnp.searchsorted(edges[k], u, side="right"))(which, uniforms).astype(jnp.int32)


def _truth(components: np.ndarray, num_sites: int) -> MixtureTruth:
    means = components @ _GRID
    variances = components @ _GRID**2 - means**2
    covariance = np.full((num_sites, num_sites), means.var()) + variances.mean() * np.eye(num_sites)
    marginals = np.tile(components.mean(axis=0), (num_sites, 1))
    return MixtureTruth(np.full(num_sites, means.mean()), covariance, marginals, components)
