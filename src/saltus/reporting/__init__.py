"""A run in words and pictures: summary, report, plots, observables, what to doubt and what to cite."""

from ..judging import doubts, rows
from .citation import citation
from .lattice import lattice_observables
from .observables import Observable, Observables, observables
from .report import report
from .summary import Summary, summary

__all__ = [
    "Observable",
    "Observables",
    "Summary",
    "citation",
    "doubts",
    "lattice_observables",
    "observables",
    "report",
    "rows",
    "summary",
]
