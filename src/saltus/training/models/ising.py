"""The fully connected Ising model, or Boltzmann machine without hidden units."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._record import as_float
from ...errors import TrainingError
from ...local import Differences
from ...spaces import Space
from ...structure import Quadratic
from ...target import Target


def ising(space: Any, coupling: Any = None, field: Any = 0.0, *, seed: int = 0) -> Target:
    r"""f = xᵀJx + h·x with x in {-1, +1} and J = ½(G + Gᵀ) without its diagonal: no ½, so a pair interacts by 2 J_ij.

    space: any of two numbers, which become -1 and +1: `saltus.Spin(d)`, or `saltus.Binary(d)` with the paper's step sizes. params:
    {"coupling": G (d, d), "field": h (d,)}; G is free and starts, unless given, at 0.01 N(0, 1) drawn from `seed`.
    Differences are exact and cost nothing beside f. BlockGibbs applies: the factor of H follows the params.
    """
    d = two_valued(space).num_sites
    coupling = 0.01 * np.random.default_rng(seed).normal(size=(d, d)) if coupling is None else coupling
    coupling, field = as_float(coupling, "coupling", TrainingError), as_float(field, "field", TrainingError)
    if coupling.shape != (d, d) or field.shape not in ((), (d,)):
        raise TrainingError(
            "`coupling` or `field` does not fit the space.",
            expected=f"coupling of shape ({d}, {d}), field a number or of shape ({d},)",
            found=f"shapes {coupling.shape} and {field.shape}",
        )
    log_prob, differences, structure = _functions(space)
    params = {"coupling": coupling, "field": jnp.broadcast_to(field, (d,))}
    exact = Differences(differences, exact=True)
    return Target(log_prob, space, params, differences=exact, structure=structure, verify=False)  # proved by the tests


def couplings(coupling: Any) -> jax.Array:
    """J: the symmetric part of G, its diagonal (a constant on spins) left out."""
    J = (coupling + coupling.T) / 2
    return J - jnp.diag(jnp.diagonal(J))


def two_valued(space: Any) -> Space:
    """The space, whose values are two numbers; TrainingError otherwise."""
    if not (isinstance(space, Space) and space.numeric and space.num_values == 2):
        raise TrainingError("This model needs two values.", expected="saltus.Spin(d) or saltus.Binary(d)", found=repr(space))
    return space


@functools.lru_cache(maxsize=16)
def _functions(space: Space) -> tuple[Callable, Callable, Callable]:
    """log_prob, differences and structure: the same objects for the same space, so that nothing recompiles."""
    slope, centre = float(2 / np.ptp(space.values)), float(space.values.mean())  # x = slope (s - centre)

    def pull(params: dict, s: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = slope * (s - centre)
        return x, jnp.matmul(2 * couplings(params["coupling"]), x)

    def ising(params: dict, s: jax.Array) -> jax.Array:
        x, h = pull(params, s)
        return jnp.sum(x * (0.5 * h + params["field"]))

    def differences(params: dict, s: jax.Array, codes: jax.Array) -> jax.Array:
        return 2 * (pull(params, s)[1] + params["field"])  # f at +1 less f at -1

    def structure(params: dict) -> Quadratic:
        J, h = slope**2 * couplings(params["coupling"]), slope * params["field"]
        ones = centre * jnp.sum(J, axis=1)
        return Quadratic(h - 2 * ones, 2 * J, constant=centre * (jnp.sum(ones) - jnp.sum(h)))

    return ising, differences, structure
