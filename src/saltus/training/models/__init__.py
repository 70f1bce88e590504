"""Models to train: targets whose params are where training begins."""

from .ising import couplings, ising

__all__ = ["couplings", "ising"]
