"""Priors of the models: by size, or by a probability for each column, truncated or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaln

from .._record import as_real, as_size
from ..errors import SelectionError

EXPECTED = (
    '"uniform", "beta-binomial", ("beta-binomial", a, b), "bernoulli" with expected_size=, a probability, or one for every column'
)


@dataclass(frozen=True)
class ModelPrior:
    """log p(γ) = by_size[|γ|] + sum of log_odds over the columns in γ.

    by_size: (p + 1,) logarithms, -inf beyond the largest size. log_odds: (p,). told: in words.
    """

    by_size: np.ndarray
    log_odds: np.ndarray
    told: str

    @property
    def largest(self) -> int:
        return int(np.flatnonzero(np.isfinite(self.by_size))[-1])

    def sizes(self) -> np.ndarray:
        """(p + 1,) prior probabilities of the model sizes."""
        log_q = np.logaddexp(0, self.log_odds)
        log_ways = np.array([0.0])  # log of elementary symmetric polynomials of the odds, made a distribution
        if not len(self.log_odds) or np.ptp(self.log_odds) == 0:
            p = len(self.log_odds)
            k = np.arange(p + 1)
            log_ways = -np.log(p + 1) - betaln(k + 1, p - k + 1) + k * (self.log_odds[0] if p else 0)
        else:
            for odds, every in zip(self.log_odds, log_q, strict=True):
                grown = np.concatenate([log_ways, [-np.inf]])
                grown[1:] = np.logaddexp(grown[1:], log_ways + odds)
                log_ways = grown - every
        total = log_ways + self.by_size
        weights = np.exp(total - total.max())
        return weights / weights.sum()

    def log_prob(self, sizes: np.ndarray, log_odds: np.ndarray) -> np.ndarray:
        """log p(γ) from sizes and the sums of log_odds over the columns that are in."""
        return self.by_size[sizes] + log_odds


def read_model_prior(given: Any, p: int, expected_size: Any = None, max_size: Any = None, which: Any = None) -> ModelPrior:
    """As a person gives it; see `EXPECTED`. p: columns that can enter. which: of a probability for each, those that can."""
    size = _read_expected(expected_size, p)
    by_size, log_odds, told = _read(given, p, size, which)
    if max_size is not None:
        most = as_size(max_size, "max_size", SelectionError, least=0)
        by_size = np.where(np.arange(p + 1) > most, -np.inf, by_size)
        told += f", at most {most} columns"
    return _normalised(by_size, log_odds, told)


def _read_expected(expected_size: Any, p: int) -> float | None:
    if expected_size is None:
        return None
    size = as_real(expected_size, "expected_size", SelectionError, f"a number of columns between 0 and {p}")
    if not 0 < size < p:
        raise SelectionError(
            "`expected_size` is out of range.", expected=f"a number of columns between 0 and {p}", found=f"{expected_size!r}"
        )
    return size


def _read(given: Any, p: int, size: float | None, which: Any) -> tuple[np.ndarray, np.ndarray, str]:
    k, flat = np.arange(p + 1), np.zeros(p)
    if isinstance(given, str) and given == "uniform":
        if size is not None:
            raise SelectionError(
                "A uniform prior of the models has no expected size to set.", hint='model_prior="bernoulli" or "beta-binomial"'
            )
        return np.zeros(p + 1), flat, "every model alike"
    if isinstance(given, str) and given == "bernoulli":
        if size is None:
            raise SelectionError('`model_prior="bernoulli"` needs expected_size=.', hint="or give the probability: model_prior=0.1")
        share = size / p
        return k * np.log(share / (1 - share)), flat, f"every column in with probability {share:.4g} (expected size {size:g})"
    named = given if isinstance(given, tuple) else (given,)
    if named and isinstance(named[0], str) and named[0] == "beta-binomial" and len(named) in (1, 3):
        return _beta_binomial(named, p, size)
    if isinstance(given, str) or given is None or isinstance(given, bool):
        raise SelectionError("`model_prior` is not known.", expected=EXPECTED, found=repr(given)[:80])
    return _probabilities(given, p, size, which)


def _beta_binomial(named: tuple, p: int, size: float | None) -> tuple[np.ndarray, np.ndarray, str]:
    if len(named) == 3 and size is not None:
        raise SelectionError("a and b already set the expected size.", found="both ('beta-binomial', a, b) and expected_size")
    a, b = (as_real(x, "a and b", SelectionError) for x in named[1:]) if len(named) == 3 else (1.0, 1.0)
    if not (a > 0 and b > 0):
        raise SelectionError("The beta-binomial prior needs a > 0 and b > 0.", found=f"a = {a:g}, b = {b:g}")
    if size is not None:
        b = (p - size) / size
    k = np.arange(p + 1)
    told = f"beta-binomial({a:g}, {b:.4g})" + (f" (expected size {size:g})" if size else "")
    return betaln(k + a, p - k + b), np.zeros(p), told


def _probabilities(given: Any, p: int, size: Any, which: Any) -> tuple[np.ndarray, np.ndarray, str]:
    try:
        each = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise SelectionError("`model_prior` is not known.", expected=EXPECTED, found=repr(given)[:80]) from None
    if size is not None:
        raise SelectionError("The probabilities already set the expected size.", found="both probabilities and expected_size")
    if each.ndim == 1 and which is not None and len(each) == len(which):
        each = each[which]
    if each.ndim > 1 or (each.ndim == 1 and len(each) != p):
        raise SelectionError("`model_prior` has the wrong shape.", expected=f"{p} probabilities", found=f"shape {each.shape}")
    if not ((each > 0) & (each < 1)).all():
        raise SelectionError(
            "Prior probabilities lie strictly between 0 and 1.",
            found=repr(given)[:80],
            hint="for a column that is always in, forced=; for one that never is, leave it out of X",
        )
    odds = np.broadcast_to(np.log(each / (1 - each)), (p,)).copy()
    if each.ndim == 0:
        return np.arange(p + 1) * (odds[0] if p else 0.0), np.zeros(p), f"every column in with probability {float(each):g}"
    return np.zeros(p + 1), odds, "a probability for each column"


def _normalised(by_size: np.ndarray, log_odds: np.ndarray, told: str) -> ModelPrior:
    """So that the probabilities of all models sum to 1."""
    p = len(log_odds)
    rough = ModelPrior(by_size, log_odds, told)
    k = np.arange(p + 1)
    if not p or np.ptp(log_odds) == 0:
        log_ways = -np.log(p + 1) - betaln(k + 1, p - k + 1) + k * (log_odds[0] if p else 0.0)
        total = np.logaddexp.reduce(log_ways + by_size)
    else:
        free = ModelPrior(np.zeros(p + 1), log_odds, told).sizes()
        with np.errstate(divide="ignore"):
            total = np.logaddexp.reduce(np.log(free) + by_size) + np.logaddexp(0, log_odds).sum()
    return ModelPrior(rough.by_size - total, log_odds, told)
