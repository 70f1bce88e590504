"""The exact posterior of a regression whose columns come in groups of identical ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when first used

from .._pairs import pair_tables


@dataclass(frozen=True)
class RegressionTruth:
    """The exact posterior, summed over how many columns of each group of identical ones are used."""

    marginals: np.ndarray  # (d,) P(s_i = 1), appended sites last
    pairs: np.ndarray  # (d, d) P(s_i = 1 and s_j = 1)
    size_probabilities: np.ndarray  # (D + 1,) P(n columns of X are used)
    log_normaliser: float  # log Σ_s exp f(s) = log p(y) / p(y | no column)

    @property
    def means(self) -> np.ndarray:
        """(d,) means of s: the marginals, since s is 0 or 1."""
        return self.marginals

    @property
    def pair_table(self) -> np.ndarray:
        """(d, d, 2, 2) P(s_i = k and s_j = l)."""
        return pair_tables(self.marginals, self.pairs)


def regression_truth(k: dict, group: np.ndarray, appended: np.ndarray) -> RegressionTruth:
    D, sizes, g = len(group), np.bincount(group), k["g"]
    counts = np.indices(tuple(sizes + 1)).reshape(len(sizes), -1)
    n = counts.sum(axis=0)
    (log_det, _), (log_det_g, r) = _eliminate(k, sizes, 1.0), _eliminate(k, sizes, 1 + g)
    log_p = 0.5 * (log_det - log_det_g) - k["power"] * np.log((1 + g * (k["unexplained"] + r)) / (1 + g))
    log_p += scipy.special.betaln(n + k["inclusion"][0], D - n + k["inclusion"][1]) - scipy.special.betaln(*k["inclusion"])
    log_p += np.log(scipy.special.comb(sizes[:, None], counts)).sum(axis=0)
    log_normaliser = scipy.special.logsumexp(log_p)
    p = np.exp(log_p - log_normaliser)

    mean, second = counts @ p, (counts * p) @ counts.T
    together = second / np.outer(sizes, sizes)
    np.fill_diagonal(together, (np.diag(second) - mean) / np.maximum(sizes * (sizes - 1), 1))
    marginals = np.concatenate([(mean / sizes)[group], appended])
    pairs = np.outer(marginals, marginals)
    pairs[:D, :D] = together[np.ix_(group, group)]
    np.fill_diagonal(pairs, marginals)
    return RegressionTruth(marginals, pairs, np.bincount(n, p, minlength=D + 1), float(log_normaliser))


def _eliminate(k: dict, sizes: np.ndarray, a: float) -> tuple[np.ndarray, np.ndarray]:
    """log |I + aK/λ| and r for all counts: Gaussian elimination, group by group, branching over its count."""
    rows = np.vstack([k["columns"] * np.sqrt(a / k["penalty"]), k["response"]])
    schur, log_det = (rows @ rows.T)[None], np.zeros(1)
    for size in sizes:
        c = np.arange(size + 1)
        pivot = 1 + c * schur[:, :1, 0]
        drop = (c / pivot)[:, :, None, None] * (schur[:, 1:, :1] * schur[:, :1, 1:])[:, None]
        schur = (schur[:, None, 1:, 1:] - drop).reshape(-1, *drop.shape[2:])
        log_det = (log_det[:, None] + np.log(pivot)).ravel()
    return log_det, schur[:, 0, 0]
