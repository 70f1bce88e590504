r"""The exact partition function of the Ising model on a torus (Kaufman 1949).

For m rows of n sites, K1 > 0 between neighbours in a row and K2 > 0 between rows,

$$ \log Z = -\log 2 + \tfrac{mn}{2} \log(2 \sinh 2K_2) + \log(P_1 + P_2 + P_3 + P_4) $$
$$ P_1 = \prod_{l\ \mathrm{odd}} 2\cosh(m\gamma_l/2), \qquad P_2 = \prod_{l\ \mathrm{odd}} 2\sinh(m\gamma_l/2) $$
$$ P_3 = \prod_{l\ \mathrm{even}} 2\cosh(m\gamma_l/2), \qquad P_4 = \prod_{l\ \mathrm{even}} 2\sinh(m\gamma_l/2) $$
$$ \sinh^2\frac{\gamma_l}{2} = \sinh^2\frac{\gamma_0}{2} + \frac{\sinh 2K_1}{\sinh 2K_2} \sin^2\frac{\pi l}{2 n},
   \qquad \gamma_0 = 2K_1 + \log\tanh K_2 $$

γ_0 has a sign: it is negative in the disordered phase, and then P_4 is. The torus has two bonds across a side of two sites, and
`targets.ising` one: half of K on each of the two is the same model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._record import as_array, as_sequence, as_size
from ..errors import TargetError


def kaufman_log_z(shape: tuple[int, int], coupling: Any) -> float:
    """log Z of `saltus.targets.ising(shape, coupling)` without field, in float64.

    shape: two sides, each at least 2.
    coupling: any K > 0, or (K2, K1), one per axis of the lattice: between rows, and within them.
    """
    (rows, columns), (between, within) = _read(shape, coupling)
    between, within = (K / 2 if side == 2 else K for K, side in ((between, rows), (within, columns)))
    odd, even = np.arange(1, 2 * columns, 2), np.arange(0, 2 * columns, 2)
    terms = [_product(rows, _gamma(ls, columns, within, between), kind) for ls in (odd, even) for kind in (1, -1)]
    logs, signs = np.array([t[0] for t in terms]), np.array([t[1] for t in terms])
    top = logs.max()
    total = top + np.log(np.sum(signs * np.exp(logs - top)))
    return float(total - np.log(2) + rows * columns / 2 * (np.log(2) + _log_sinh(2 * between)))


def kaufman_edge_correlation(shape: tuple[int, int], coupling: Any) -> float:
    """Mean of x_i x_j over bonds: (d log Z / dK) / bonds, for one K. Fourth-order differences, good to about 1e-10.

    shape: both sides of the lattice. coupling: K > 0.
    """
    (rows, columns), (K, other) = _read(shape, coupling)
    if other != K:
        raise TargetError("One coupling is needed here.", expected="a number", found=f"{coupling}")
    h = 1e-3 * K
    z = [kaufman_log_z(shape, K + step * h) for step in (-2, -1, 1, 2)]
    num_bonds = rows * columns * sum(0.5 if side == 2 else 1.0 for side in (rows, columns))
    return (z[0] - 8 * z[1] + 8 * z[2] - z[3]) / (12 * h) / num_bonds


def _read(shape: Any, coupling: Any) -> tuple[tuple[int, int], tuple[float, float]]:
    sides = tuple(as_size(side, "shape", TargetError, least=2) for side in as_sequence(shape, "shape", TargetError, "two sides"))
    K = np.asarray(as_array(coupling, "coupling", TargetError, "one or two numbers"), np.float64)
    if len(sides) != 2 or K.shape not in ((), (2,)):
        raise TargetError(
            "Kaufman's formula is for a torus.", expected="two sides, one or two couplings", found=f"{shape}, {coupling}"
        )
    if not ((K > 0) & (np.inf > K)).all():
        raise TargetError(
            "Kaufman's formula needs K > 0.",
            expected="positive couplings",
            found=f"{coupling}",
            hint="on even sides the sign of the coupling does not change log Z",
        )
    between, within = np.broadcast_to(K, (2,))
    return (sides[0], sides[1]), (float(between), float(within))


def _gamma(l: np.ndarray, n: int, K1: float, K2: float) -> np.ndarray:
    """γ_l from logs of positive terms: no K is too large or too small, and nothing cancels near the critical point."""
    first = 2 * K1 + float(_log_tanh(K2))
    ratio = float(_log_sinh(2 * K1) - _log_sinh(2 * K2))
    with np.errstate(divide="ignore"):
        parts = 2 * _log_sinh(abs(first) / 2), ratio + 2 * np.log(np.sin(np.pi * l / (2 * n)))
    y = np.logaddexp(*parts)  # of sinh²(γ / 2)
    large = y + 2 * np.log1p(np.sqrt(1 + np.exp(-np.maximum(y, 0))))
    return np.where(l == 0, first, np.where(y > 0, large, 2 * np.arcsinh(np.exp(np.minimum(y, 0) / 2))))


def _log_sinh(x: Any) -> Any:
    """log sinh x for x >= 0, of any size."""
    with np.errstate(divide="ignore"):
        return x + np.log(-np.expm1(-2 * np.asarray(x, np.float64))) - np.log(2)


def _log_tanh(x: float) -> Any:
    return np.log(-np.expm1(-2 * x)) - np.log1p(np.exp(-2 * x))


def _product(m: int, gamma: np.ndarray, kind: int) -> tuple[float, float]:
    """log |Π 2cosh(mγ/2)| (kind 1) or log |Π 2sinh(mγ/2)| (kind -1), and its sign."""
    x = np.abs(m * gamma / 2)
    if kind == 1:
        return float(np.sum(x + np.log1p(np.exp(-2 * x)))), 1.0
    with np.errstate(divide="ignore"):  # at criticality a factor is zero
        return float(np.sum(x + np.log(-np.expm1(-2 * x)))), float(np.prod(np.sign(gamma)))
