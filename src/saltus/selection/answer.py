"""What is known of the posterior, from all models or from visits: one record for both."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import numpy as np
import scipy.sparse

from .chain import MOMENTS
from .enumeration import Enumerated, enumerate_models
from .estimates import BATCHES, Estimate, inclusion, moment, ratio, rhat
from .problem import Question
from .sampling import Sampled

LISTED = 100_000  # models that are listed of an enumeration


@dataclass(frozen=True)
class Models:
    """Models by falling probability. slots: (models, most) their columns, p where empty. sizes: (models,).

    log_posterior: log p(γ) p(y | γ) / p(y | no column). frequency: share of the weighted visits, and error: of that, for the first.
    """

    slots: np.ndarray
    sizes: np.ndarray
    log_posterior: np.ndarray
    frequency: np.ndarray
    error: np.ndarray

    def __len__(self) -> int:
        return len(self.sizes)

    def columns(self, i: int) -> np.ndarray:
        """Of one model."""
        return self.slots[i, : self.sizes[i]]

    def ordered(self, order: np.ndarray, **changes: Any) -> Models:
        return Models(**{f.name: getattr(self, f.name)[order] for f in fields(self)} | changes)


@dataclass(frozen=True)
class Answer:
    """Sums over the posterior for the p columns that can enter, in scaled units, each with its Monte-Carlo error (0 if exact).

    inclusion: p(in). mean, second, positive: of p(in) times the coefficient, its square, and 1 where it is positive. size:
    (p + 1,).
    log_evidence: log Σ p(γ) p(y | γ) / p(y | no column). rhat: (p,). draws: which visit saw which model, or nothing if exact.
    """

    question: Question
    inclusion: Estimate
    mean: Estimate
    second: Estimate
    positive: Estimate
    size: Estimate
    log_evidence: Estimate
    models: Models
    rhat: np.ndarray
    exact: bool
    draws: Any = None
    effective: float = np.inf


@dataclass(frozen=True)
class Draws:
    """Visits after the warm-up: model (chains, visits), an index into Models; weight (chains, visits)."""

    model: np.ndarray
    weight: np.ndarray

    def cells(self) -> tuple[np.ndarray, int]:
        """(chains, visits) which of the batches for errors a visit is in, and how many there are in all."""
        chains, visits = self.weight.shape
        batch = np.minimum(np.arange(visits) * BATCHES // max(visits, 1), BATCHES - 1)
        return np.arange(chains)[:, None] * BATCHES + batch, chains * BATCHES

    def by_model(self, num: int, factor: np.ndarray | None = None) -> Any:
        """(cells, models) sparse: weight of each model in each batch."""
        cells, every = self.cells()
        weight = self.weight if factor is None else self.weight * factor[self.model]
        return scipy.sparse.coo_matrix((weight.ravel(), (cells.ravel(), self.model.ravel())), shape=(every, num)).tocsr()

    def estimate(self, weights: Any, values: Any) -> Estimate:
        """Mean of `values` (models, ...) under `weights` of `by_model`, with its error."""
        chains = self.weight.shape[0]
        above = np.asarray((weights @ values).todense() if scipy.sparse.issparse(values) else weights @ values)
        below = np.asarray(weights.sum(axis=1)).reshape(chains, -1)
        return ratio(above.reshape(chains, -1, *above.shape[1:]), below)


def exactly(value: Any) -> Estimate:
    value = np.asarray(value, np.float64)
    return Estimate(value, np.zeros_like(value))


def answer_by_enumeration(question: Question) -> Answer:
    with jax.enable_x64(True):
        found = enumerate_models(question.problem(max(question.cap, 1), question.columns(gram=True)), question.gram())
    p, share = question.data.p, found.probabilities
    size = np.bincount(found.sizes, weights=share, minlength=p + 1)
    inside, mean, second, positive = (
        exactly(x) for x in (np.clip(found.inclusion, 0, 1), found.mean, found.second, found.positive)
    )
    return Answer(
        question, inside, mean, second, positive, exactly(size), exactly(found.log_total), _listed(found, p), np.ones(p), exact=True
    )


def _listed(found: Enumerated, p: int) -> Models:
    share = found.probabilities
    num = min(LISTED, int(np.sum(share > 0)))
    top = np.argpartition(-share, num - 1)[:num]
    top = top[np.argsort(-share[top], kind="stable")]
    slots = np.sort(np.where((top[:, None] >> np.arange(p)) & 1, np.arange(p), p), axis=1)
    return Models(slots, found.sizes[top], found.log_posterior[top], share[top], np.zeros(num))


def answer_by_sampling(question: Question, sampled: Sampled) -> Answer:
    nothing, p = np.zeros(len(sampled.slots)), question.data.p
    every = Models(sampled.slots, np.sum(sampled.slots < p, axis=1), sampled.log_posterior, nothing, nothing)
    models, draws = _ranked(every, Draws(sampled.model, sampled.weights))
    mean, second, positive = (moment(sampled.totals, name) for name in MOMENTS)
    return Answer(
        question,
        inclusion(sampled.totals),
        mean,
        second,
        positive,
        _sizes(models, draws, p),
        _log_evidence(models, draws),
        models,
        rhat(sampled.totals),
        exact=False,
        draws=draws,
        effective=_worth(draws.weight),
    )


def _ranked(models: Models, draws: Draws, factor: np.ndarray | None = None) -> tuple[Models, Draws]:
    """By falling posterior, with how often each was visited; the visits renumbered alike. factor: of the weights, by model."""
    num = len(models)
    weights = draws.by_model(num, factor)
    chains = draws.weight.shape[0]
    below = np.asarray(weights.sum(axis=1)).ravel()
    share = np.asarray(weights.sum(axis=0)).ravel() / below.sum()
    order = np.argsort(-models.log_posterior, kind="stable")
    shown = order[:1000]  # errors of so many models
    above = np.asarray(weights[:, shown].todense())
    error = np.full(num, np.nan)
    error[: len(shown)] = ratio(above.reshape(chains, -1, len(shown)), below.reshape(chains, -1)).error
    place = np.empty(num, int)
    place[order] = np.arange(num)
    ranked = models.ordered(order, frequency=share[order], error=error)
    return ranked, Draws(place[draws.model], draws.weight if factor is None else draws.weight * factor[draws.model])


def _sizes(models: Models, draws: Draws, p: int) -> Estimate:
    sizes = models.sizes
    most = int(sizes.max(initial=0))
    table = scipy.sparse.coo_matrix((np.ones(len(sizes)), (np.arange(len(sizes)), sizes)), shape=(len(sizes), most + 1)).tocsr()
    found = draws.estimate(draws.by_model(len(sizes)), table)
    pad = np.zeros(p - most)
    return Estimate(np.concatenate([found.value, pad]), np.concatenate([found.error, pad]))


def _log_evidence(models: Models, draws: Draws) -> Estimate:
    """log of (Σ over a set of models of p(γ) p(y | γ)) / (how often they are visited): the set from the first half, visits
    from the second.
    """
    visits = draws.weight.shape[1]
    half = visits // 2
    chosen = np.unique(draws.model[:, :half])
    chosen = chosen[np.argsort(-models.log_posterior[chosen])][:10_000]
    later = Draws(draws.model[:, half:], draws.weight[:, half:])
    inside = np.zeros((len(models), 1))
    inside[chosen] = 1
    often = later.estimate(later.by_model(len(models)), inside)
    if not often.value[0] > 0:
        return Estimate(np.asarray(np.nan), np.asarray(np.nan))
    total = np.logaddexp.reduce(models.log_posterior[chosen])
    return Estimate(np.asarray(total - np.log(often.value[0])), np.asarray(often.error[0] / often.value[0]))


def _worth(weight: np.ndarray) -> float:
    """Effective number of weighted visits, their dependence apart."""
    return float(weight.sum() ** 2 / np.sum(weight**2))


def reweighted(answer: Answer, question: Question) -> Answer:
    """The answer under another prior of the models: by enumerating again, or by weighting the visits anew."""
    if answer.exact:
        return answer_by_enumeration(question)
    models, draws, p = answer.models, answer.draws, question.data.p
    before, after = answer.question.model_prior, question.model_prior
    then, now = (prior.log_prob(models.sizes, _odds(models, prior.log_odds)) for prior in (before, after))
    change = now - then
    factor = np.exp(change - change[np.isfinite(change)].max(initial=0))
    models, draws = _ranked(replace(models, log_posterior=models.log_posterior + change), draws, factor)
    weights = draws.by_model(len(models))
    rows, slots = np.nonzero(models.slots < p)
    inside = scipy.sparse.coo_matrix((np.ones(len(rows)), (rows, models.slots[rows, slots])), shape=(len(models), p)).tocsr()
    share = draws.estimate(weights, inside)
    scale = share.value / np.where(
        answer.inclusion.value > 0, answer.inclusion.value, 1
    )  # coefficients if in are taken to be as before
    mean, second, positive = (Estimate(x.value * scale, x.error * scale) for x in (answer.mean, answer.second, answer.positive))
    return Answer(
        question,
        share,
        mean,
        second,
        positive,
        _sizes(models, draws, p),
        _log_evidence(models, draws),
        models,
        np.full(p, np.nan),
        exact=False,
        draws=draws,
        effective=_worth(draws.weight),
    )


def _odds(models: Models, log_odds: np.ndarray) -> np.ndarray:
    """(models,) log_odds of the columns that are in."""
    return np.append(log_odds, 0.0)[models.slots].sum(axis=1)
