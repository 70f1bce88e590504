"""Targets: lattice models and spin glasses, the two sampling problems of the paper, and its energy-based model."""

from .clock import clock
from .conv_ebm import conv_ebm, conv_ebm_params
from .edwards_anderson import edwards_anderson
from .ising import ising
from .ising_truth import kaufman_edge_correlation, kaufman_log_z
from .polynomial_mixture import polynomial_mixture
from .potts import potts
from .sites import lattice, triangular
from .third_order import third_order
from .variable_selection import sparse_regression

__all__ = [
    "clock",
    "conv_ebm",
    "conv_ebm_params",
    "edwards_anderson",
    "ising",
    "kaufman_edge_correlation",
    "kaufman_log_z",
    "lattice",
    "polynomial_mixture",
    "potts",
    "sparse_regression",
    "third_order",
    "triangular",
]
