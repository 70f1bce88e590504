"""What the draws are worth: effective sample size, agreement of chains, how far and how often they move, and exact errors."""

from .distance_series import DistanceSeries, distance_ess
from .ess import autocorrelation_time, ess, ess_of_chains, split_rhat
from .exact_errors import covariance_error, marginal_error, marginal_kl, mean_and_error, pairwise_error
from .moves import AcceptanceBin, acceptance_by_changes, distance, jump, never_moving
from .tally import Tally

__all__ = [
    "AcceptanceBin",
    "DistanceSeries",
    "Tally",
    "acceptance_by_changes",
    "autocorrelation_time",
    "covariance_error",
    "distance",
    "distance_ess",
    "ess",
    "ess_of_chains",
    "jump",
    "marginal_error",
    "marginal_kl",
    "mean_and_error",
    "never_moving",
    "pairwise_error",
    "split_rhat",
]
