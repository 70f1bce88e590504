"""χ² tests of counts, and how much they can see: how many chains it takes, and what could still be hidden."""

from __future__ import annotations

import numpy as np
import scipy.optimize
import scipy.stats

LEVEL = 1e-6  # a test fails below this p-value
POWER = 0.99
_VISITS = 100  # independent ones, of a cell: its variance is estimated from them
DISTANCE = 0.005  # in total variation: what a kernel that is known by its steps alone must not hide


def noncentrality(freedom: int) -> float:
    """The noncentrality at which a χ² test at `LEVEL` fails with probability `POWER`."""
    limit = scipy.stats.chi2.isf(LEVEL, freedom)
    return float(scipy.optimize.brentq(lambda x: scipy.stats.ncx2.sf(limit, freedom, x) - POWER, 1.0, 100.0 + 10 * limit))


def chains_needed(num_states: int, distance: float = DISTANCE) -> int:
    r"""Draws for which every law `distance` away from p is seen.

    $$ \lambda = n \sum_s \Delta_s^2 / p_s \ge n \big(\sum_s |\Delta_s|\big)^2 = 4 n \delta^2 $$
    """
    return int(np.ceil(noncentrality(max(num_states - 1, 1)) / (4 * distance**2)))


def hidden(num_states: int, draws: float) -> float:
    """The largest distance in total variation that a χ² test of so many independent draws may miss."""
    return float(np.sqrt(noncentrality(max(num_states - 1, 1)) / (4 * draws)))


def chi_square(observed: np.ndarray, expected: np.ndarray) -> float:
    """p-value of counts against their expectation; 0 where something impossible was seen."""
    total, freedom = statistic(observed, expected)
    return float(scipy.stats.chi2.sf(total, freedom)) if freedom else 1.0


def chi_square_rows(observed: np.ndarray, expected: np.ndarray) -> float:
    """p-value of many rows of counts together; rows with fewer than 10 counts say nothing."""
    rows = [statistic(o, e) for o, e in zip(observed, expected, strict=True) if o.sum() >= 10]
    total, freedom = np.sum(rows, axis=0) if rows else (0.0, 0)
    return float(scipy.stats.chi2.sf(total, freedom)) if freedom else 1.0


def statistic(observed: np.ndarray, expected: np.ndarray) -> tuple[float, int]:
    """(statistic, degrees of freedom); cells expected below 10 are pooled, with the smallest others if need be."""
    if observed[expected <= 1e-9].sum() > 0:
        return np.inf, 1
    cell = pooled(expected, 10)
    e, o = np.bincount(cell, expected), np.bincount(cell, observed)
    return float(np.sum((o - e) ** 2 / e)), len(e) - 1


def pooled(expected: np.ndarray, least: float) -> np.ndarray:
    """The cell of each state: those expected below `least` share cell 0, with the smallest others if need be."""
    order = np.argsort(expected, kind="stable")
    ordered = expected[order]
    num = max(int(np.searchsorted(np.cumsum(ordered), least)) + 1, int(np.searchsorted(ordered, least)))
    cell = np.zeros(len(expected), int)
    cell[order[num:]] = np.arange(1, len(expected) - num + 1)
    return cell


def of_averages(visits: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    r"""(p-value, the distance that may be hidden) of time averages of independent chains that all started in p.

    visits: (chains, times) states. With h the share of its time that a chain spends in each state, E h = p exactly, so

    $$ T^2 = N (\bar h - p)^\top C^{-1} (\bar h - p) \sim \chi^2_f, \qquad C = \mathrm{cov}(h) $$

    whatever the chain's memory, which is in C; since C is estimated, T² (N - f) / (f (N - 1)) is F (Hotelling). With signs σ of
    Δ, Cauchy and Schwarz give (2δ)² = (σ·Δ)² <= ΔᵀC⁻¹Δ σᵀCσ: a law δ away in total variation has
    λ = N Δᵀ C⁻¹ Δ >= 4 N δ² / max_σ σᵀ C σ, and is seen with probability `POWER` where that is `noncentrality`.
    States of fewer than `_VISITS` independent visits are one cell; what is off within it may be hidden.
    """
    num, times = visits.shape
    gap, C = _moments(visits, p)
    impossible = bool((gap[p == 0] > 0).any())
    cell = pooled(num * times * p / _looks_a_visit(C, p, num, times), _VISITS)
    member = np.eye(cell.max() + 1)[:, cell]
    gap, C = member @ gap, member @ C @ member.T
    values, vectors = np.linalg.eigh(C)
    free = values > 1e-9 * values[-1] if values[-1] > 0 else np.zeros(len(C), bool)  # shares sum to 1: one is not
    along = gap @ vectors
    freedom = int(free.sum())
    impossible = impossible or bool(np.abs(along[~free]).max(initial=0) > 1e-3)  # no chain varies this way, and all are off
    total = num * float(np.sum(along[free] ** 2 / values[free]))
    known = freedom and num > freedom
    p_value = 0.0 if impossible else _hotelling(total, freedom, num) if known else 1.0
    together = float(p[cell == 0].sum()) if (cell == 0).sum() > 1 else 0.0
    return p_value, together + float(np.sqrt(noncentrality(max(freedom, 1)) * _most_signed(C) / (4 * num)))


def _looks_a_visit(C: np.ndarray, p: np.ndarray, num: int, times: int) -> float:
    """How many looks at a chain are worth one independent one, at most: by the variance of states that many chains started in.

    Not state by state: one that was rarely seen by chance has a small variance too, and would seem to be far off.
    """
    many = num * p >= _VISITS
    factors = np.diag(C)[many] * times / (p * (1 - p) + 1e-300)[many]
    return float(np.clip(factors.max(initial=0), 1, times)) if many.any() else float(times)


def _hotelling(total: float, freedom: int, num: int) -> float:
    """p-value of T² from a covariance that `num` chains estimate."""
    return float(scipy.stats.f.sf(total * (num - freedom) / (freedom * (num - 1)), freedom, num - freedom))


def _moments(visits: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(mean of h - p, covariance of h), from a block of chains at a time."""
    num, times = visits.shape
    first, second = np.zeros(len(p)), np.zeros((len(p), len(p)))
    for start in range(0, num, 2**12):
        some = visits[start : start + 2**12]
        chain = np.arange(len(some))[:, None] * len(p)
        off = np.bincount((chain + some).ravel(), minlength=len(some) * len(p)).reshape(len(some), len(p)) / times - p
        first += off.sum(0)
        second += off.T @ off
    return first / num, second / num - np.outer(first, first) / num**2


def _most_signed(C: np.ndarray, starts: int = 8) -> float:
    """max over σ in {-1, 1}^n of σᵀ C σ, by flipping one sign at a time from a few starts."""
    rng = np.random.default_rng(0)
    best = 0.0
    for sign in [np.sign(np.linalg.eigh(C)[1][:, -1] + 1e-300), *rng.choice([-1.0, 1.0], size=(starts, len(C)))]:
        pull = C @ sign
        for _ in range(20 * len(C)):
            gain = np.diag(C) - sign * pull  # of flipping: 4 (C_ii - σ_i (Cσ)_i)
            i = int(np.argmax(gain))
            if gain[i] <= 1e-15:
                break
            pull -= 2 * sign[i] * C[:, i]
            sign[i] = -sign[i]
        best = max(best, float(sign @ C @ sign))
    return best
