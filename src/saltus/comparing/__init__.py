"""Which sampler is best on these targets: tuned, timed in turn, and held against each other."""

from .compare import compare
from .comparison import Comparison, Ranking

__all__ = ["Comparison", "Ranking", "compare"]
