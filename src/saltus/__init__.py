"""saltus: gradient-based sampling of probability distributions over discrete spaces, on JAX."""

import importlib as _importlib
import warnings as _warnings
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

import jax as _jax

from . import random
from .errors import (
    CheckError,
    ConvergenceWarning,
    KernelError,
    RunError,
    SaltusError,
    SelectionError,
    SpaceError,
    StorageError,
    TargetError,
    TrainingError,
)
from .kernels import (
    AVG,
    GWG,
    NCG,
    PAS,
    PAVG,
    TGS,
    BlockGibbs,
    Cycle,
    Exchange,
    Gibbs,
    Info,
    Informed,
    JumpProcess,
    Kernel,
    Mixture,
    SwendsenWang,
    Tempered,
    UniformMH,
)
from .local import Differences
from .preconditioners import Dense, Diagonal, LowRank, Sparse
from .spaces import Binary, Categorical, Clock, Ordinal, Product, Space, Spin
from .structure import Graph, Quadratic
from .target import Point, Target, evaluate

if _TYPE_CHECKING:
    from . import bridges, datasets, diagnostics, targets, testing, training
    from .bridges.inference_data import to_inference_data
    from .bridges.mixed import mixed
    from .comparing import compare
    from .evidence import log_likelihood, log_z
    from .optimising import optimise
    from .race import check, race_of
    from .reporting import citation, lattice_observables, observables, plot, report, summary
    from .run.opening import kernel_of
    from .run.opening import open_run as open
    from .run.resuming import resume
    from .run.sample import sample
    from .run.saving import save
    from .run.verify import status, verify
    from .selection import Selection, SelectionRegressor, variable_selection
    from .tuning import find_ladder, tune

__version__ = "0.2.0"


# What a first `import saltus` should not wait for: {name: (module, attribute)}; modules by themselves have no attribute.
_LATER = {
    "bridges": (".bridges", ""),
    "Selection": (".selection", "Selection"),
    "SelectionRegressor": (".selection", "SelectionRegressor"),
    "check": (".race", "check"),
    "compare": (".comparing", "compare"),
    "citation": (".reporting", "citation"),
    "datasets": (".datasets", ""),
    "diagnostics": (".diagnostics", ""),
    "extending": (".extending", ""),
    "find_ladder": (".tuning", "find_ladder"),
    "kernel_of": (".run.opening", "kernel_of"),
    "lattice_observables": (".reporting", "lattice_observables"),
    "log_likelihood": (".evidence", "log_likelihood"),
    "log_z": (".evidence", "log_z"),
    "mixed": (".bridges.mixed", "mixed"),
    "observables": (".reporting", "observables"),
    "open": (".run.opening", "open_run"),
    "optimise": (".optimising", "optimise"),
    "plot": (".reporting.plot", ""),
    "race_of": (".race", "race_of"),
    "report": (".reporting", "report"),
    "resume": (".run.resuming", "resume"),
    "sample": (".run.sample", "sample"),
    "save": (".run.saving", "save"),
    "status": (".run.verify", "status"),
    "summary": (".reporting", "summary"),
    "targets": (".targets", ""),
    "testing": (".testing", ""),
    "to_inference_data": (".bridges.inference_data", "to_inference_data"),
    "training": (".training", ""),
    "tune": (".tuning", "tune"),
    "variable_selection": (".selection", "variable_selection"),
    "verify": (".run.verify", "verify"),
}


def __getattr__(name: str) -> _Any:
    """Import it when it is first used."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LATER[name]
    found = _importlib.import_module(module, __name__)
    return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    """Every public name, those not yet imported too: for tab completion."""
    return sorted({*globals(), *__all__, *_LATER})


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
    "PAS",
    "PAVG",
    "TGS",
    "Binary",
    "BlockGibbs",
    "Categorical",
    "CheckError",
    "Clock",
    "ConvergenceWarning",
    "Cycle",
    "Dense",
    "Diagonal",
    "Differences",
    "Exchange",
    "Gibbs",
    "Graph",
    "Info",
    "Informed",
    "JumpProcess",
    "Kernel",
    "KernelError",
    "LowRank",
    "Mixture",
    "Ordinal",
    "Point",
    "Product",
    "Quadratic",
    "RunError",
    "SaltusError",
    "Selection",
    "SelectionError",
    "SelectionRegressor",
    "Space",
    "SpaceError",
    "Sparse",
    "Spin",
    "StorageError",
    "SwendsenWang",
    "Target",
    "TargetError",
    "Tempered",
    "TrainingError",
    "UniformMH",
    "bridges",
    "check",
    "citation",
    "compare",
    "datasets",
    "diagnostics",
    "evaluate",
    "extending",
    "find_ladder",
    "kernel_of",
    "lattice_observables",
    "log_likelihood",
    "log_z",
    "mixed",
    "observables",
    "open",
    "optimise",
    "plot",
    "race_of",
    "random",
    "report",
    "resume",
    "sample",
    "save",
    "status",
    "summary",
    "targets",
    "testing",
    "to_inference_data",
    "training",
    "tune",
    "variable_selection",
    "verify",
]
