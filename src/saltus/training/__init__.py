"""Training of energy-based models: contrastive divergence with any sampler, and annealed importance sampling."""

from ..evidence import LogZ, ais, tempered
from . import models
from .callback import Moment
from .choice import data_covariance
from .history import history
from .likelihood import Likelihood, log_likelihood
from .pcd import cd, pcd
from .penalty import L1, Energy
from .pictures import mmd, picture
from .result import Trained, load
from .train import DivergenceWarning

__all__ = [
    "L1",
    "DivergenceWarning",
    "Energy",
    "Likelihood",
    "LogZ",
    "Moment",
    "Trained",
    "ais",
    "cd",
    "data_covariance",
    "history",
    "load",
    "log_likelihood",
    "mmd",
    "models",
    "pcd",
    "picture",
    "tempered",
]
