"""What the draws are worth: effective sample size, agreement of chains, and how far and how often the chains move."""

from .ess import autocorrelation_time, ess
from .moves import AcceptanceBin, acceptance_by_changes, distance, jump, never_moving
from .rhat import split_rhat

__all__ = [
    "AcceptanceBin",
    "acceptance_by_changes",
    "autocorrelation_time",
    "distance",
    "ess",
    "jump",
    "never_moving",
    "split_rhat",
]
