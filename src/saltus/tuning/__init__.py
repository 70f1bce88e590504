"""A sampler's class in, a frozen kernel out."""

from .ladder import FoundLadder, find_ladder
from .tune import Tuned, TuningReport, kernel_for, tune

__all__ = ["FoundLadder", "Tuned", "TuningReport", "find_ladder", "kernel_for", "tune"]
