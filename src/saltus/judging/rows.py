"""Draws, read once and in blocks, as rows: what each site, observable or scalar statistic amounts to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..diagnostics.ess import ess_of_chains, split_rhat
from ..diagnostics.moves import label_distance

_READ_AT_ONCE = 2**22  # numbers
_COMPUTED_AT_ONCE = 2**20
_MOST_KEPT, _MOST_KEPT_QUICKLY = 2**25, 2**21
_MOST_ROWS = 2000


class Judgement(NamedTuple):
    """One site, observable or scalar statistic, over all chains.

    Numbers have a mean and sd, categories their most frequent value and its share; both are None where draws are NaN or
    infinite. ess: of all chains together; 0 where the draws say nothing. rhat: 0 for a constant, infinite where agreement
    cannot be seen (see `ess_of_chains` and `split_rhat`; of a category, those of the indicator of its most frequent value).
    moves: how often a draw differs from the one before.
    """

    name: str
    mean: float | None
    sd: float | None
    value: Any
    share: float | None
    ess: float
    rhat: float
    moves: int

    @property
    def undefined(self) -> bool:
        """NaN or infinite at some draw."""
        return self.mean is None and self.value is None

    @property
    def constant(self) -> bool:
        """The same value in every draw of every chain (four draws or more)."""
        return self.rhat == 0


class Scan(NamedTuple):
    """What one pass over draws (chain, draw, component) finds."""

    examined: np.ndarray  # components that are kept whole, evenly spaced
    kept: np.ndarray  # (chains, examined, draws)
    distance: np.ndarray  # (chains, draws) |s - s_0|_1 from the first draw of the first chain; of categories, sites that differ
    moves: np.ndarray  # (components,)
    moved: np.ndarray  # (chains,) whether anything changed
    apart: np.ndarray  # (components,) whether chains began at different values


def scan(draws: Any, numeric: bool, quick: bool = False) -> Scan:
    """One pass over a DataArray (chain, draw, ...), of which only a block is in memory at a time. quick: examine fewer."""
    chains, num_draws = draws.shape[:2]
    last = draws[:, :1].values.reshape(chains, 1, -1)
    origin, apart = last[0, 0], (last != last[:1]).any(axis=(0, 1))
    examined = _evenly(origin.size, chains * num_draws, _MOST_KEPT_QUICKLY if quick else _MOST_KEPT)
    kept = np.empty((chains, len(examined), num_draws), draws.dtype)
    distance = np.empty((chains, num_draws))
    moves, moved = np.zeros(origin.size, np.int64), np.zeros(chains, bool)
    for rows, block in _blocks(draws, origin.size):
        changed = block != np.concatenate([last, block[:, :-1]], axis=1)
        moves += changed.sum(axis=(0, 1))
        moved |= changed.any(axis=(1, 2))
        kept[..., rows] = block[..., examined].swapaxes(1, 2)
        distance[:, rows] = label_distance(block, origin, numeric)
        last = block[:, -1:]
    return Scan(examined, kept, distance, moves, moved, apart)


def _evenly(size: int, draws_of_each: int, most_kept: int) -> np.ndarray:
    """Which components are examined: all, or as many as there is time for, evenly spaced."""
    most = min(size, _MOST_ROWS, max(most_kept // draws_of_each, 10))
    return np.linspace(0, size - 1, most).round().astype(int)


def _blocks(draws: Any, size: int) -> Iterator[tuple[slice, np.ndarray]]:
    """(rows, (chains, rows, components)), a power of two rows at a time, as a store has them."""
    chains, num_draws = draws.shape[:2]
    at_once = 1 << max(_READ_AT_ONCE // (chains * size), 1).bit_length() - 1
    for start in range(0, num_draws, at_once):
        block = draws[:, start : start + at_once].values
        yield slice(start, start + block.shape[1]), block.reshape(chains, -1, size)


def rows_of(names: list[str], x: np.ndarray, moves: np.ndarray, numeric: bool) -> list[Judgement]:
    """One row for each of x (chains, components, draws)."""
    chains, size, num_draws = x.shape
    at_once = max(_COMPUTED_AT_ONCE // (chains * num_draws), 1)
    found: list[Judgement] = []
    for start in range(0, size, at_once):
        some = slice(start, start + at_once)
        found += _batch(names[some], x[:, some], moves[some], numeric)
    return found


def statistic(name: str, x: np.ndarray) -> Judgement:
    """The row of one scalar (chains, draws)."""
    return rows_of([name], x[:, None], np.count_nonzero(x[:, 1:] != x[:, :-1], keepdims=True).ravel(), numeric=True)[0]


def _batch(names: list[str], x: np.ndarray, moves: np.ndarray, numeric: bool) -> list[Judgement]:
    pooled = x.swapaxes(0, 1).reshape(x.shape[1], -1)
    described: list[tuple[Any, Any, Any, Any]]
    if numeric:
        described = [(*_mean_and_sd(each), None, None) for each in pooled]
    else:
        described = [(None, None, *_most_frequent(each)) for each in pooled]
        x = x == np.array([value for _, _, value, _ in described])[:, None]
    worth, agreement = ess_of_chains(x), split_rhat(x)
    numbers = zip(worth.tolist(), agreement.tolist(), moves.tolist(), strict=True)
    return [Judgement(name, *told, *found) for name, told, found in zip(names, described, numbers, strict=True)]


def _mean_and_sd(x: np.ndarray) -> tuple[float | None, float | None]:
    """Around the first draw, so that a large offset costs no digits; no sd of a single draw."""
    x = x.astype(np.float64)
    if not np.isfinite(x).all():
        return None, None
    around = x - x[0]
    return float(x[0] + around.mean()), float(around.std(ddof=1)) if len(x) > 1 else None


def _most_frequent(x: np.ndarray) -> tuple[Any, float]:
    values, counts = np.unique(x, return_counts=True)
    most = int(np.argmax(counts))
    return values[most].item(), float(counts[most] / len(x))
