"""The normaliser of a target."""

from .ais import LogZ, ais, tempered
from .normaliser import Normaliser, log_z

__all__ = ["LogZ", "Normaliser", "ais", "log_z", "tempered"]
