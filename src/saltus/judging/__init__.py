"""What a run is worth: its draws read once, what stands out of them in plain words, and one word for scripts."""

from .judged import Judged, judge
from .verdict import VERDICTS, verdict_of

__all__ = ["VERDICTS", "Judged", "judge", "verdict_of"]
