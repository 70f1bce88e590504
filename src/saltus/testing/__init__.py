"""Certify samplers: enumerate small spaces, build transition matrices, and check kernels and spaces, yours included."""

from .check_kernel import check_kernel
from .check_space import check_space
from .enumeration import enumerate_states, stationary, transition_matrix
from .moments import Moments, exact_moments
from .report import Report
from .targets import quadratic, rugged

__all__ = [
    "Moments",
    "Report",
    "check_kernel",
    "check_space",
    "enumerate_states",
    "exact_moments",
    "quadratic",
    "rugged",
    "stationary",
    "transition_matrix",
]
