"""Predicted against true changes at one set of states: how they compare."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...target import Target

FAR_OFF = 2.0  # of f: proposals weigh moves by exp(D/2), so from here on by the wrong factor of e or more
RANKS, BLIND, OFTEN_OFF = 0.5, 0.5, 0.5  # what a trustworthy model reaches, or stays below
_NEVER, _ALWAYS = -4.0, 10.0  # moves below the one are hardly ever made, moves above the other at once


@dataclass(frozen=True)
class LocalFit:
    """Predicted (p) against true (t) single-site changes of f at one set of states, all moves looked at pooled.

    num_states: with a finite log_prob. num_moves: compared, those whose p and t are both finite.
    rank_correlation: Spearman's, ties (to rounding) sharing their rank; 0 where p is the same for all moves and t is not,
    None where t is the same for all moves (nothing to rank).
    r_squared: 1 - Σ (t - p)^2 / Σ (t - mean t)^2. Nothing is fitted: p is used as samplers use it, so a p of the right
    order and the wrong size is not forgiven, and a p that is worse than one constant for all moves gives a negative number.
    Sizes below -4 and above 10 count as -4 and 10, since nothing depends on more: one large penalty hides no other move.
    1 where t is the same for all moves and p is right, None where it is wrong.
    zero_share: of sites looked at (each state's counted), those with p exactly 0 at every value while t is not.
    far_off: of the moves that would be made by p or by t (above -4), the share with p and t more than 2 apart. Moves that
    both rule out or that both are sure of (above 10) are right whatever their sizes.
    largest_error: largest |t - p|. largest_change: largest |t|. scale: median |p| / median |t|, 1 for the right size.
    impossible: moves to log_prob = -inf, left out. undefined: moves to NaN or +inf, left out.
    unpredicted: moves whose p is NaN or infinite, left out too.
    nearby: the same for moves of one hop only, on spaces whose values have an order; None where all moves are one hop.
    """

    num_states: int
    num_moves: int
    rank_correlation: float | None
    r_squared: float | None
    zero_share: float
    far_off: float
    largest_error: float
    largest_change: float
    scale: float | None
    impossible: int
    undefined: int
    unpredicted: int
    nearby: LocalFit | None = None

    @property
    def judged(self) -> LocalFit:
        """The moves that decide: a step size keeps samplers near, so one hop where values have an order."""
        return self.nearby if self.nearby is not None and self.nearby.num_moves else self

    @property
    def worse_than_none(self) -> bool:
        """The same change predicted for every move would be nearer to the truth."""
        return self.r_squared is not None and self.r_squared < 0

    @property
    def trustworthy(self) -> bool:
        fit = self.judged
        if not fit.num_moves or self.unpredicted or fit.zero_share >= BLIND or fit.far_off >= OFTEN_OFF or fit.worse_than_none:
            return False
        return fit.r_squared == 1 if fit.rank_correlation is None else fit.rank_correlation >= RANKS


class Seen:
    """What was computed, in float64, on the host: (states, sites, values) arrays of predicted and true changes."""

    def __init__(self, target: Target, f: np.ndarray, sites: np.ndarray, seen: dict[str, np.ndarray]):
        self.eps = float(np.finfo(f.dtype).eps)
        self.sites = sites.reshape(-1, sites.shape[-1])
        self.drawn = f  # of random states
        self.f = np.concatenate([f, seen["history"][-1]]).astype(np.float64)
        after = seen["after"].astype(np.float64)
        self.possible_state = np.isfinite(self.f)
        here = self.possible_state[:, None, None]
        with np.errstate(invalid="ignore", over="ignore"):
            self.true = after - self.f[:, None, None]
        self.predicted = seen["predicted"].astype(np.float64) if "predicted" in seen else self.true
        self.impossible = here & (after == -np.inf)
        self.undefined = here & (np.isnan(after) | (after == np.inf))
        defined = here & np.isfinite(self.true)
        self.unpredicted = defined & ~np.isfinite(self.predicted)
        self.compared = defined & ~self.unpredicted
        self.nearby = seen["hops"] == 1
        self.ordered = bool((~self.nearby).any())
        self.values = np.concatenate([self.f[self.possible_state], after[defined]])  # of f
        self.rounding = self._rounding(after, defined, target.space.num_sites)

    def _rounding(self, after: np.ndarray, defined: np.ndarray, num_sites: int) -> np.ndarray:
        """Of each true change: that of f before and after; where f happens to be near 0, that of its terms."""
        usual = np.median(np.abs(self.values)) if self.values.size else 0.0
        summed = math.sqrt(num_sites) * np.median(np.abs(self.true[defined])) if defined.any() else 0.0
        own = np.maximum(np.where(defined, np.abs(after), 0), np.where(defined, np.abs(self.f)[:, None, None], 0))
        return 4 * self.eps * np.maximum(own, max(usual, summed))

    @property
    def zero(self) -> np.ndarray:
        """(states, sites) predictions of exactly 0 at every value, though f changes."""
        told = np.where(self.compared | self.unpredicted, self.predicted, 0) != 0
        return ~told.any(axis=-1) & self.changes.any(axis=-1)

    @property
    def changes(self) -> np.ndarray:
        """Moves that change f by more than its rounding."""
        return self.compared & (np.abs(np.where(self.compared, self.true, 0)) > self.rounding)

    def blind_sites(self) -> tuple[np.ndarray, int]:
        """Sites that are `zero` somewhere and predicted nowhere, and the number of different sites looked at."""
        told = (np.where(self.compared | self.unpredicted, self.predicted, 0) != 0).any(axis=-1)
        looked = self.compared.any(axis=-1)
        return np.setdiff1d(self.sites[self.zero], self.sites[told]), len(np.unique(self.sites[looked]))

    def fit(self, states: slice, among: np.ndarray | None = None) -> LocalFit:
        """The fit at some states: of all moves, and inside it that of the moves of one hop."""
        chosen = np.ones_like(self.compared[states]) if among is None else among
        here = self.compared[states] & chosen
        t, p, rounding = self.true[states][here], self.predicted[states][here], self.rounding[states][here]
        clipped = np.clip(t, _NEVER, _ALWAYS)
        loose = np.where(np.abs(t - clipped) > rounding, 0, rounding)
        looked, zero = here.any(axis=-1), self.zero[states]
        unit = min(max(np.abs(t).max(initial=0), np.abs(p).max(initial=0)) or 1.0, _ALWAYS)  # the square of 1e-200 is no float
        apart = np.abs(np.minimum(t, _ALWAYS) - np.minimum(p, _ALWAYS))[np.maximum(t, p) > _NEVER]
        return LocalFit(
            num_states=int(self.possible_state[states].sum()),
            num_moves=len(t),
            rank_correlation=spearman(t, p, rounding, np.maximum(rounding, 4 * self.eps * np.abs(p))),
            r_squared=r_squared_of(clipped / unit, np.clip(p, _NEVER, _ALWAYS) / unit, loose / unit),
            zero_share=float((zero & looked).sum() / max(looked.sum(), 1)),
            far_off=float((apart > FAR_OFF).mean()) if len(apart) else 0.0,
            largest_error=float(np.abs(t - p).max(initial=0)),
            largest_change=float(np.abs(t).max(initial=0)),
            scale=float(np.median(np.abs(p)) / middle) if (middle := np.median(np.abs(t)) if len(t) else 0) else None,
            impossible=int((self.impossible[states] & chosen).sum()),
            undefined=int((self.undefined[states] & chosen).sum()),
            unpredicted=int((self.unpredicted[states] & chosen).sum()),
            nearby=self.fit(states, self.nearby[states]) if self.ordered and among is None else None,
        )


def spearman(t: np.ndarray, p: np.ndarray, t_rounding: np.ndarray, p_rounding: np.ndarray) -> float | None:
    a, b = _ranks(t, t_rounding), _ranks(p, p_rounding)
    if len(t) < 2 or not np.ptp(a):
        return None
    return float(np.clip(np.corrcoef(a, b)[0, 1], -1, 1)) if np.ptp(b) else 0.0


def _ranks(x: np.ndarray, rounding: np.ndarray) -> np.ndarray:
    """Mean ranks; numbers that differ from the smallest of their group by rounding alone are ties."""
    group, groups, first = -1, np.zeros(len(x), int), -np.inf
    for i in np.argsort(x, kind="stable"):
        if group < 0 or x[i] - first > rounding[i]:
            group, first = group + 1, x[i]
        groups[i] = group
    count = np.bincount(groups)
    return (np.cumsum(count) - (count - 1) / 2)[groups]


def r_squared_of(t: np.ndarray, p: np.ndarray, rounding: np.ndarray) -> float | None:
    if not len(t) or (np.any(t) and (np.abs(t) <= rounding).all()):
        return None
    if np.ptp(t) <= rounding.max():
        return 1.0 if (np.abs(t - p) <= 2 * np.maximum(rounding, rounding.mean())).all() else None
    return float(1 - np.sum((t - p) ** 2) / np.sum((t - t.mean()) ** 2))


# ---- what to say ---------------------------------------------------------------------------------------------------
