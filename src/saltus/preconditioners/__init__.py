r"""Preconditioners: a symmetric n x n matrix Σ, never more of it than its form needs.

With a scale γ and a slack 2/ε, PAVG draws u ~ N(0, γΣ + diag(d)), where the shift d is the least that makes γΣ + diag(d)
positive semi-definite in this form, plus the slack. Each form offers

    matvec(v)                        Σ v
    shift(scale, slack)              d: a number, or one per coordinate
    colour(normals, scale, slack)    u = Aᵀ normals with AᵀA = γΣ + diag(d)         (`num_normals` of them)

Numbers are leaves: another Σ of the same shape, another γ or ε never recompiles.
"""

from .banded import Banded, with_bands
from .base import Preconditioner, symmetric
from .dense import Dense, as_preconditioner
from .diagonal import Diagonal
from .low_rank import LowRank
from .plain import Plain
from .shifted import Shifted
from .sparse import Sparse

__all__ = [
    "Banded",
    "Dense",
    "Diagonal",
    "LowRank",
    "Plain",
    "Preconditioner",
    "Shifted",
    "Sparse",
    "as_preconditioner",
    "symmetric",
    "with_bands",
]
