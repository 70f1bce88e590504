r"""Where chains sit: in one place or in several, and whether the places differ in the names of labels only."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..diagnostics.ess import FEWEST_DRAWS, split_rhat

_CLEARLY = 3.0  # times as far between places as within one
_NUM_PAIRS, _NUM_COUNTS = 64, 8
_MOST_CHAINS, _MOST_LABELS = 256, 64


class Places(NamedTuple):
    """groups: chains (by position) that sit together, of two places or more; empty where no clear gap is seen.

    mirrored: two places, each the other with all values reversed. unlabelled_rhat: see `unlabelled_rhat`.
    """

    groups: tuple[tuple[int, ...], ...] = ()
    mirrored: bool = False
    unlabelled_rhat: float = float("nan")


def places_of(draws: np.ndarray, numeric: bool) -> Places:
    """From draws (chains, sites, draws), as shown."""
    if len(draws) < 2 or draws.shape[-1] < FEWEST_DRAWS or draws.dtype.kind not in "biuf":
        return Places()
    means = _half_means(draws[:_MOST_CHAINS], numeric)
    groups = _groups(means)
    mirrored = numeric and len(groups) == 2 and _mirrored(draws, means, groups)
    return Places(groups, mirrored, float("nan") if numeric else unlabelled_rhat(draws))


def _half_means(draws: np.ndarray, numeric: bool) -> np.ndarray:
    """(chains, 2, features) of the two halves of each chain: means of numbers, or how often each label was seen."""
    n = draws.shape[-1] // 2
    halves = np.stack([draws[..., :n], draws[..., -n:]], axis=1)
    if numeric:
        return halves.mean(axis=-1, dtype=np.float64)
    labels = np.unique(draws)[:_MOST_LABELS]
    return np.concatenate([(halves == label).mean(axis=-1) for label in labels], axis=-1)


def _groups(means: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """Chains joined where they are less than half as far apart as any two; no groups unless these are clearly separate.

    A chain whose own halves are far apart wanders: then there are no places to speak of.
    """
    chains = len(means)
    flat = means.reshape(2 * chains, -1)
    square = np.sum(flat**2, axis=-1)
    apart = np.sqrt(np.maximum(square[:, None] + square - 2 * flat @ flat.T, 0))
    near = apart.reshape(chains, 2, chains, 2).max(axis=(1, 3))  # of two chains; of one, its halves
    place = np.arange(chains)
    for a, b in zip(*np.nonzero(near < near.max() / 2), strict=True):
        place[place == place[a]] = place[b]
    same = place[:, None] == place
    if same.all():
        return ()
    between = apart.reshape(chains, 2, chains, 2).min(axis=(1, 3))[~same].min()
    if not between > _CLEARLY * near[same].max():
        return ()
    return tuple(tuple(np.flatnonzero(place == p).tolist()) for p in dict.fromkeys(place.tolist()))


def _mirrored(draws: np.ndarray, means: np.ndarray, groups: Any) -> bool:
    """Whether a + b = lowest + highest at every site, nearly, for the means a and b of two places."""
    a, b = (means[list(group)].mean(axis=(0, 1)) for group in groups)
    centre = (float(draws.min()) + float(draws.max())) / 2
    return bool(np.linalg.norm(a + b - 2 * centre) < np.linalg.norm(a - b) / _CLEARLY)


def unlabelled_rhat(draws: np.ndarray) -> float:
    """The largest R-hat of statistics that stay the same when labels are permuted: draws (chains, sites, draws).

    Whether two sites have the same label, for some pairs of sites; and the numbers of sites of each label, largest first.
    0 where none of them varies.
    """
    sites = draws.shape[1]
    pairs = np.random.default_rng(0).integers(sites, size=(_NUM_PAIRS, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    together = draws[:, pairs[:, 0]] == draws[:, pairs[:, 1]]
    counts = np.stack([(draws == label).sum(axis=1) for label in np.unique(draws)[:_MOST_LABELS]], axis=1)
    sizes = -np.sort(-counts, axis=1)[:, :_NUM_COUNTS]
    found = [split_rhat(x.astype(np.float64)) for x in (together, sizes) if x.size]
    return float(max((each.max() for each in found), default=0.0))
