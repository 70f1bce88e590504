"""The pairwise categorical model: fields and couplings for every pair of sites and categories."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._record import default_float
from ...errors import TrainingError
from ...local import Differences
from ...spaces import Space
from ...structure import Quadratic
from ...target import Target


def potts(space: Any, *, seed: int = 0) -> Target:
    r"""f(c) = Σ_{i<j} J_ij(c_i, c_j) + Σ_i h_i(c_i) on `saltus.Categorical(d, k)`.

    params: {"coupling": G (dk, dk), "field": h (d, k)}; J = ½(G + Gᵀ) without the blocks that couple a site to itself, and
    G is free and starts at 0.01 N(0, 1). Differences are exact and cost nothing beside f; BlockGibbs applies.

    space: a `saltus.Categorical`. seed: of the first G.
    """
    if not (isinstance(space, Space) and space.one_hot):
        raise TrainingError("A Potts model needs categories.", expected="saltus.Categorical(d, k)", found=repr(space))
    n = space.size
    coupling = jnp.asarray(0.01 * np.random.default_rng(seed).normal(size=(n, n)), default_float())
    log_prob, differences, structure = _functions(space)
    params = {"coupling": coupling, "field": jnp.zeros(space.shape, default_float())}
    exact = Differences(differences, exact=True)
    return Target(log_prob, space, params, differences=exact, structure=structure, verify=False)  # proved by the tests


@functools.lru_cache(maxsize=16)
def _functions(space: Space) -> tuple[Callable, Callable, Callable]:
    """log_prob, differences and structure: the same objects for the same space, so that nothing recompiles."""
    d, k = space.shape
    between = np.kron(1 - np.eye(d), np.ones((k, k)))

    def matrix(params: dict) -> jax.Array:
        return jnp.asarray(between, default_float()) * (params["coupling"] + params["coupling"].T) / 2

    def pull(params: dict, s: jax.Array) -> jax.Array:
        return jnp.matmul(matrix(params), s.ravel()).reshape(d, k)

    def potts(params: dict, s: jax.Array) -> jax.Array:
        return jnp.sum(s * (0.5 * pull(params, s) + params["field"]))

    def differences(params: dict, s: jax.Array, codes: jax.Array) -> jax.Array:
        return pull(params, s) + params["field"]

    def structure(params: dict) -> Quadratic:
        return Quadratic(params["field"].ravel(), matrix(params))

    return potts, differences, structure
