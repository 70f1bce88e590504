"""A sampler's class in, a frozen kernel out."""

from .ladder import FoundLadder, find_ladder
from .meant import kernel_for
from .tune import Tuned, TuningReport, tune

__all__ = ["FoundLadder", "Tuned", "TuningReport", "find_ladder", "kernel_for", "tune"]
