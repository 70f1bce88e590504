"""The restricted Boltzmann machine, its hidden units summed out."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._record import as_size, default_float
from ...errors import TrainingError
from ...target import Target
from .ising import two_valued


def rbm(space: Any, num_hidden: int, *, data: Any = None, seed: int = 0) -> Target:
    r"""f(v) = b·v + Σ_j log(1 + exp(c_j + (vᵀW)_j)): minus the free energy of the visible units.

    space: `saltus.Binary(d)`, or `saltus.Spin(d)`. params: {"weights": W (d, h), "visible": b (d,), "hidden": c (h,)}; W
    starts at 0.01 N(0, 1), c at 0, and b at 0 or, where `data` are given, where independent sites fit them.
    """
    h = as_size(num_hidden, "num_hidden", TrainingError)
    rng, d, dtype = np.random.default_rng(seed), two_valued(space).num_sites, default_float()
    visible = np.zeros(d) if data is None else log_odds(space, data) / np.ptp(space.values)
    params = {
        "weights": jnp.asarray(0.01 * rng.normal(size=(d, h)), dtype),
        "visible": jnp.asarray(visible, dtype),
        "hidden": jnp.zeros(h, dtype),
    }
    return Target(free_energy, space, params, structure=None)


def free_energy(params: dict, v: jax.Array) -> jax.Array:
    """Minus the free energy of visible units v."""
    inputs = params["hidden"] + jnp.matmul(v, params["weights"])
    return jnp.sum(v * params["visible"]) + jnp.sum(jax.nn.softplus(inputs))


def log_odds(space: Any, data: Any) -> np.ndarray:
    """(d,) log of how often a site has its second value over how often its first; half a count is added to both."""
    codes = space.encode(data, "data")
    ones = codes.sum(axis=0)
    return np.log(ones + 0.5) - np.log(len(codes) - ones + 0.5)
