"""Targets with exact truth: lattice models, and the two sampling problems of the paper."""

from .ising import ising
from .polynomial_mixture import polynomial_mixture
from .potts import potts
from .variable_selection import sparse_regression

__all__ = ["ising", "polynomial_mixture", "potts", "sparse_regression"]
