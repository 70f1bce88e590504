"""Small targets that leave a sampler nowhere to hide."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..spaces import Space
from ..structure import Quadratic
from ..target import Target


def rugged(space: Space, seed: int = 0, differences: str = "gradient") -> Target:
    """Quadratic + cubic + sine terms, of order one, with mass at the boundaries: without rejections no ratio is tested."""
    rng = np.random.default_rng(seed)
    n = space.size
    params = {
        "scale": 1 / np.abs(space.values).max(),
        "b": rng.normal(size=n) * 0.5,
        "A": _symmetric(rng, n),
        "c": rng.normal(size=n) * 0.6,
        "w": rng.normal(size=(3, n)),
    }

    def log_prob(params: dict, s: jax.Array) -> jax.Array:
        r = s.ravel() * params["scale"]
        square = 0.5 * jnp.sum(r * jnp.matmul(params["A"], r, precision="highest"))
        cubic = jnp.sum(params["c"] * r * jnp.roll(r, 1) * jnp.roll(r, 2))
        return jnp.sum(params["b"] * r) + square + cubic + jnp.sum(jnp.sin(3 * jnp.matmul(params["w"], r, precision="highest")))

    return Target(log_prob, space, jax.tree.map(jnp.asarray, params), differences=differences)


def quadratic(space: Space, seed: int = 0, differences: str = "gradient") -> Target:
    """f(s) = b·s + ½ sᵀHs with an indefinite H that has an on-site part, declared as `saltus.Quadratic`."""
    rng = np.random.default_rng(seed)
    scale = np.abs(space.values).max()
    params = {"b": jnp.asarray(rng.normal(size=space.size) / scale), "H": jnp.asarray(_symmetric(rng, space.size) / scale**2)}

    def log_prob(params: dict, s: jax.Array) -> jax.Array:
        r = s.ravel()
        return jnp.sum(r * (params["b"] + 0.5 * jnp.matmul(params["H"], r, precision="highest")))

    return Target(log_prob, space, params, differences=differences, structure=lambda p: Quadratic(p["b"], p["H"]))


def _symmetric(rng: np.random.Generator, n: int) -> np.ndarray:
    A = rng.normal(size=(n, n))
    return (A + A.T) / 2
