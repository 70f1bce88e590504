"""Which sampler training uses, and where its settings begin."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._record import shown
from ..engine.samplers import AUTO, check_kernel_fits, find_sampler, first_setting
from ..engine.starts import read_states
from ..errors import KernelError, TrainingError
from ..kernels import Gibbs, Kernel, samplers
from ..kernels.pavg import covariance
from ..spaces import Space
from ..target import Target
from .models.hidden import hidden_of


def read_kernel(sampler: Any, target: Target, data: np.ndarray) -> tuple[Kernel, bool]:
    """(kernel, whether it should be retuned): an instance as it is; a class, a name or "auto" where its settings begin.

    "auto" is Gibbs where a model has hidden units, all of one side of which are drawn at once given the other, and else the
    simplest that is guided by a local model. data: (num, d) codes of the observed part.
    """
    given = isinstance(sampler, Kernel)
    kernel: Any = sampler if given else first_setting(_kind(sampler, target), target, None if hidden_of(target) else data)
    check_kernel_fits(kernel, target)
    if kernel.weighted:
        raise KernelError(
            "Training has no use for weights.",
            expected="a sampler whose draws count alike",
            found=repr(kernel),
            hint="the chains of the buffer stand for the model as they are",
        )
    return kernel, not given


def _kind(sampler: Any, target: Target) -> Any:
    if isinstance(sampler, str) and sampler.lower() == AUTO:
        if hidden_of(target):
            return Gibbs
        return next(kind for kind in samplers().values() if kind.uses_local_model)
    return find_sampler(sampler)


def data_covariance(space: Space, data: Any) -> np.ndarray:
    """(n, n) covariance of states as f sees them: PAVG's preconditioner in the paper's training experiments.

    Its scale is 1 on {0, 1}; in general the inverse square of the squared distance between neighbouring values.

    space: that of the data. data: states, one a row, as a person reads them.
    """
    if not isinstance(space, Space):
        raise TrainingError("`space` is not a space.", expected="the space of the target, target.space", found=shown(space))
    return covariance(space, read_states(space, data, "data"))
