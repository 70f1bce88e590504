"""Training of energy-based models: contrastive divergence with any sampler, and annealed importance sampling."""

from . import models
from .pcd import cd, pcd
from .penalty import L1
from .result import Trained, load
from .settings import data_covariance
from .train import DivergenceWarning

__all__ = ["L1", "DivergenceWarning", "Trained", "cd", "data_covariance", "load", "models", "pcd"]
