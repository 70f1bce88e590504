"""Models to train: targets whose params are where training begins."""

from ...targets import conv_ebm, conv_ebm_params
from .ising import boltzmann, couplings, ising
from .network import module_of, network
from .potts import potts
from .rbm import conditional, log_odds, rbm

__all__ = [
    "boltzmann",
    "conditional",
    "conv_ebm",
    "conv_ebm_params",
    "couplings",
    "ising",
    "log_odds",
    "module_of",
    "network",
    "potts",
    "rbm",
]
