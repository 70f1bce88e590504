"""Targets with exact truth: lattice models, and the two sampling problems of the paper."""

from .ising import ising
from .potts import potts

__all__ = ["ising", "potts"]
