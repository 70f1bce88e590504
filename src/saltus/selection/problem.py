"""Data and priors -> what a chain needs, for models of at most m columns."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from .active import Columns
from .chain import Problem
from .coefficient_priors import CoefficientPrior, make_evidence
from .data import Data
from .model_priors import ModelPrior

GRAM = 5000  # columns up to which all their products are stored
SINGLE = 2e7  # entries of X from which on they are stored in single precision
KAPPA = 5.0
SWAPS = 30.0  # at most; rates of flips add up to about half the size of a model
TOGETHER = 1000  # columns up to which chains step side by side; beyond, one after the other, what a move does not need is left out


@dataclass(frozen=True)
class Question:
    """What is asked: the data, the prior of the coefficients, the prior of the models."""

    data: Data
    prior: CoefficientPrior
    model_prior: ModelPrior

    @property
    def cap(self) -> int:
        """The most columns a model can have."""
        data = self.data
        most = min(data.p, self.model_prior.largest)
        return most if self.prior.ridge else min(most, data.left - 1)

    @property
    def scale(self) -> float:
        """Of the columns, whose length is 1 in the data: √(slab n) for independent slabs."""
        number = self.prior.number(self.data.n, self.data.p)
        return float(np.sqrt(number * (self.data.n - 1))) if self.prior.ridge else 1.0

    def gram(self) -> np.ndarray:
        """(p, p), with the ridge."""
        X = self.data.columns * self.scale
        return X.T @ X + float(self.prior.ridge) * np.eye(self.data.p)

    def columns(self, gram: bool | None = None) -> Columns:
        data, ridge = self.data, float(self.prior.ridge)
        stored = data.p <= GRAM if gram is None else gram
        X = data.columns if self.scale == 1 else data.columns * self.scale
        single = not stored and X.size > SINGLE
        rows = None if stored else jnp.asarray(np.ascontiguousarray(X.T, np.float32 if single else np.float64))
        return Columns(
            jnp.asarray(X.T @ data.response),
            jnp.full(data.p, self.scale**2 + ridge),
            gram=jnp.asarray(X.T @ X) if stored else None,
            rows=rows,
            ridge=ridge,
            tolerance=1e-5 if single else 1e-7,
        )

    def problem(self, most: int, columns: Columns, swaps: float | None = None) -> Problem:
        """For models of at most `most` columns."""
        data = self.data
        table = np.full(most + 2, -np.inf)
        top = min(most + 1, self.cap) + 1
        table[:top] = self.model_prior.by_size[:top]
        return Problem(
            columns,
            make_evidence(self.prior, data.n, data.left, data.p, most),
            jnp.asarray(table),
            jnp.asarray(self.model_prior.log_odds),
            jnp.asarray(min(KAPPA, float(data.p))),
            jnp.asarray(float(np.clip(data.p / 50, 1, SWAPS)) if swaps is None else swaps),
            together=data.p <= TOGETHER or (columns.gram is None and data.X.size > SINGLE),
        )
