"""Which sampler is best on these targets: tuned, timed in turn, and held against each other."""

from .compare import compare
from .comparison import Comparison, Row

__all__ = ["Comparison", "Row", "compare"]
