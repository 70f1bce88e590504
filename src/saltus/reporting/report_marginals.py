"""Marginals as suits the values: bars for two values, histograms for numbers, divided rows for categories, maps for many sites."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from .._words import listed, significant
from ..judging.rows import Judgement
from . import report_pictures as pictures
from .report_looked import Variable

_MOST_BARS, _MOST_HISTOGRAMS, _FEWEST_OF_A_MAP, _MOST_LABELS = 40, 12, 16, 64
_MOST_VARIABLES = 12


class Marginal(NamedTuple):
    """Pictures of one variable. small: pictures that stand side by side."""

    title: str
    caption: str
    pictures: list[Markup]
    small: list[Markup]
    legend: list[tuple[str, str]]


def marginals(variables: list[Variable], table: list[Judgement]) -> list[Marginal]:
    """One for each variable, in order."""
    ess = {row.name: row.ess for row in table}
    found = [_marginal(v, ess) for v in variables[:_MOST_VARIABLES]]
    return [each for each in found if each.pictures or each.small]


def _marginal(v: Variable, ess: dict[str, float]) -> Marginal:
    values = _values(v.draws)
    if not v.numeric:
        return _of_categories(v, values)
    if len(values) == 2:
        return _of_two_values(v, values, ess)
    return _of_numbers(v)


def _values(draws: np.ndarray) -> np.ndarray:
    """The values that occur; of very many draws, of some."""
    return np.unique(draws.ravel()[:: max(draws.size // 2**21, 1)])


def _of_two_values(v: Variable, values: np.ndarray, ess: dict[str, float]) -> Marginal:
    """How often each site has the higher of two values."""
    low, high = values
    share = (v.draws == high).mean(axis=(0, 1))
    names = [pictures.cut(name, 80) for name in v.names]
    title = f"{v.name}: how often a site is {high}"
    found, words = [], []
    if len(share) >= _FEWEST_OF_A_MAP:
        image, width = pictures.site_map(share, 0, 1, f"Share of draws with {high}, site by site")
        found.append(image)
        words.append(f"Map: sites row by row, {width} to a row; blue {low}, white half of the draws, red {high}.")
    order = np.argsort(-share, kind="stable")[: _MOST_BARS if len(share) <= _MOST_BARS else _MOST_BARS // 2]
    errors = [_error(share[i], ess.get(v.names[i]) or ess.get(names[i])) for i in order]
    found.append(pictures.bars([names[i] for i in order], share[order].tolist(), errors, 1.0, title))
    some = f"the {len(order)} highest of {len(share)}" if len(order) < len(share) else "all sites, the highest first"
    words.append(f"Bars: {some}, with two standard errors where the ESS is known.")
    return Marginal(title, " ".join(words), found, [], [])


def _error(share: float, ess: float | None) -> float:
    return math.sqrt(share * (1 - share) / ess) if ess else 0.0


def _of_numbers(v: Variable) -> Marginal:
    """Histograms of some components, and a map of means of many."""
    with np.errstate(all="ignore"):
        means = v.draws.mean(axis=(0, 1), dtype=np.float64)
    found, words = [], []
    finite = means[np.isfinite(means)]
    if len(means) >= _FEWEST_OF_A_MAP and finite.size:
        low, high = float(finite.min()), float(finite.max())
        image, width = pictures.site_map(means, low, high, "Means, site by site")
        found.append(image)
        words.append(f"Map: means, row by row, {width} to a row, from blue at {significant(low)} to red at {significant(high)}.")
    which = np.unique(np.linspace(0, len(means) - 1, min(len(means), _MOST_HISTOGRAMS)).round().astype(int))
    small = [pictures.histogram(v.draws[..., i].ravel(), v.names[i]) for i in which]
    if len(which) < len(means):
        words.append(f"Histograms of {len(which)} of {len(means)}, evenly chosen.")
    return Marginal(f"{v.name}: values", " ".join(words), found, [svg for svg in small if svg], [])


def _of_categories(v: Variable, values: np.ndarray) -> Marginal:
    """How often each site has each label."""
    labels = values[:_MOST_LABELS]
    shares = np.stack([(v.draws == label).mean(axis=(0, 1)) for label in labels], axis=1)
    found, words = [], []
    if len(shares) >= _FEWEST_OF_A_MAP:
        image, width = pictures.site_map(shares.max(axis=1), 0, 1, "Share of the most frequent label, site by site")
        found.append(image)
        words.append(f"Map: share of the most frequent label, sites row by row, {width} to a row, blue 0, red 1.")
    which = np.unique(np.linspace(0, len(shares) - 1, min(len(shares), _MOST_BARS)).round().astype(int))
    names = [str(label) for label in labels]
    found.append(pictures.shares([v.names[i] for i in which], names, shares[which], f"{v.name}: labels"))
    if len(values) > len(labels):
        words.append(f"{len(labels)} of {len(values)} labels: {listed(names)}.")
    if len(which) < len(shares):
        words.append(f"Rows: {len(which)} of {len(shares)} sites, evenly chosen.")
    legend = [(f"c{j % pictures.NUM_COLOURS}", pictures.cut(name, 40)) for j, name in enumerate(names[:16])]
    return Marginal(f"{v.name}: how often a site has each label", " ".join(words), found, [], legend)
