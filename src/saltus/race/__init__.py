"""Which sampler: those that apply are tuned, run with the run's own chains, and compared."""

from .local_check import check
from .race import race
from .verdict import RaceTable, race_of

__all__ = ["RaceTable", "check", "race", "race_of"]
