"""Training of energy-based models: contrastive divergence with any sampler, and annealed importance sampling."""

from ..evidence import LogZ, ais, tempered
from . import models
from .choice import data_covariance
from .pcd import cd, pcd
from .penalty import L1
from .result import Trained, load
from .train import DivergenceWarning

__all__ = ["L1", "DivergenceWarning", "LogZ", "Trained", "ais", "cd", "data_covariance", "load", "models", "pcd", "tempered"]
