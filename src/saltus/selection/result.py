"""`Selection`: what `variable_selection` returns, in the names and units of the data."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from .._record import as_choice, as_real, as_size
from ..errors import SelectionError
from .answer import Answer, reweighted
from .data import Data
from .fits import draw_coefficients, fit_model, r_squared, units
from .model_priors import read_model_prior

ESTIMATORS = ("bma", "median", "best")
DRAWS = 4000  # of coefficients, for intervals


class Selection:
    """Which columns matter: inclusion probabilities, coefficients, models and predictions, with a Monte-Carlo error on every
    number.

    Made by `saltus.variable_selection`. Errors are 0 where all models were enumerated. All tables are in the order of the columns.

        .inclusion, .inclusion_error   Series by name: the probability that the column belongs in the model, and its error
        .coefficients                  DataFrame: averaged over models, and when the column is in; intervals; certainty of the sign
        .models                        DataFrame: models by probability, with R²
        .size                          DataFrame: prior and posterior of the number of columns
        .log_marginal_likelihood       of y averaged over models, relative to the model with no column; and
        .log_marginal_likelihood_error
        .predict(X)  .reweight(...)  .summary()  .to_frame()  .plot()  .run

    answer, told, response: what `variable_selection` found, says about it, and calls y; not for callers.
    """

    def __init__(self, answer: Answer, told: dict[str, Any], response: str = "y"):
        self._answer, self.told = answer, told
        self._data: Data = answer.question.data

    # ---- tables ---------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Of all columns of X, in order."""
        return list(self._data.names)

    @functools.cached_property
    def inclusion(self) -> pd.Series:
        """Posterior probability of each column; 1 for columns that are forced in, 0 for those that cannot enter."""
        return self._series(self._answer.inclusion.value, 1.0, 0.0, "inclusion")

    @functools.cached_property
    def inclusion_error(self) -> pd.Series:
        """Monte-Carlo standard error of each inclusion probability."""
        return self._series(self._answer.inclusion.error, 0.0, 0.0, "inclusion_error")

    @functools.cached_property
    def rhat(self) -> pd.Series:
        """Split R-hat of each inclusion probability over the chains; 1 where all models were enumerated."""
        return self._series(self._answer.rhat, 1.0, 1.0, "rhat")

    @functools.cached_property
    def coefficients(self) -> pd.DataFrame:
        """A row for each column, in the units of the data.

        inclusion; mean, mean_error, sd: averaged over all models, 0 where the column is out; lower, upper: 95 % of that;
        mean_if_in,
        sd_if_in: in the models that have it; sign: +1 or -1; sign_probability: of that sign, if it is in.
        """
        data, a = self._data, self._answer
        unit = units(a.question)
        share = np.where(a.inclusion.value > 0, a.inclusion.value, np.nan)
        mean, second = a.mean.value * unit, a.second.value * unit**2
        if_in = mean / share
        sd_in = np.sqrt(np.maximum(second / share - if_in**2, 0)) if data.left > 2 else np.full(data.p, np.nan)
        sd = np.sqrt(np.maximum(second - mean**2, 0)) if data.left > 2 else np.full(data.p, np.nan)
        positive = np.clip(a.positive.value / share, 0, 1)
        lower, upper = self._intervals
        table = {
            "inclusion": self.inclusion.to_numpy(),
            "mean": self._series(mean, np.nan, 0.0).to_numpy(),
            "mean_error": self._series(a.mean.error * unit, np.nan, 0.0).to_numpy(),
            "sd": self._series(sd, np.nan, 0.0).to_numpy(),
            "lower": lower,
            "upper": upper,
            "mean_if_in": self._series(if_in, np.nan, np.nan).to_numpy(),
            "sd_if_in": self._series(sd_in, np.nan, np.nan).to_numpy(),
            "sign": self._series(np.where(positive >= 0.5, 1.0, -1.0), np.nan, np.nan).to_numpy(),
            "sign_probability": self._series(np.maximum(positive, 1 - positive), np.nan, np.nan).to_numpy(),
        }
        frame = pd.DataFrame(table, index=pd.Index(self.names, name="column"))
        if data.always.any():
            draws = self._draws[0][:, data.always]
            for name, value in zip(np.array(self.names)[data.always], draws.T, strict=True):
                certain = float(np.mean(value > 0))
                frame.loc[name, ["mean", "sd", "mean_if_in", "sd_if_in"]] = [value.mean(), value.std(), value.mean(), value.std()]
                frame.loc[name, "mean_error"] = value.std() / np.sqrt(len(value))
                frame.loc[name, ["sign", "sign_probability"]] = [1.0 if certain >= 0.5 else -1.0, max(certain, 1 - certain)]
        return frame

    @functools.cached_property
    def models(self) -> pd.DataFrame:
        """The 100 likeliest models that were seen, with a row for each.

        columns, size; probability: p(γ) p(y | γ) over their sum for all models, which is estimated, and probability_error;
        frequency: share of the weighted visits, and frequency_error; renormalised: over the models that were seen; r2;
        log_odds_to_best.
        """
        a, data = self._answer, self._data
        m, top = a.models, min(100, len(a.models))
        every = [m.columns(i) for i in range(top)]
        names = [tuple(self.names[data.entering[j]] for j in c) for c in every]
        log_posterior, best = m.log_posterior[:top], m.log_posterior.max()
        known = bool(np.isfinite(a.log_evidence.value))
        probability = np.minimum(np.exp(log_posterior - a.log_evidence.value), 1) if known else m.frequency[:top]
        return pd.DataFrame(
            {
                "columns": names,
                "size": [len(c) for c in names],
                "probability": probability,
                "probability_error": probability * a.log_evidence.error if known else m.error[:top],
                "frequency": m.frequency[:top],
                "frequency_error": m.error[:top],
                "renormalised": np.exp(log_posterior - best) / np.exp(m.log_posterior - best).sum(),
                "r2": [r_squared(a.question, c) for c in every],
                "log_odds_to_best": log_posterior - best,
            }
        )

    @functools.cached_property
    def size(self) -> pd.DataFrame:
        """Number of columns in the model (those forced in apart): prior and posterior probability, error of the latter."""
        a = self._answer
        prior = a.question.model_prior.sizes()
        return pd.DataFrame(
            {"prior": prior, "posterior": a.size.value, "posterior_error": a.size.error},
            index=pd.RangeIndex(len(prior), name="size"),
        )

    @property
    def log_marginal_likelihood(self) -> float:
        """log of Σ p(γ) p(y | γ) / p(y | no column)."""
        return float(self._answer.log_evidence.value)

    @property
    def log_marginal_likelihood_error(self) -> float:
        """Its Monte-Carlo standard error."""
        return float(self._answer.log_evidence.error)

    def to_frame(self) -> pd.DataFrame:
        """Everything about the columns in one table: inclusion, its error and R-hat, and the coefficients."""
        frame = self.coefficients.copy()
        frame.insert(1, "inclusion_error", self.inclusion_error.to_numpy())
        frame.insert(2, "rhat", self.rhat.to_numpy())
        return frame

    # ---- predictions ----------------------------------------------------------------------------------------------

    def predict(self, X: Any, estimator: str = "bma", interval: float | None = None, seed: int = 0) -> Any:
        """Predicted response for new rows.

        X: columns as in the data. estimator: "bma", averaged over models; "median", the model of all columns with inclusion
        of at least 0.5;
        "best", the likeliest model. interval: a probability, such as 0.95: a DataFrame with mean, lower and upper of a new
        observation.
        seed: of the draws behind the interval. Returns a Series, or that DataFrame.
        """
        as_choice(estimator, "estimator", ESTIMATORS, SelectionError)
        table, index = self._new_rows(X)
        seed = as_size(seed, "seed", SelectionError, least=0)
        if interval is not None:
            interval = as_real(interval, "interval", SelectionError, "a probability between 0 and 1")
            if not 0 < interval < 1:
                raise SelectionError("`interval` is out of range.", expected="a probability between 0 and 1", found=f"{interval:g}")
        if estimator == "bma":
            draws = self._draws
            mean = self.average()
        else:
            draws = self._draws_of(self._columns_of(estimator), seed)
            mean = self._mean_of(self._columns_of(estimator))
        center = table @ mean[:-1] + mean[-1]
        if interval is None:
            return pd.Series(center, index=index, name=self._data.response_name)
        beta, constant, noise = draws
        rng = np.random.default_rng([seed, 1])
        simulated = table @ beta.T + constant + noise * rng.normal(size=(len(table), len(noise)))
        low, high = np.quantile(simulated, [(1 - interval) / 2, (1 + interval) / 2], axis=1)
        return pd.DataFrame({"mean": center, "lower": low, "upper": high}, index=index)

    def _new_rows(self, X: Any) -> tuple[np.ndarray, Any]:
        index = getattr(X, "index", None)
        if hasattr(X, "columns") and hasattr(X, "to_numpy"):
            missing = [name for name in self.names if name not in [str(c) for c in X.columns]]
            if missing:
                raise SelectionError(
                    "`X` lacks columns of the data.", expected=f"{len(self.names)} columns", found=f"no {missing[:5]}"
                )
            X = X.rename(columns=str)[self.names] if hasattr(X, "rename") else X
        try:
            table = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X, dtype=np.float64)
        except (TypeError, ValueError) as cause:
            raise SelectionError("`X` is not numeric.", found=str(cause)[:80]) from None
        if table.ndim != 2 or table.shape[1] != len(self.names):
            raise SelectionError("`X` has the wrong shape.", expected=f"(rows, {len(self.names)})", found=f"shape {table.shape}")
        if not np.isfinite(table).all():
            raise SelectionError("`X` has missing or infinite values.", found=f"in {int((~np.isfinite(table)).any(1).sum())} rows")
        return table, index if isinstance(index, pd.Index) else pd.RangeIndex(len(table))

    def average(self) -> np.ndarray:
        """(P + 1,) coefficients averaged over models, and the intercept."""
        beta = np.zeros(len(self.names))
        beta[self._data.entering] = self._answer.mean.value * units(self._answer.question)
        return self._with_base(beta)

    def _with_base(self, beta: np.ndarray, draw: np.ndarray | None = None) -> np.ndarray:
        """What is always in, fitted to what `beta` leaves; draw: noise of that fit in the basis."""
        data, used = self._data, np.flatnonzero(beta)
        along = data.base.T @ (data.y - data.X[:, used] @ beta[used])
        along = along if draw is None else along + draw
        found = self._of_base @ along
        beta = beta.copy()
        beta[data.always] = found[1:] if data.intercept else found
        return np.append(beta, found[0] if data.intercept else 0.0)

    @functools.cached_property
    def _of_base(self) -> np.ndarray:
        """What turns coefficients of the basis into those of the intercept, where there is one, and the forced columns."""
        data = self._data
        ones = [np.ones((data.n, 1))] if data.intercept else []
        every = np.concatenate([*ones, data.X[:, data.always]], axis=1)
        return np.linalg.lstsq(every, data.base, rcond=None)[0] if every.shape[1] else np.zeros((0, data.base.shape[1]))

    def _columns_of(self, estimator: str) -> np.ndarray:
        a = self._answer
        if estimator == "median":
            return np.flatnonzero(a.inclusion.value >= 0.5)
        return a.models.columns(int(np.argmax(a.models.log_posterior)))

    def _mean_of(self, columns: np.ndarray) -> np.ndarray:
        from .coefficient_priors import make_evidence

        q = self._answer.question
        fit = fit_model(q, columns)
        evidence = make_evidence(q.prior, q.data.n, q.data.left, q.data.p, fit.size, np.float32)
        s = float(np.asarray(evidence.shrinkage(fit.size, np.float32(fit.Q))[0])) if fit.size else 1.0
        beta = np.zeros(len(self.names))
        beta[q.data.entering[columns]] = s * fit.beta * units(q)[columns]
        return self._with_base(beta)

    def _draws_of(self, columns: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        fit = fit_model(self._answer.question, columns)
        return self._drawn([fit] * 1000, seed)

    @functools.cached_property
    def _draws(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(draws, P) coefficients, (draws,) intercepts, (draws,) noise: models by probability, then their coefficients."""
        m = self._answer.models
        share = np.cumsum(m.frequency / m.frequency.sum())
        num = min(DRAWS, max(400, int(2e7 / len(self.names))))
        place = np.minimum(np.searchsorted(share, (np.arange(num) + 0.5) / num), len(share) - 1)
        fits = {i: fit_model(self._answer.question, m.columns(i)) for i in np.unique(place)}
        return self._drawn([fits[i] for i in place], 0)

    def _drawn(self, fits: list, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        data, rng = self._data, np.random.default_rng([seed, 0])
        every, noise = np.zeros((len(fits), len(self.names) + 1)), np.zeros(len(fits))
        for i, fit in enumerate(fits):
            beta = np.zeros(len(self.names))
            beta[data.entering[fit.columns]], noise[i] = draw_coefficients(self._answer.question, fit, rng)
            every[i] = self._with_base(beta, noise[i] * rng.normal(size=data.base.shape[1]))
        return every[:, :-1], every[:, -1], noise

    @functools.cached_property
    def _intervals(self) -> tuple[np.ndarray, np.ndarray]:
        draws = self._draws[0]
        low, high = np.zeros((2, draws.shape[1]))
        used = np.flatnonzero(draws.any(axis=0))
        low[used], high[used] = np.quantile(draws[:, used], [0.025, 0.975], axis=0)
        return low, high

    # ---- again, shown ---------------------------------------------------------------------------------------------

    def reweight(self, model_prior: Any, expected_size: Any = None, max_size: Any = None) -> Selection:
        """The same under another prior of the models, without sampling again.

        model_prior, expected_size, max_size: as in `saltus.variable_selection`. Enumerated models are weighed exactly;
        visits by importance
        weights, and `told["effective"]` says how many visits that is worth: where it is small, sample again.
        """
        question = self._answer.question
        prior = read_model_prior(model_prior, question.data.p, expected_size, max_size, question.data.entering)
        new = reweighted(self._answer, replace(question, model_prior=prior))
        return Selection(new, {**self.told, "model_prior": prior.told, "effective": new.effective, "reweighted": True})

    def summary(self, most: int = 20) -> str:
        """A page of text: the question, the columns by probability, the best models, what to doubt. most: columns that are
        shown.
        """
        from .words import summary

        return summary(self, as_size(most, "most", SelectionError))

    def plot(self, kind: str = "all", most: int = 30) -> Any:
        """A matplotlib figure. kind: "all", "inclusion", "models", "size", "coefficients" or "convergence". most: columns
        that are named.
        """
        from .pictures import draw

        return draw(self, kind, as_size(most, "most", SelectionError))

    @functools.cached_property
    def run(self) -> Any:
        """The visits as an xarray DataTree: `posterior` may be averaged as it is; `weighted_posterior` has the raw visits
        and log-weights.
        """
        from .tree import tree

        return tree(self)

    def __repr__(self) -> str:
        return self.summary()

    def _series(self, entering: np.ndarray, always: float, out: float, name: str | None = None) -> pd.Series:
        data = self._data
        values = np.where(data.always, always, out)
        values[data.entering] = entering
        return pd.Series(values, index=pd.Index(self.names, name="column"), name=name)
