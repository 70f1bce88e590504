r"""f_β = β f: a target at another temperature, with everything it knows about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from .._record import changed, default_float
from ..local import Differences
from ..preconditioners import Dense, Diagonal, LowRank, Preconditioner, Sparse
from ..shifted import Shifted
from ..structure import Quadratic, SiteQuadratic
from ..target import Target

_LINEAR = {  # what of a preconditioner is proportional to it
    Dense: ("array", "eigenvalues"),
    Diagonal: ("entries",),
    LowRank: ("diagonal", "eigenvalues"),
    Sparse: ("weights", "diagonal"),
    Shifted: ("array", "least", "pivots"),
}


def tempered(target: Target, beta: Any) -> Target:
    """The target whose log_prob is β times this one's; β in [0, 1] is a parameter, so that another one never retraces."""
    beta = jax.numpy.asarray(beta, default_float())
    local: Any = target.differences
    if isinstance(local, Differences):
        local = Differences(_TemperedDifferences(local.fn), exact=local.exact)
    return changed(
        target,
        params=(beta, target.params),
        differences=local,
        structure=_each(target.structure, beta),
        declared=_each(target.declared, beta),
        structure_of=None if target.structure_of is None else _TemperedStructure(target.structure_of),
        log_prob=_Tempered(target.log_prob, target.params is not None),
        truth=None,
    )


@dataclass(frozen=True)
class _Tempered:
    log_prob: Callable
    has_params: bool

    def __call__(self, params: tuple, s: jax.Array) -> jax.Array:
        beta, own = params
        return beta * (self.log_prob(own, s) if self.has_params else self.log_prob(s))


@dataclass(frozen=True)
class _TemperedDifferences:
    fn: Callable

    def __call__(self, params: tuple, s: jax.Array, codes: jax.Array) -> jax.Array:
        beta, own = params
        return beta * self.fn(own, s, codes)


@dataclass(frozen=True)
class _TemperedStructure:
    structure: Callable

    def __call__(self, params: tuple) -> Any:
        beta, own = params
        return _each(self.structure(own), beta)


def _each(parts: Any, beta: jax.Array) -> Any:
    return tuple(_scaled(part, beta) for part in parts) if isinstance(parts, (tuple, list)) else _scaled(parts, beta)


def _scaled(part: Any, beta: jax.Array) -> Any:
    """A quadratic, bound to its space or not, times β; which sites interact does not depend on β."""
    if isinstance(part, SiteQuadratic):
        return SiteQuadratic(beta * part.potentials, _times(part.coupling, beta), beta * part.constant)
    if isinstance(part, Quadratic):
        potentials = None if part.potentials is None else beta * part.potentials
        return Quadratic(beta * part.b, _times(part.H, beta), potentials, beta * part.constant)
    return part


def _times(matrix: Any, beta: jax.Array) -> Any:
    """β Σ in the form of Σ: its eigenbasis or triangular factor stays."""
    if not isinstance(matrix, Preconditioner):
        return beta * matrix
    return changed(matrix, **{name: beta * getattr(matrix, name) for name in _LINEAR[type(matrix)]})
