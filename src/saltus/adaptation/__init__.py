from .tune import Tuned, TuningReport, tune
from .verdict import RaceTable, race_of

__all__ = ["RaceTable", "Tuned", "TuningReport", "race_of", "tune"]
