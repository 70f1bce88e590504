"""Claims about which sampler is better, judged; and the reference numbers beside ours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..samplers import look
from .verdict import ALIKE, AXES, DECIDED, FAILS, HOLDS, UNDECIDED, Comparison, Estimate, Results, at_budget, common_budget, compare


@dataclass(frozen=True)
class Ranking:
    """The paper says: `first` `relation` `second`, where > is "samples better than"."""

    problem: str
    first: str
    relation: str
    second: str

    def __str__(self) -> str:
        sign = {">": "better than", ">=": "at least as good as", "=": "as good as"}[self.relation]
        return f"{look(self.first).label} {sign} {look(self.second).label}"


@dataclass(frozen=True)
class Judged:
    """A claim, a metric, and what came out along each axis."""

    claim: Ranking
    metric: str
    found: dict[str, Comparison]

    @property
    def verdicts(self) -> dict[str, str]:
        return {axis: found.verdict(self.claim.relation) for axis, found in self.found.items()}


def chain(problem: str, text: str) -> list[Ranking]:
    """ "pavg > ncg = avg" as its neighbouring pairs."""
    words = text.split()
    return [Ranking(problem, words[i], words[i + 1], words[i + 2]) for i in range(0, len(words) - 2, 2)]


def pairs(problem: str, first: str, relation: str, others: Sequence[str]) -> list[Ranking]:
    """The first held against each of the others."""
    return [Ranking(problem, first, relation, other) for other in others]


METRICS = {
    "poly2": ("kl", "covariance"),
    "poly4": ("kl", "covariance"),
    "regression": ("marginal", "pairwise"),
}


def judge(cells: Results, rankings: Sequence[Ranking]) -> list[Judged]:
    """Every ranking of which both samplers have been measured."""
    judged = []
    for claim in rankings:
        first, second = cells.get((claim.problem, claim.first)), cells.get((claim.problem, claim.second))
        if first and second:
            for metric in METRICS[claim.problem]:
                judged.append(Judged(claim, metric, {axis: compare(first, second, metric, axis) for axis in AXES}))
    return judged


@dataclass(frozen=True)
class Number:
    """A reference number, what was measured, and whether they agree."""

    problem: str
    sampler: str
    metric: str
    expected: float
    found: Estimate
    seeds: int

    @property
    def verdict(self) -> str:
        """Within 15 %, as measured; or not, by two standard errors. The reference is one run, as noisy as one of our seeds."""
        off = abs(self.found.mean / self.expected - 1)
        noise = DECIDED * math.hypot(self.found.error, math.sqrt(self.seeds) * self.found.error) / self.expected
        if off <= ALIKE:
            return HOLDS
        return FAILS if off - noise > ALIKE else UNDECIDED


# One run of an independent numpy implementation at the quick scale; the paper prints curves, not numbers.
_SAMPLERS = ("pavg", "ncg", "avg", "gibbs", "gwg-ordinal", "uniform-mh", "gwg")
REFERENCES = {
    ("poly2", "covariance"): dict(zip(_SAMPLERS, (1.02, 2.19, 3.91, 4.67, 4.73, 4.97, 6.89), strict=True)),
    ("poly2", "kl"): dict(zip(_SAMPLERS, (0.067, 0.43, 1.5, 4.2, 4.0, 2.9, 10.7), strict=True)),
    ("poly4", "covariance"): dict(zip(_SAMPLERS, (9.8, 10.3, 11.3, 13.7, 13.3, 14.5, 15.3), strict=True)),
    ("poly4", "kl"): dict(zip(_SAMPLERS, (3.3, 3.1, 3.7, 6.8, 6.7, 7.0, 9.9), strict=True)),
    ("regression", "marginal"): {"pavg": 0.0060, "ncg": 0.0080, "avg": 0.0085, "gwg": 0.0104, "gibbs": 0.0304},
    ("regression", "pairwise"): {"pavg": 0.080, "ncg": 0.114, "avg": 0.119, "gwg": 0.150, "gibbs": 0.452},
}


def numbers(cells: Results) -> list[Number]:
    """Errors at the end of the run beside the reference numbers."""
    found = []
    for (problem, metric), expected in REFERENCES.items():
        for sampler, value in expected.items():
            measured = cells.get((problem, sampler))
            if measured:
                end = common_budget(measured, "iterations")
                last = at_budget(measured, metric, "iterations", end)
                found.append(Number(problem, sampler, metric, value, last, len(measured)))
    return found
