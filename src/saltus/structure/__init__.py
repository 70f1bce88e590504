r"""What a target may know about itself: that it is quadratic, or which sites interact.

Both are claims about log_prob. Declared ones are tested at random states where a `Target` is built, and refused where they
are false; others are found in the jaxpr of log_prob (`finding`), and tested too.
"""

from __future__ import annotations

from typing import Any

from ..errors import TargetError
from ..spaces import Space
from . import fields
from .finding import Found, find
from .graph import Graph
from .local_terms import LocalTerms
from .quadratic import BoundQuadratic, Quadratic, SiteQuadratic

__all__ = ["BoundQuadratic", "Found", "Graph", "LocalTerms", "Quadratic", "SiteQuadratic", "bind_structure", "fields", "find"]


def bind_structure(structure: Any, space: Space) -> tuple:
    """Any number of structures, each bound to the space."""
    parts = structure if isinstance(structure, (tuple, list)) else () if structure is None else (structure,)
    for part in parts:
        if not isinstance(part, (Quadratic, BoundQuadratic, Graph, LocalTerms)):
            raise TargetError("`structure` is not known.", expected="saltus.Quadratic or saltus.Graph", found=type(part).__name__)
    return tuple(part.bind(space) for part in parts)
