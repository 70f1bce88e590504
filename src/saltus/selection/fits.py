"""Single models on the host, in float64: their fit, and draws from their posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .coefficient_priors import LEAST_Q, log_density_of_log_g
from .problem import Question


@dataclass(frozen=True)
class ModelFit:
    """columns: indices among those that enter. beta: least squares (or ridge), inverse: (X_γᵀX_γ)⁻¹, in the scaled columns.
    Q: 1 - R².
    """

    columns: np.ndarray
    beta: np.ndarray
    inverse: np.ndarray
    Q: float
    logdet: float

    @property
    def size(self) -> int:
        return len(self.columns)


def fit_model(question: Question, columns: np.ndarray) -> ModelFit:
    X = question.data.columns[:, columns] * question.scale
    inner = X.T @ X + float(question.prior.ridge) * np.eye(len(columns))
    inverse = np.linalg.inv(inner)
    inverse = (inverse + inverse.T) / 2
    xy = X.T @ question.data.response
    beta = inverse @ xy
    return ModelFit(columns, beta, inverse, float(max(1 - xy @ beta, LEAST_Q)), float(np.linalg.slogdet(inner)[1]))


def r_squared(question: Question, columns: np.ndarray) -> float:
    """Of least squares, whatever the prior; of what the columns that are always in leave unexplained."""
    if not len(columns):
        return 0.0
    X = question.data.columns[:, columns]
    found = np.linalg.lstsq(X, question.data.response, rcond=None)[0]
    return float(1 - np.sum((question.data.response - X @ found) ** 2))


def units(question: Question) -> np.ndarray:
    """(p,) what turns a coefficient of the scaled problem into one of the data as given."""
    return question.data.length * question.scale / question.data.lengths


def draw_coefficients(question: Question, fit: ModelFit, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """(coefficients, noise's standard deviation), one draw, in the units of the data."""
    N = question.data.left
    s = _draw_shrinkage(question, fit, rng)
    rest = max(1 - s * (1 - fit.Q), 1e-12)
    variance = rest / rng.chisquare(N)
    spread = np.linalg.cholesky(fit.inverse * s * variance + 1e-300 * np.eye(fit.size)) if fit.size else np.zeros((0, 0))
    beta = s * fit.beta + spread @ rng.normal(size=fit.size)
    return beta * units(question)[fit.columns], float(np.sqrt(variance)) * question.data.length


def _draw_shrinkage(question: Question, fit: ModelFit, rng: np.random.Generator) -> float:
    """s = g / (1 + g): fixed, the model's best, or drawn from its law given y and the model."""
    name, n, N, k = question.prior.name, question.data.n, question.data.left, fit.size
    number = question.prior.number(n, question.data.p)
    if name in ("independent", "bic") or k == 0:
        return 1.0
    if name in ("g", "bric"):
        return number / (1 + number)
    if name == "eb-local":
        g = max((1 - fit.Q) * (N - k) / (k * fit.Q) - 1, 0.0)
        return g / (1 + g)
    x = np.arange(-20.0, 60.0, 0.2)
    log_f = log_density_of_log_g(name, number, n, x) + 0.5 * (N - k) * np.logaddexp(0, x)
    log_f -= 0.5 * N * np.logaddexp(0, x + np.log(fit.Q))
    w = np.exp(log_f - log_f.max())
    at = rng.choice(x, p=w / w.sum()) + rng.uniform(-0.1, 0.1)
    return float(1 / (1 + np.exp(-at)))
