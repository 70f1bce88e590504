"""Targets with exact truth: lattice models, and the two sampling problems of the paper; and its energy-based model."""

from .conv_ebm import conv_ebm, conv_ebm_params
from .ising import ising
from .ising_truth import kaufman_edge_correlation, kaufman_log_z
from .polynomial_mixture import polynomial_mixture
from .potts import potts
from .third_order import third_order
from .variable_selection import sparse_regression

__all__ = [
    "conv_ebm",
    "conv_ebm_params",
    "ising",
    "kaufman_edge_correlation",
    "kaufman_log_z",
    "polynomial_mixture",
    "potts",
    "sparse_regression",
    "third_order",
]
