"""A run in words and pictures: the summary, the report, observables, and what to doubt."""

from ..judging import doubts, rows
from .lattice import lattice_observables
from .observables import Observable, Observables, observables
from .report import report
from .summary import Summary, summary

__all__ = ["Observable", "Observables", "Summary", "doubts", "lattice_observables", "observables", "report", "rows", "summary"]
