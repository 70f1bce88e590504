"""What a new sampler is made of: the record it is, the checks its numbers pass, the proposals it may return."""

from ._record import as_float, as_positive, as_radius, fill, record, static
from .kernels.base import Kernel
from .kernels.metropolis import Info, metropolis
from .moves import Moves
from .proposals import Factorised, SingleSite, SiteBlock

__all__ = [
    "Factorised",
    "Info",
    "Kernel",
    "Moves",
    "SingleSite",
    "SiteBlock",
    "as_float",
    "as_positive",
    "as_radius",
    "fill",
    "metropolis",
    "record",
    "static",
]
