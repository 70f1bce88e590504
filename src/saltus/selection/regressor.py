"""`SelectionRegressor`: variable selection with scikit-learn's conventions, which needs no scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import SelectionError
from .api import variable_selection

try:  # with scikit-learn there, its pipelines and searches know what this is
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.feature_selection import SelectorMixin
    from sklearn.utils.validation import check_is_fitted, validate_data

    _BASES: tuple = (SelectorMixin, RegressorMixin, BaseEstimator)
except ImportError:
    _BASES = ()


def _needs_sklearn(*args: Any, **options: Any) -> Any:
    raise SelectionError(
        "SelectionRegressor needs scikit-learn.", hint="pip install scikit-learn; or saltus.variable_selection, which does not"
    )


class SelectionRegressor(*_BASES):  # type: ignore[misc]
    """Bayesian variable selection as a scikit-learn regressor and feature selector.

    prior, model_prior, expected_size, forced, error, method, max_steps, time_limit: as in `saltus.variable_selection`.
    estimator: what predict uses: "bma", "median" or "best".
    threshold: columns with at least this inclusion probability are kept by `transform` (default 0.5).
    random_state: the seed.

    Fitted: selection_ (the `Selection`), inclusion_ (p,), coef_ (p,) averaged over models, intercept_.

    >>> import numpy as np, saltus
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> saltus.SelectionRegressor().fit(X, X[:, 0] + 1.0).get_support().tolist()
    [True, False, False, False]
    """

    if not _BASES:
        __new__ = _needs_sklearn

    def __init__(
        self,
        prior: Any = "g",
        model_prior: Any = "beta-binomial",
        *,
        expected_size: float | None = None,
        forced: Any = None,
        estimator: str = "bma",
        threshold: float = 0.5,
        method: str = "auto",
        error: float = 0.005,
        max_steps: int | None = None,
        time_limit: float | None = None,
        random_state: Any = 0,
    ):
        self.prior, self.model_prior, self.expected_size, self.forced = prior, model_prior, expected_size, forced
        self.estimator, self.threshold, self.method, self.error = estimator, threshold, method, error
        self.max_steps, self.time_limit, self.random_state = max_steps, time_limit, random_state

    def fit(self, X: Any, y: Any) -> SelectionRegressor:
        """X: (n, p); y: (n,). Returns itself."""
        table, response = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=3)
        state = self.random_state
        seed = 0 if state is None else int(state.randint(2**31)) if hasattr(state, "randint") else state
        names = getattr(self, "feature_names_in_", None)
        self.selection_ = variable_selection(
            table,
            response,
            self.prior,
            self.model_prior,
            names=None if names is None else list(names),
            seed=seed,
            progress=False,
            method=self.method,
            expected_size=self.expected_size,
            forced=self.forced,
            error=self.error,
            max_steps=self.max_steps,
            time_limit=self.time_limit,
        )
        self.inclusion_ = self.selection_.inclusion.to_numpy()
        every = self.selection_.average()
        self.coef_, self.intercept_ = every[:-1], float(every[-1])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(rows,) by the chosen estimator."""
        check_is_fitted(self)
        table = validate_data(self, X, dtype=np.float64, reset=False)
        return self.selection_.predict(table, self.estimator).to_numpy()

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.inclusion_ >= self.threshold
