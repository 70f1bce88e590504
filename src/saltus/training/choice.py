"""Which sampler training uses, and where its settings begin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import TrainingError
from ..kernels import AVG, NCG, PAVG, Kernel
from ..run.settings import check_kernel_fits, find_sampler
from ..spaces import Space
from ..target import Target


def read_kernel(sampler: Any, target: Target, data: np.ndarray) -> tuple[Kernel, bool]:
    """(kernel, whether it should be retuned): an instance as it is; a class, a name or "auto" at the paper's settings."""
    if isinstance(sampler, Kernel):
        kernel: Any = sampler
    else:
        auto = isinstance(sampler, str) and sampler.lower() == "auto"
        kernel = _paper_kernel(NCG if auto else find_sampler(sampler), target.space, data)
    check_kernel_fits(kernel, target)
    return kernel, not isinstance(sampler, Kernel)


def _paper_kernel(kind: Any, space: Space, data: np.ndarray) -> Kernel:
    """At the step sizes of the paper's Ising experiment, in units of the space; PAVG with the covariance of the data."""
    table = space.distance_table()
    unit = float(table[table > 0].min())
    if issubclass(kind, PAVG):
        return kind(0.2 * unit, data_covariance(space, space.show(data)), scale=unit**-2)
    steps = {NCG: 0.5, AVG: 0.2}
    if kind in steps:
        return kind(steps[kind] * unit)
    try:
        return kind()
    except TypeError as cause:
        raise TrainingError(
            f"{kind.__name__} has settings that training cannot choose.",
            expected=f"an instance: saltus.{kind.__name__}(...)",
            found=f"the class {kind.__name__}",
        ) from cause


def data_covariance(space: Space, data: Any) -> np.ndarray:
    """(n, n) covariance of states as f sees them: PAVG's preconditioner in the paper's training experiments.

    Its scale is 1 on {0, 1}; in general the inverse square of the squared distance between neighbouring values.
    """
    codes = space.encode(data, "data")
    s = np.asarray(space.values, np.float64)[codes].reshape(len(codes), -1)
    return np.cov(s.T, bias=True).reshape(space.size, space.size)
