"""A run in words: the summary, and what to doubt."""

from ..judging import doubts, rows
from .lattice import lattice_observables
from .observables import Observable, Observables, observables
from .summary import Summary, summary

__all__ = ["Observable", "Observables", "Summary", "doubts", "lattice_observables", "observables", "rows", "summary"]
