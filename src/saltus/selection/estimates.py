"""From batches of weighted visits to numbers with errors: ratio estimators, batch and chain errors, R-hat."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .chain import MOMENTS, SUMS

DISCARDED = 0.25  # of every chain, from its beginning
BATCHES = 16  # of each chain, for errors


@dataclass(frozen=True)
class Totals:
    """Sums over batches of equal length: sums (chains, batches, 3, p) as `SUMS`; moments (chains, batches, 4, p) as `MOMENTS`, and
    the w h that they belong to; weight, square (chains, batches): of w and w². steps: of a batch.
    """

    sums: np.ndarray
    moments: np.ndarray
    weight: np.ndarray
    square: np.ndarray
    steps: int

    def kept(self) -> Totals:
        """Without the warm-up."""
        have = self.weight.shape[1]
        first = min(int(np.ceil(DISCARDED * have)), have - 1)
        return self._each(lambda x: x[:, first:], 1)

    def merged(self, num: int) -> Totals:
        """At most `num` longer batches; a remainder joins the first."""
        have = self.weight.shape[1]
        if have <= num:
            return self
        cuts = (np.arange(num) * have) // num
        return self._each(lambda x: np.add.reduceat(x, cuts, axis=1), have // num)

    def _each(self, do, longer: int) -> Totals:  # type: ignore[no-untyped-def]
        arrays = {name: do(getattr(self, name)) for name in ("sums", "moments", "weight", "square")}
        return replace(self, **arrays, steps=self.steps * longer)

    def part(self, name: str) -> np.ndarray:
        return self.sums[:, :, SUMS.index(name)]


@dataclass(frozen=True)
class Estimate:
    value: np.ndarray
    error: np.ndarray


def ratio(above: np.ndarray, below: np.ndarray) -> Estimate:
    """Σ above / Σ below over (chains, batches, ...), and its error."""
    value, influence = _ratio(above, below)
    return Estimate(value, error_of(influence))


def _ratio(above: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(Σ above / Σ below, what each batch adds to its error)."""
    below = below.reshape(below.shape + (1,) * (above.ndim - below.ndim))
    total = below.sum(axis=(0, 1))
    safe = np.where(total > 0, total, 1)
    value = np.where(total > 0, above.sum(axis=(0, 1)) / safe, np.nan)
    return value, (above - np.nan_to_num(value) * below) / safe


def error_of(influence: np.ndarray) -> np.ndarray:
    """Standard error of the sum over (chains, batches, ...): the larger of that seen between batches and between chains."""
    return np.maximum(_spread(influence.reshape(-1, *influence.shape[2:])), _spread(influence.sum(axis=1)))


def _spread(off: np.ndarray) -> np.ndarray:
    """Standard error of a sum of independent rows, centred at 0."""
    num = off.shape[0]
    return np.sqrt(np.sum(off**2, axis=0) * (num / (num - 1))) if num > 1 else np.zeros(off.shape[1:])


def inclusion(totals: Totals) -> Estimate:
    merged = totals.merged(BATCHES)
    found = ratio(merged.part("h"), merged.weight)
    return Estimate(np.clip(found.value, 0, 1), found.error)


def moment(totals: Totals, name: str) -> Estimate:
    """p(in) times a moment of the coefficient when it is in: of all visits, and of the first of every segment."""
    merged = totals.merged(BATCHES)
    share, share_off = _ratio(merged.part("h"), merged.weight)
    if_in, if_in_off = _ratio(merged.moments[:, :, MOMENTS.index(name)], merged.moments[:, :, -1])
    if_in = np.nan_to_num(if_in)
    return Estimate(share * if_in, error_of(share_off * if_in + share * if_in_off))


def worst(found: Estimate, agreement: np.ndarray, goal: float) -> float:
    """The largest R-hat of the columns whose error is at least a tenth of the goal: of others it says nothing that matters."""
    return float(np.nanmax(agreement[found.error >= goal / 10], initial=1))


def rhat(totals: Totals) -> np.ndarray:
    """(p,) split R-hat of the influence values w (h - mean) of single visits."""
    halves = totals.merged(2)
    if halves.weight.shape[1] < 2:
        return np.full(totals.sums.shape[-1], np.nan)
    m = totals.part("h").sum(axis=(0, 1)) / totals.weight.sum()
    n = totals.steps * totals.weight.shape[1] // 2
    mean = (halves.part("h") - m * halves.weight[..., None]) / n
    square = (halves.part("whh") - 2 * m * halves.part("wh") + m**2 * halves.square[..., None]) / n
    within = np.maximum(square - mean**2, 0).mean(axis=(0, 1))
    between = mean.reshape(-1, mean.shape[-1]).var(axis=0, ddof=1)
    moves = within > 1e-24 * max(float(within.max()), 1e-300)
    return np.where(moves, np.sqrt((n - 1) / n + between / np.where(moves, within, 1)), 1.0)
