"""Data sets: known files, found through SALTUS_DATA or `path=` and checksummed; and synthetic digits that need no file."""

from .digits import digits
from .files import NAMES, load
from .kinds import Images, MaxCut, Regression

__all__ = ["NAMES", "Images", "MaxCut", "Regression", "digits", "load"]
