"""The most probable state."""

from .optimise import Optimum, optimise

__all__ = ["Optimum", "optimise"]
