"""A run in words: the summary, and what to doubt."""

from ..judging import doubts, rows
from .observables import Observable, Observables, observables
from .summary import Summary, summary

__all__ = ["Observable", "Observables", "Summary", "doubts", "observables", "rows", "summary"]
