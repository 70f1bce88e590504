"""The normaliser of a target, and the likelihood of data under it."""

from .ais import LogZ, ais, tempered
from .likelihood import LogLikelihood, log_likelihood
from .normaliser import Normaliser, log_z

__all__ = ["LogLikelihood", "LogZ", "Normaliser", "ais", "log_likelihood", "log_z", "tempered"]
