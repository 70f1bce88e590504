"""All models: each column in turn is left out or pivoted on, which halves the matrix and doubles their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .active import Flips
from .chain import Problem, moments


@dataclass(frozen=True)
class Leaves:
    """Of all 2^r choices among r columns, in the order of their bits: what is left of the matrix, log-determinants, possible
    ones.
    """

    matrix: np.ndarray
    logdet: np.ndarray
    possible: np.ndarray


def leaves(matrix: np.ndarray, num: int, least: np.ndarray) -> Leaves:
    """Go through the first `num` columns of a symmetric matrix. least: a smaller pivot is a combination of the columns before.

    The work is Σ_r 2^r (p - r)², about twelve numbers for every model.
    """
    M, logdet, possible = matrix[None], np.zeros(1), np.ones(1, bool)
    for j in range(num):
        d = M[:, 0, 0]
        fine = d > least[j]
        d = np.where(fine, d, 1.0)
        rest = M[:, 1:, 1:]
        M = np.concatenate([rest, rest - M[:, 1:, :1] * (M[:, :1, 1:] / d[:, None, None])])
        logdet = np.concatenate([logdet, logdet + np.log(d)])
        possible = np.concatenate([possible, possible & fine])
    return Leaves(M, logdet, possible)


@dataclass(frozen=True)
class Enumerated:
    """Every model: log_evidence, log_posterior (unnormalised), sizes, by code; and exact sums over them for every column."""

    log_evidence: np.ndarray
    log_posterior: np.ndarray
    sizes: np.ndarray
    log_total: float
    inclusion: np.ndarray
    mean: np.ndarray  # of p(in) times the coefficient when in, and so on
    second: np.ndarray
    positive: np.ndarray

    @property
    def probabilities(self) -> np.ndarray:
        return np.exp(self.log_posterior - self.log_total)


def enumerate_models(problem: Problem, gram: np.ndarray) -> Enumerated:
    """gram: (p, p), with the ridge on its diagonal."""
    p = gram.shape[0]
    xy, least = np.asarray(problem.columns.xy), problem.columns.tolerance * np.diagonal(gram)
    matrix = np.block([[gram, xy[:, None]], [xy[None, :], np.ones((1, 1))]])
    every = leaves(matrix, p, least)
    codes = np.arange(2**p, dtype=np.uint32)
    sizes = np.bitwise_count(codes).astype(np.int32)
    odds = np.zeros(1)
    for each in np.asarray(problem.log_odds):
        odds = np.concatenate([odds, odds + each])
    log_evidence = np.asarray(problem.evidence.log_evidence(sizes, np.asarray(every.matrix[:, 0, 0]), every.logdet))
    log_evidence = np.where(every.possible, log_evidence, -np.inf)
    log_prior = np.asarray(problem.log_prior)
    log_posterior = log_evidence + log_prior[np.minimum(sizes, len(log_prior) - 1)] + odds
    log_posterior = np.where(sizes < len(log_prior), log_posterior, -np.inf)
    total = float(np.logaddexp.reduce(log_posterior))
    share = np.exp(log_posterior - total)
    columns = np.array([_column(problem, matrix, least, share, j) for j in range(p)]).reshape(p, 4).T
    return Enumerated(log_evidence, log_posterior, sizes, total, *columns)


def _column(problem: Problem, matrix: np.ndarray, least: np.ndarray, share: np.ndarray, j: int) -> Any:
    """(inclusion, and the sums over models with column j of share times mean, second moment, probability of > 0)."""
    p = matrix.shape[0] - 1
    order = [i for i in range(p) if i != j]
    rest = leaves(matrix[np.ix_([*order, j, p], [*order, j, p])], p - 1, least[order])
    codes = np.arange(2 ** (p - 1), dtype=np.uint32)
    low = codes & np.uint32((1 << j) - 1)
    with_j = low | ((codes ^ low) << np.uint32(1)) | np.uint32(1 << j)
    w = share[with_j]
    left, along = rest.matrix[:, 0, 0], rest.matrix[:, 0, 1]
    left = np.where(left > least[j], left, 1.0)
    size_out = np.bitwise_count(codes).astype(np.int32)
    Q_out = rest.matrix[:, 1, 1]
    flipped = Flips(True, along / left, left, Q_out - along**2 / left, Q_out, size_out, rest.logdet, True)  # type: ignore[arg-type]
    mean, second, positive = (np.asarray(x) for x in moments(problem.evidence, flipped))
    used = w > 0
    return [w.sum(), *(float(np.sum(w[used] * x[used])) for x in (mean, second, positive))]
