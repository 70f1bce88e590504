"""Training of energy-based models: contrastive divergence with any sampler, and annealed importance sampling."""

from . import models
from .ais import LogZ, ais
from .choice import data_covariance
from .pcd import cd, pcd
from .penalty import L1
from .result import Trained, load
from .tempering import tempered
from .train import DivergenceWarning

__all__ = ["L1", "DivergenceWarning", "LogZ", "Trained", "ais", "cd", "data_covariance", "load", "models", "pcd", "tempered"]
