"""The fully connected Ising model, or Boltzmann machine without hidden units."""

from __future__ import annotations

import functools
import warnings
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


def boltzmann(space: Any, coupling: Any = None, field: Any = 0.0, *, seed: int = 0) -> Target:
    r"""f = sum over pairs, each once, of J_ij x_i x_j + h·x with x in {-1, +1} and J = ½(G + Gᵀ) without its diagonal.

    The convention is that of `saltus.targets.ising`.
    space: any of two numbers, which become -1 and +1: `saltus.Spin(d)` or `saltus.Binary(d)`.
    coupling: G (d, d), free; unless given, 0.01 N(0, 1) drawn from `seed`. field: h, a number or (d,).
    seed: of the first couplings.
    Returns a Target with params {"coupling": G, "field": h}. Differences are exact and cost nothing beside f. BlockGibbs
    applies: the factor of H follows the params. TrainingError where something does not fit.
    """
    return _model(space, coupling, field, seed, 1.0)


def ising(space: Any, coupling: Any = None, field: Any = 0.0, *, seed: int = 0) -> Target:
    r"""f = xᵀJx + h·x with x in {-1, +1} and J = ½(G + Gᵀ) without its diagonal: no ½, so a pair interacts by 2 J_ij.

    Deprecated: `boltzmann(space, 2 * coupling, field)` is the same model, in the convention of `saltus.targets.ising`, by which
    each pair counts once. This one stays for models that were trained with it, and for the paper's step sizes and penalties.
    Arguments and params: as in `boltzmann`.

    seed: of the first G where `coupling` is not given.
    """
    warnings.warn(
        "training.models.ising counts every pair twice, f = x'Jx + h'x. Type training.models.boltzmann(space, 2 * coupling, "
        "field), which counts each pair once, as saltus.targets.ising does",
        DeprecationWarning,
        stacklevel=2,
    )
    return _model(space, coupling, field, seed, 2.0)


def _model(space: Any, coupling: Any, field: Any, seed: int, times: float) -> Target:
    d = two_valued(space).num_sites
    coupling = 0.01 * np.random.default_rng(seed).normal(size=(d, d)) if coupling is None else coupling
    coupling, field = as_float(coupling, "coupling", TrainingError), as_float(field, "field", TrainingError)
    if coupling.shape != (d, d) or field.shape not in ((), (d,)):
        raise TrainingError(
            "`coupling` or `field` does not fit the space.",
            expected=f"coupling of shape ({d}, {d}), field a number or of shape ({d},)",
            found=f"shapes {coupling.shape} and {field.shape}",
        )
    log_prob, differences, structure = _functions(space, times)
    params = {"coupling": coupling, "field": jnp.broadcast_to(field, (d,))}
    exact = Differences(differences, exact=True)
    return Target(log_prob, space, params, differences=exact, structure=structure, verify=False)  # proved by the tests


def couplings(coupling: Any) -> jax.Array:
    """J: the symmetric part of G, its diagonal (a constant on spins) left out.

    coupling: G, (d, d).
    """
    J = (coupling + coupling.T) / 2
    return J - jnp.diag(jnp.diagonal(J))


def two_valued(space: Any) -> Space:
    """The space, whose values are two numbers; TrainingError otherwise."""
    if not (isinstance(space, Space) and space.numeric and space.num_values == 2):
        raise TrainingError("This model needs two values.", expected="saltus.Spin(d) or saltus.Binary(d)", found=repr(space))
    return space


@functools.lru_cache(maxsize=16)
def _functions(space: Space, times: float) -> tuple[Callable, Callable, Callable]:
    """log_prob, differences and structure: the same objects for the same space, so that nothing recompiles. times: J of a pair."""
    slope, centre = float(2 / np.ptp(space.values)), float(space.values.mean())  # x = slope (s - centre)

    def pull(params: dict, s: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = slope * (s - centre)
        return x, jnp.matmul(times * couplings(params["coupling"]), x)

    def ising(params: dict, s: jax.Array) -> jax.Array:
        x, h = pull(params, s)
        return jnp.sum(x * (0.5 * h + params["field"]))

    def differences(params: dict, s: jax.Array, codes: jax.Array) -> jax.Array:
        return 2 * (pull(params, s)[1] + params["field"])  # f at +1 less f at -1

    def structure(params: dict) -> Quadratic:
        J, h = times * slope**2 * couplings(params["coupling"]), slope * params["field"]
        ones = centre * jnp.sum(J, axis=1)
        return Quadratic(h - ones, J, constant=centre * (jnp.sum(ones) / 2 - jnp.sum(h)))

    return ising, differences, structure
