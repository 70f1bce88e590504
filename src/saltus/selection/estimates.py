"""From batches of weighted visits to numbers with errors: ratio estimators, batch and chain errors, R-hat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .chain import SUMS

DISCARDED = 0.25  # of every chain, from its beginning
BATCHES = 16  # of each chain, for errors


@dataclass(frozen=True)
class Totals:
    """Sums over batches of equal length: sums (chains, batches, 6, p) as `SUMS`; weight, square (chains, batches); steps of
    a batch.
    """

    sums: np.ndarray
    weight: np.ndarray
    square: np.ndarray
    steps: int

    def kept(self) -> Totals:
        """Without the warm-up."""
        first = int(np.ceil(DISCARDED * self.weight.shape[1]))
        return Totals(self.sums[:, first:], self.weight[:, first:], self.square[:, first:], self.steps)

    def merged(self, num: int) -> Totals:
        """At most `num` longer batches; a remainder joins the first."""
        have = self.weight.shape[1]
        if have <= num:
            return self
        cuts = (np.arange(num) * have) // num
        add = lambda x: np.add.reduceat(x, cuts, axis=1)  # noqa: E731
        return Totals(add(self.sums), add(self.weight), add(self.square), self.steps * have // num)

    def part(self, name: str) -> np.ndarray:
        return self.sums[:, :, SUMS.index(name)]


@dataclass(frozen=True)
class Estimate:
    value: np.ndarray
    error: np.ndarray


def ratio(above: np.ndarray, below: np.ndarray) -> Estimate:
    """Σ above / Σ below over (chains, batches, ...), and its error: the larger of that seen between batches and between chains."""
    below = below.reshape(below.shape + (1,) * (above.ndim - below.ndim))
    total = below.sum(axis=(0, 1))
    safe = np.where(total > 0, total, 1)
    value = np.where(total > 0, above.sum(axis=(0, 1)) / safe, np.nan)
    off = above - np.nan_to_num(value) * below
    return Estimate(value, np.maximum(_spread(off.reshape(-1, *off.shape[2:])), _spread(off.sum(axis=1))) / safe)


def _spread(off: np.ndarray) -> np.ndarray:
    """Standard error of a sum of independent rows, centred at 0."""
    num = off.shape[0]
    return np.sqrt(np.sum(off**2, axis=0) * (num / (num - 1))) if num > 1 else np.zeros(off.shape[1:])


def inclusion(totals: Totals) -> Estimate:
    merged = totals.merged(BATCHES)
    found = ratio(merged.part("h"), merged.weight)
    return Estimate(np.clip(found.value, 0, 1), found.error)


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
