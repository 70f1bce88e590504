"""What enumeration proves about a kernel: its definition, its invariance, which states it connects, its period."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from .enumeration import Enumeration
from .protocol import offers
from .report import PROVED, Finding, compare

EXACT = 1e-12
NUM_Z = 3


@dataclass(frozen=True)
class Proof:
    """What was enumerated, and found."""

    findings: tuple[Finding, ...]
    matrix: np.ndarray | None = None  # (N, N), where there is one
    alpha: np.ndarray | None = None  # (N, N) acceptance probabilities, where a step is one proposal
    acceptance: float | None = None  # the mean of alpha in stationarity
    tables: tuple[dict[str, np.ndarray], ...] = ()
    noises: tuple[Any, ...] = ()  # one for each table

    @property
    def complete(self) -> bool:
        """Whether invariance was looked at: else a kernel is known by its steps alone."""
        return any(f.instrument == "invariance" and f.status != "not run" for f in self.findings)


def prove(every: Enumeration, p: np.ndarray, key: jax.Array) -> Proof:
    """Every instrument that enumeration allows. To be called where x64 is enabled."""
    kernel = every.kernel
    if every.continuous and not offers(kernel, "condition"):
        return Proof(_not_run("the kernel draws noise: needs condition(target, z, x) to fix it"))
    zs: Any = every.auxiliaries(key, NUM_Z) if every.continuous else []
    noises = every.noises(zs)
    tables = [every.tables(noise) for noise in noises]
    first = [_definition(tables)]
    if not {"log_q", "log_ratio"} <= set(tables[0]):
        path = offers(kernel, "propose") and offers(kernel, "log_ratio")
        missing = "the proposal takes a path" if path else "needs propose(target, x, noise) and log_ratio(target, x, y, noise)"
        return Proof((*first, *_not_run(missing)[1:]))
    matrices = [every.matrix_from(t) for t in tables]
    if every.continuous:
        found = [_leaves(K, every.conditional(z), "p(.|z)", limit=_limit(tables)) for K, z in zip(matrices, zs, strict=True)]
        worst = next((f for f in found if f.failed), found[0])
        rest = Finding("period", "not run", "the chain at fixed z says nothing about it", how=PROVED)
        return Proof((*first, worst, rest), tables=tuple(tables), noises=tuple(noises))
    K = kernel.compose(matrices) if offers(kernel, "compose") else matrices[0]
    findings = (*first, _leaves(K, p, "p", getattr(kernel, "reversible", True)), _connected(K, p), _period(K, p))
    if offers(kernel, "compose"):
        return Proof(findings, K, tables=tuple(tables), noises=tuple(noises))
    alpha = every.acceptance(tables[0])
    mean = float(p @ np.sum(np.exp(tables[0]["log_q"]) * alpha, axis=1))
    return Proof(findings, K, alpha, mean, tuple(tables), tuple(noises))


def _not_run(why: str) -> tuple[Finding, ...]:
    return tuple(Finding(name, "not run", why, how=PROVED) for name in ("definition", "invariance", "connected", "period"))


def _definition(tables: list[dict[str, np.ndarray]]) -> Finding:
    if not {"log_q", "log_definition"} <= set(tables[0]):
        return Finding("definition", "not run", "needs propose and log_definition(target, x, codes, noise)", how=PROVED)
    gap = max(np.max(np.abs(np.exp(t["log_q"]) - np.exp(t["log_definition"]))) for t in tables)
    total = max(np.max(np.abs(np.exp(t["log_q"]).sum(1) - 1)) for t in tables)
    meaning = "a wrong factor, sign or boundary in the proposal: it may still be invariant, but it is not this sampler"
    return compare(
        "definition", "largest gap between proposal and equation", float(max(gap, total)), _limit(tables), meaning, PROVED
    )


def _limit(tables: list[dict[str, np.ndarray]]) -> float:
    """An equation that is printed with large terms, such as |s'|²/ε on a long grid, has their rounding."""
    return max(EXACT, 8 * np.finfo(np.float64).eps * max(float(t.get("size", 0)) for t in tables))


def _leaves(K: np.ndarray, p: np.ndarray, symbol: str, reversible: bool = True, limit: float = EXACT) -> Finding:
    drift = float(np.max(np.abs(p @ K - p)))
    flow = p[:, None] * K
    imbalance = float(np.max(np.abs(flow - flow.T))) if reversible else 0.0
    what = f"|{symbol} K - {symbol}| and detailed balance" if reversible else f"|{symbol} K - {symbol}| (not reversible by design)"
    meaning = "an error in the ratio: a missing q(s|s'), a reverse move centred elsewhere, a boundary left out"
    return compare("invariance", what, float(np.max([drift, imbalance, -K.min()])), limit, meaning, PROVED)


def _connected(K: np.ndarray, p: np.ndarray) -> Finding:
    """Whether every state with mass can be reached from every other."""
    some = p > 0
    num, part = connected_components(scipy.sparse.csr_matrix(K[np.ix_(some, some)] > 0), connection="strong")
    if num == 1:
        return Finding("connected", "passed", "every state with mass can be reached from every other", how=PROVED)
    share = np.sort(np.bincount(part, p[some]))[::-1]
    text = f"{num} sets of states that no step connects, the two largest with mass {share[0]:.3g} and {share[1]:.3g}"
    return Finding("connected", "warning", text, "the chain stays where it starts: mix it with moves that cross", PROVED)


def _period(K: np.ndarray, p: np.ndarray) -> Finding:
    """Warn of a periodic chain on the states that have mass."""
    eigenvalues = np.linalg.eigvals(K[np.ix_(p > 0, p > 0)])
    if np.min(np.abs(eigenvalues + 1)) < 1e-6:
        meaning = "the chain is periodic: keep an odd number of steps between draws, or let it hold"
        return Finding("period", "warning", "an eigenvalue at -1", meaning, PROVED)
    second = np.sort(np.abs(eigenvalues))[-2] if len(eigenvalues) > 1 else 0.0
    return Finding("period", "passed", f"no eigenvalue at -1; second largest modulus {second:.3g}", how=PROVED)
