"""Small targets that leave a sampler nowhere to hide."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from ..engine.arguments import read_seed, read_space
from ..spaces import Space
from ..structure import Quadratic
from ..target import Target


def rugged(space: Space, seed: int = 0, differences: str = "gradient") -> Target:
    """Quadratic + cubic + sine terms, of order one, with mass at the boundaries: without rejections no ratio is tested.

    space: any space. seed: of the coefficients. differences: the local model, as for `saltus.Target`.
    """
    n, rng = read_space(space).size, np.random.default_rng(read_seed(seed))
    params = {
        "scale": 1 / _largest(space),
        "b": rng.normal(size=n) * 0.5,
        "A": _symmetric(rng, n),
        "c": rng.normal(size=n) * 0.6,
        "w": rng.normal(size=(3, n)),
    }

    return Target(Rugged(space), space, jax.tree.map(jnp.asarray, params), differences=differences, structure=None)


@dataclass(frozen=True)
class Rugged:
    """The log-probability of `rugged`; equal for equal spaces, so that what is compiled for one serves the other."""

    space: Space

    def __call__(self, params: dict, s: jax.Array) -> jax.Array:
        r = self.space.ravel(s) * params["scale"]
        square = 0.5 * jnp.sum(r * jnp.matmul(params["A"], r, precision="highest"))
        cubic = jnp.sum(params["c"] * r * jnp.roll(r, 1) * jnp.roll(r, 2))
        return jnp.sum(params["b"] * r) + square + cubic + jnp.sum(jnp.sin(3 * jnp.matmul(params["w"], r, precision="highest")))


def quadratic(space: Space, seed: int = 0, differences: str = "gradient") -> Target:
    """f(s) = b·s + ½ sᵀHs with an indefinite H that has an on-site part, declared as `saltus.Quadratic`.

    space: any space. seed: of the coefficients. differences: the local model, as for `saltus.Target`.
    """
    return declared_quadratic(space, seed, differences, verify=True)


def declared_quadratic(space: Space, seed: int = 0, differences: str = "gradient", verify: bool = False) -> Target:
    """`quadratic`, its declaration believed where it is not to be verified."""
    rng, scale = np.random.default_rng(read_seed(seed)), _largest(read_space(space))
    params = {"b": jnp.asarray(rng.normal(size=space.size) / scale), "H": jnp.asarray(_symmetric(rng, space.size) / scale**2)}
    return Target(QuadraticForm(space), space, params, differences=differences, structure=_declared, verify=verify)


@dataclass(frozen=True)
class QuadraticForm:
    """The log-probability of `quadratic`; equal for equal spaces."""

    space: Space

    def __call__(self, params: dict, s: jax.Array) -> jax.Array:
        r = self.space.ravel(s)
        return jnp.sum(r * (params["b"] + 0.5 * jnp.matmul(params["H"], r, precision="highest")))


def _declared(params: dict) -> Quadratic:
    return Quadratic(params["b"], params["H"])


def _largest(space: Space) -> float:
    """The largest entry of any s, in size."""
    return max(float(np.abs(piece.space.values).max()) for piece in space.pieces)


def _symmetric(rng: np.random.Generator, n: int) -> np.ndarray:
    A = rng.normal(size=(n, n))
    return (A + A.T) / 2
