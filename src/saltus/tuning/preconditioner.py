r"""A preconditioner: measured from a warm-up, scaled by least squares, tuned on jumps.

With M a candidate (covariance, precision, the target's own Hessian, zero), Δ the moves of the warm-up and
y = f(s') - f(s) - D(s -> s') what the local model missed,

$$ \gamma_0 = \sum_t x_t y_t / \sum_t x_t^2, \qquad x_t = \tfrac12 \Delta_t^\top M \Delta_t, \qquad
   R^2 = 1 - \sum_t (y_t - \gamma_0 x_t)^2 / \sum_t y_t^2. $$
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import default_float
from ..engine.loop import seed_words
from ..kernels import Kernel
from ..kernels.declarations import Decades, Fit
from ..preconditioners import Dense, LowRank, Preconditioner
from ..structure import SiteQuadratic
from ..target import Target
from .step_size import FACTORS, SCALES, Curve, settle, tune_positive
from .trial import Chains, record_chains, with_values

RECORDED = 1000  # steps of the warm-up from which moments and fits are taken
_DROPPED = 100  # of them, before
_MOST_DENSE = 2000  # entries of s; beyond, nothing n x n is formed
_RANK = 32
_MOST_PAIRS = 10_000


@dataclass
class Candidate:
    """One candidate: M, its least-squares scale γ0, the mean squared residual and R²."""

    name: str
    matrix: Any  # a Preconditioner, or None for zero
    gamma: float
    residual: float
    r_squared: float


@dataclass
class Found:
    """What a fit leaves: the kernel, what was measured, the candidates (best first), and a sentence that says what was found."""

    kernel: Any
    curves: list[Curve]
    fits: list[Candidate]
    told: str


def tune_fit(
    kernel: Any, target: Target, name: str, search: Fit, chains: Chains, warm: Kernel, adaptation: str = "default"
) -> Found:
    """The kernel with its matrix (`name`), the matrix's factor and its step size chosen. warm: the warm-up's sampler, tuned."""
    codes, missed = _recorded(warm, target, chains)
    fits = fit_candidates(target, codes, missed)
    best = fits[0]
    matrix = best.matrix if best.matrix is not None else next(f.matrix for f in fits if f.matrix is not None)
    gamma = best.gamma if best.matrix is not None else 0.0
    begun = {search.step_size: getattr(warm, search.step_size, getattr(kernel, search.step_size))}
    climb: Callable[..., Any] = _hill_climb if adaptation == "paper" else _search
    kernel, curves = climb(dataclasses.replace(kernel, **{name: matrix}, **begun), target, search, gamma, chains)
    frozen = f"γ = {float(getattr(kernel, search.scale)):.3g}, ε = {float(getattr(kernel, search.step_size)):.3g}"
    told = f"{best.name} explains {100 * best.r_squared:.1f} % of what the local model misses (γ0 = {best.gamma:.3g})"
    return Found(kernel, curves, fits, f"{told}; frozen at {frozen}")


def _recorded(warm: Any, target: Target, chains: Chains) -> tuple[np.ndarray, np.ndarray]:
    words, first = seed_words(chains.seed), np.int32(chains.steps)
    steps, dropped = chains.length(RECORDED + _DROPPED), chains.length(_DROPPED)
    codes, missed = record_chains(warm, target, chains.codes, words, first, steps)
    chains.steps += steps
    chains.evaluations += steps * len(chains.codes) * warm.evaluations(target)
    chains.codes, chains.log_prob = np.asarray(codes[-1]), None
    return np.asarray(codes)[dropped:], np.asarray(missed, np.float64)[dropped:]


def fit_candidates(target: Target, codes: np.ndarray, missed: np.ndarray) -> list[Candidate]:
    """Candidates, the smallest residual first; codes (steps + 1, chains, d), missed (steps, chains)."""
    space = target.space
    s = space.numbers(codes)
    delta, y = _pairs(np.diff(s, axis=0), missed)
    raw = float(np.mean(y**2)) if len(y) else 0.0
    fits = [Candidate("zero", None, 0.0, raw, 0.0)]
    for name, matrix in _candidates(target, s[:-1].reshape(-1, s.shape[-1])):
        x = 0.5 * np.einsum("ti,ti->t", delta, _times(matrix, delta))
        gamma = float(x @ y / (x @ x)) if x @ x > 0 else 0.0
        residual = float(np.mean((y - gamma * x) ** 2)) if len(y) else 0.0
        fits.append(Candidate(name, matrix, gamma, residual, 1 - residual / raw if raw > 0 else 0.0))
    return sorted(fits, key=lambda fit: fit.residual)


def _pairs(delta: np.ndarray, missed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Moves that moved, at most ten thousand, evenly taken; rejections carry no information."""
    delta, y = delta.reshape(-1, delta.shape[-1]), missed.ravel()
    moved = np.flatnonzero(np.any(delta != 0, axis=1) & np.isfinite(y))
    kept = moved[:: max(-(-len(moved) // _MOST_PAIRS), 1)]
    return delta[kept], y[kept]


def _times(matrix: Preconditioner, delta: np.ndarray) -> np.ndarray:
    return np.asarray(jax.vmap(matrix.matvec)(jnp.asarray(delta, default_float())), np.float64)


def _candidates(target: Target, s: np.ndarray) -> list[tuple[str, Preconditioner]]:
    """Named matrices. Where the local model sees single sites exactly, M must not see them again: no on-site part."""
    on_site = not target.differences.sees_curvature
    own = target.find(SiteQuadratic)
    found = [("the target's Hessian", own.coupling)] if own is not None else []
    if s.shape[1] > _MOST_DENSE:
        return found + _low_rank_moments(s)
    site = target.space.site_of_entries()
    within = site[:, None] == site
    covariance, precision = dense_moments(s)
    masked = [("covariance", covariance), ("precision", precision)]
    return found + [(name, Dense(M if on_site else np.where(within, 0, M))) for name, M in masked]


def dense_moments(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shrunk covariance and its (pseudo-)inverse, in float64.

    C <- (1 - ρ) C + ρ diag(C_ii) with ρ = min(n / (n + N/10), ½) / 10 for N draws, once entries that hardly vary have been
    given a hundredth of the usual variance. Directions without any, such as the sums of one-hot groups, are left out of
    the inverse.
    """
    n = s.shape[1]
    C = np.cov(s.T, bias=True).reshape(n, n)
    scale = max(float(np.median(np.diag(C))), 1e-12)
    C = C + np.diag(np.where(np.diag(C) <= 0.01 * scale, 0.01 * scale, 0.0))  # near-constant entries
    rho = min(n / (n + len(s) / 10), 0.5) / 10
    shrunk = (1 - rho) * C + rho * np.diag(np.diag(C))
    values, basis = np.linalg.eigh(shrunk)
    kept = values > 1e-8 * values.max()
    return shrunk, (basis[:, kept] / values[kept]) @ basis[:, kept].T


def _low_rank_moments(s: np.ndarray) -> list[tuple[str, Preconditioner]]:
    """C = diag(a) + F Fᵀ of rank 32 and its inverse diag(1/a) - G Gᵀ; nothing n x n."""
    s = s[:: max(len(s) // 1000, 1)]
    centred = (s - s.mean(0)) / np.sqrt(len(s))
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    F = (directions[:_RANK] * sizes[:_RANK, None]).T
    variance = (centred**2).sum(0)
    a = np.maximum(variance - (F**2).sum(1), 0.05 * np.maximum(variance, 0.01 * np.median(variance) + 1e-12))
    inner = np.linalg.inv(np.linalg.cholesky(np.eye(F.shape[1]) + F.T @ (F / a[:, None])))
    G = (F / a[:, None]) @ inner.T
    ones = np.ones(F.shape[1])
    return [("covariance", LowRank(a, F, ones)), ("precision", LowRank(1 / a, G, -ones))]


def _search(kernel: Any, target: Target, search: Fit, gamma: float, chains: Chains) -> tuple[Any, list[Curve]]:
    """γ by a grid and by factors 2 and √2, ε in between, on windows after the switch; the best measured pair is frozen."""
    scale, step_size = search.scale, search.step_size
    before, base = float(getattr(kernel, step_size)), gamma if gamma else 1.0
    declared = kernel.tunes.get(step_size)
    decades = declared if isinstance(declared, Decades) else Decades()
    wide = 1e3 * decades.unit(target.space)
    curve, steps = Curve(scale), 60
    best, where = -1.0, (0.0, before)
    for eps in (before, wide, np.sqrt(before * wide)):
        grid = {scale: base * SCALES, step_size: np.full(len(SCALES), eps)}
        found = chains.try_out(kernel, target, grid, chains.length(steps))
        curve.add("grid", grid[scale], found)
        i = int(np.argmax(np.nan_to_num(found.jump)))
        if found.jump[i] > best:
            best, where = float(found.jump[i]), (grid[scale][i], eps)
            chains.move_to(found, i)
        if chains.late():
            break
    kernel = with_values(kernel, **dict(zip((scale, step_size), where, strict=True)))
    if chains.late():
        return kernel, [curve]
    kernel, eps_curve = tune_positive(kernel, target, step_size, decades, chains)
    if where[0] and not chains.late():
        finer = where[0] * FACTORS
        kernel = with_values(kernel, **{scale: finer[settle(kernel, target, {scale: finer}, chains, steps, curve)]})
    return kernel, [curve, eps_curve]


def _hill_climb(kernel: Any, target: Target, search: Fit, gamma: float, chains: Chains) -> tuple[Any, list[Curve]]:
    """Algorithms 4 and 5 as published, for fidelity: δ = 0.25, ρ = 0.99, windows of 100 steps; the last γ is used.

    A step is ×(1 ± δ) where |γ| >= 1 and ± δ below; unlike the print, "up" is up for γ <= -1 too.
    """
    curve, multiplier, delta, direction, last = Curve(search.scale), 1.0, 0.25, 1.0, -1.0
    for _ in range(40):
        grid = {search.scale: np.array([gamma * multiplier])}
        found = chains.try_out(kernel, target, grid, chains.length(100))
        curve.add("hill climb", grid[search.scale], found)
        chains.move_to(found, 0)
        direction = direction if found.jump[0] >= last else -direction
        last = float(found.jump[0])
        size = delta * max(abs(multiplier), 1.0)
        multiplier, delta = multiplier + direction * size, 0.99 * delta
        if chains.late():
            break
    return with_values(kernel, **{search.scale: gamma * multiplier}), [curve]
