"""Certify samplers: enumerate small spaces, build transition matrices, and check kernels and spaces, yours included."""

from .check_kernel import check_kernel
from .check_space import check_space
from .enumeration import enumerate_states, stationary, transition_matrix
from .report import Report
from .targets import quadratic, rugged

__all__ = [
    "Report",
    "check_kernel",
    "check_space",
    "enumerate_states",
    "quadratic",
    "rugged",
    "stationary",
    "transition_matrix",
]
