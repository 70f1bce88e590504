"""What a new sampler is made of: the record it is, what it declares, the checks its numbers pass, the proposals it may return."""

from ._record import as_float, as_positive, as_radius, changed, fill, record, static
from .kernels.base import Kernel, begin
from .kernels.declarations import LOCAL_MODEL, VALUES, Decades, Fit, Needs, Radii, Search, Signed
from .kernels.metropolis import Info, describe, metropolis
from .moves import Moves
from .proposals import Factorised, SingleSite, SiteBlock

__all__ = [
    "LOCAL_MODEL",
    "VALUES",
    "Decades",
    "Factorised",
    "Fit",
    "Info",
    "Kernel",
    "Moves",
    "Needs",
    "Radii",
    "Search",
    "Signed",
    "SingleSite",
    "SiteBlock",
    "as_float",
    "as_positive",
    "as_radius",
    "begin",
    "changed",
    "describe",
    "fill",
    "metropolis",
    "record",
    "static",
]
