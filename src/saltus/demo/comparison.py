"""Draws against exact marginals, in Monte-Carlo standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..diagnostics import ess_of_chains
from ..reporting.summary import Summary
from ..target import Target

_RARE = 10  # expected visits of a chain, below which they say nothing about its autocorrelation
_DOUBT = 0.01  # the worst error would be as large so rarely


@dataclass(frozen=True)
class Group:
    """Copies of one column, or the sites without any: all have the same exact probability."""

    name: str
    sites: np.ndarray
    exact: float
    drawn: float
    error: float  # standard, of `drawn`

    @property
    def off(self) -> float:
        """By how many standard errors."""
        return (self.drawn - self.exact) / self.error


@dataclass(frozen=True)
class Comparison:
    exact: np.ndarray  # (d,) P(s_i = 1)
    drawn: np.ndarray
    error: np.ndarray  # standard, of `drawn`
    rare: np.ndarray  # sites that are 1 too rarely to be judged alone
    groups: list[Group]

    @property
    def judged(self) -> np.ndarray:
        """By how many standard errors each site that is not rare is off."""
        return ((self.drawn - self.exact) / self.error)[~self.rare]

    @property
    def num_rare(self) -> int:
        return int(self.rare.sum())

    @property
    def worst(self) -> float:
        return float(np.abs(self.judged).max())

    @property
    def largest(self) -> float:
        """The error of the site that is off by most standard errors."""
        return float(np.abs(self.drawn - self.exact)[~self.rare][np.abs(self.judged).argmax()])

    @property
    def usual(self) -> float:
        """The worst of as many errors that are chance alone: its median."""
        return self._worst_of_chance(0.5)

    @property
    def fits(self) -> bool:
        """Whether chance explains the errors of the sites, and of the groups."""
        most = self._worst_of_chance(1 - _DOUBT)
        return self.worst <= most and all(abs(group.off) <= most for group in self.groups)

    def _worst_of_chance(self, quantile: float) -> float:
        return float(ndtri((1 + quantile ** (1 / len(self.judged))) / 2))


def compare(target: Target, run: Any, summary: Summary) -> Comparison:
    """Every site, and every group of sites, of a run of `targets.sparse_regression`.

    The standard error is sqrt(p(1-p)/ESS) with the exact p. A site that is hardly ever visited has no ESS of its own to
    speak of, and gets that of the energy or the distance, whichever is less.
    """
    s = run["posterior"]["s"].transpose("chain", "draw", "site").values.astype(np.float64)
    exact: np.ndarray = target.truth.marginals  # type: ignore[attr-defined]
    variance = exact * (1 - exact)
    rare = variance * s.shape[1] < _RARE
    effective = np.where(rare, min(summary.ess.values()), ess_of_chains(np.moveaxis(s, 2, 1)))
    error = np.sqrt(variance / np.maximum(effective, 1))
    return Comparison(exact, s.mean(axis=(0, 1)), error, rare, [_group(s, exact, sites) for sites in _alike(target)])


def _alike(target: Target) -> list[np.ndarray]:
    """The sites of each distinct column, in the order of their first, then those that belong to no column."""
    columns = np.asarray(target.params["groups"]) > 0
    groups = sorted((np.flatnonzero(row) for row in columns), key=lambda sites: int(sites[0]))
    return [*groups, np.arange(columns.shape[1], target.space.num_sites)]


def _group(s: np.ndarray, exact: np.ndarray, sites: np.ndarray) -> Group:
    share = s[..., sites].mean(axis=-1)
    error = share.std(ddof=1) / np.sqrt(max(ess_of_chains(share), 1))
    return Group(_name(sites), sites, float(exact[sites].mean()), float(share.mean()), float(error))


def _name(sites: np.ndarray) -> str:
    whole = len(sites) > 1 and np.ptp(sites) == len(sites) - 1
    return f"{sites[0]} to {sites[-1]}" if whole else ", ".join(map(str, sites))
