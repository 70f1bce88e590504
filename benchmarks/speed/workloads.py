"""The six targets on which speed is measured, and the samplers as they run there."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import saltus
from saltus import Kernel, Target


def torus_edges(side: int) -> np.ndarray:
    """(2 side², 2) the edges of the square lattice, each once: to be sampled as any graph."""
    site = np.arange(side * side).reshape(side, side)
    return np.concatenate([np.stack([site.ravel(), np.roll(site, -1, axis).ravel()], axis=1) for axis in (0, 1)])


def dense_ising() -> Target:
    """W1 as a log-probability with a dense matrix: f(x) = ½ xᵀ(0.2 A)x on the 10x10 torus, and its gradient."""
    edges = torus_edges(10)
    J = np.zeros((100, 100))
    J[edges[:, 0], edges[:, 1]] = J[edges[:, 1], edges[:, 0]] = 0.2

    def log_prob(J: jax.Array, x: jax.Array) -> jax.Array:
        return 0.5 * jnp.dot(x, jnp.dot(J, x))

    return Target(log_prob, saltus.Spin(100), jnp.asarray(J, jnp.float32))


WORKLOADS = {
    "W1": lambda: saltus.targets.ising((10, 10), 0.2),
    "W1 dense": dense_ising,
    "W2": lambda: saltus.targets.ising((30, 30), 0.4),
    "W3": lambda: saltus.targets.polynomial_mixture(2, 20),
    "W4": saltus.targets.sparse_regression,
    "W5": saltus.targets.conv_ebm,
    "W6": lambda: saltus.targets.potts((10, 10), 5, 0.5),
}
CHAINS = {"W5": 50}
STEP_SIZES = {"W1": 2.0, "W1 dense": 2.0, "W2": 1.0, "W3": 0.06, "W4": 0.4, "W5": 0.2, "W6": 1.0}


def num_chains(name: str) -> int:
    return CHAINS.get(name, 100)


def samplers(name: str, target: Target) -> dict[str, Kernel]:
    """Speed does not depend on how well these are tuned; a covariance-like dense Σ for PAVG."""
    eps = STEP_SIZES[name]
    n = target.space.size
    sigma = 0.1 * np.eye(n) + 0.1 / n
    return {"NCG": saltus.NCG(eps), "GWG": saltus.GWG(), "AVG": saltus.AVG(eps), "PAVG": saltus.PAVG(eps, sigma)}
