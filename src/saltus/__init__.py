"""saltus: gradient-based sampling of probability distributions over discrete spaces, on JAX."""

import importlib as _importlib
import warnings as _warnings
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

import jax as _jax

from . import random
from .errors import CheckError, KernelError, RunError, SaltusError, SpaceError, StorageError, TargetError, TrainingError
from .kernels import AVG, GWG, NCG, PAVG, BlockGibbs, Gibbs, Info, Informed, Kernel, UniformMH
from .local import Differences
from .preconditioners import Dense, Diagonal, LowRank, Sparse
from .spaces import Binary, Categorical, Clock, Ordinal, Space, Spin
from .structure import Graph, Quadratic
from .target import Point, Target, evaluate

if _TYPE_CHECKING:
    from . import datasets, diagnostics, targets, testing, training
    from .adaptation import race_of, tune
    from .diagnostics.local_model import check
    from .diagnostics.summary import summary
    from .run import kernel_of, resume, sample
    from .run import open_run as open

__version__ = "0.1.0"


_LATER = {
    "check": (".diagnostics.local_model", "check"),
    "kernel_of": (".run", "kernel_of"),
    "open": (".run", "open_run"),
    "race_of": (".adaptation", "race_of"),
    "resume": (".run", "resume"),
    "sample": (".run", "sample"),
    "summary": (".diagnostics.summary", "summary"),
    "tune": (".adaptation", "tune"),
}


def __getattr__(name: str) -> _Any:
    """Import what a first `import saltus` should not wait for when it is first used."""
    if name in ("datasets", "diagnostics", "targets", "testing", "training"):
        return _importlib.import_module(f"{__name__}.{name}")
    if name in _LATER:
        module, attribute = _LATER[name]
        return getattr(_importlib.import_module(module, __name__), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if _jax.__version__.startswith("0.10."):
    _warnings.warn(
        f"jax {_jax.__version__} can deadlock on batched linear algebra on CPU; saltus excludes 0.10.*: "
        "install jax >= 0.11, or 0.9.2 on Python 3.11",
        stacklevel=2,
    )

__all__ = [
    "AVG",
    "GWG",
    "NCG",
    "PAVG",
    "Binary",
    "BlockGibbs",
    "Categorical",
    "CheckError",
    "Clock",
    "Dense",
    "Diagonal",
    "Differences",
    "Gibbs",
    "Graph",
    "Info",
    "Informed",
    "Kernel",
    "KernelError",
    "LowRank",
    "Ordinal",
    "Point",
    "Quadratic",
    "RunError",
    "SaltusError",
    "Space",
    "SpaceError",
    "Sparse",
    "Spin",
    "StorageError",
    "Target",
    "TargetError",
    "TrainingError",
    "UniformMH",
    "check",
    "datasets",
    "diagnostics",
    "evaluate",
    "kernel_of",
    "open",
    "race_of",
    "random",
    "resume",
    "sample",
    "summary",
    "targets",
    "testing",
    "training",
    "tune",
]
