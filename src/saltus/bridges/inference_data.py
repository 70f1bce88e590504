"""A run as the ArviZ that is installed reads it."""

from __future__ import annotations

from typing import Any

from ..errors import SaltusError
from .needed import needed

_GROUPS = (
    "posterior",
    "sample_stats",
    "log_likelihood",
    "constant_data",
    "observed_data",
    "warmup_posterior",
    "warmup_sample_stats",
)


def to_inference_data(run: Any) -> Any:
    """A run for ArviZ before 1.0, whose functions take `arviz.InferenceData`; later ones read the run as it is.

    run: what `saltus.sample`, `saltus.mixed`, a bridge or `saltus.open` returned.
    Returns an `arviz.InferenceData` with the groups that ArviZ knows; with arviz >= 1 the run itself.
    Raises SaltusError where arviz is not installed, or this is no run.
    """
    if not hasattr(run, "children") or "posterior" not in getattr(run, "children", {}):
        raise SaltusError("This is not a run.", expected="what saltus.sample returned, with draws", found=type(run).__name__)
    arviz = needed("arviz", "saltus.to_inference_data")
    if int(arviz.__version__.partition(".")[0]) >= 1:  # there InferenceData is another name for DataTree
        return run
    groups = {name: run[name].to_dataset() for name in _GROUPS if name in run.children}
    return arviz.InferenceData(**groups)
