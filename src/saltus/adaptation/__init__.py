from .tune import Tuned, TuningReport, tune

__all__ = ["Tuned", "TuningReport", "tune"]
