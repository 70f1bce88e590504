"""The Edwards-Anderson spin glass."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._record import as_choice, as_real, as_size
from ..errors import TargetError
from ..target import Target
from .bonds import read_shape
from .ising import ising

_DISORDER = {
    "gaussian": lambda rng, size: rng.normal(size=size),
    "bimodal": lambda rng, size: rng.choice([-1.0, 1.0], size=size),
}


def edwards_anderson(
    shape: Any, beta: float = 1.0, *, disorder: str = "gaussian", field: Any = 0.0, periodic: Any = True, seed: int = 0
) -> Target:
    r"""f(x) = β sum over bonds, each once, of J_ij x_i x_j + sum_i h_i x_i, x in {-1, +1}, with random J_ij.

    shape: sides of the lattice, such as (8, 8, 8).
    beta: β, the inverse temperature.
    disorder: "gaussian", J ~ N(0, 1), or "bimodal", J = ±1 with equal probability.
    field: h, as in `ising`; β does not multiply it.
    periodic: as in `ising`.
    seed: draws the J, which are β times smaller than `target.params["coupling"]`: (axes, d), from each site on along each axis.
    """
    draw = _DISORDER[as_choice(disorder, "disorder", tuple(_DISORDER), TargetError)]
    sides = read_shape(shape)
    rng = np.random.default_rng(as_size(seed, "seed", TargetError, least=0))
    J = as_real(beta, "beta", TargetError) * draw(rng, (len(sides), *sides))
    return ising(sides, J, field, periodic=periodic)
