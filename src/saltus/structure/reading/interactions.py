"""The pairs of entries that may interact: have a mixed difference of f that is not zero."""

from __future__ import annotations

import numpy as np

from .dependence import Budget, Dependence, distinct


class Interactions:
    """Collects pairs while a log_prob is read; `everything` where they are all, or too many to list."""

    def __init__(self, num_entries: int, budget: Budget):
        self.n, self.budget = num_entries, budget
        self.most = 1_000_000 + 20 * num_entries
        self.everything = False
        self._keys: list[np.ndarray] = []
        self._seen: dict[int, np.ndarray] = {}  # rows whose elements have been listed as cliques, kept so that ids stay theirs

    def keys(self) -> np.ndarray:
        """lower * n + higher for every pair, sorted."""
        return distinct(np.concatenate([np.zeros(0, np.int64), *self._keys]))

    def of_product(self, a: Dependence, b: Dependence) -> None:
        """What each element of `a` depends on interacts with what the same element of `b` does."""
        if a.indptr is None or b.indptr is None:
            self._all_with_all(a.entries, b.entries)
            return
        counts_a, counts_b = a.counts(), b.counts()
        counts = counts_a * counts_b
        if self._too_many(int(counts.sum())):
            return
        start = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(start[-1]) - np.repeat(start[:-1], counts)
        width = np.repeat(counts_b, counts)
        first = np.repeat(a.indptr[:-1], counts) + within // np.maximum(width, 1)
        second = np.repeat(b.indptr[:-1], counts) + within % np.maximum(width, 1)
        self.add(a.entries[first], b.entries[second])

    def within(self, part: Dependence) -> None:
        """All that one element depends on interacts."""
        if id(part.entries) not in self._seen:
            self._seen[id(part.entries)] = part.entries
            self.of_product(part, part)

    def add(self, first: np.ndarray, second: np.ndarray) -> None:
        different = first != second
        low, high = np.minimum(first, second)[different], np.maximum(first, second)[different]
        self.add_keys(low * self.n + high)

    def add_keys(self, keys: np.ndarray) -> None:
        if not self.everything:
            self.budget.spend(len(keys))
            self._keys.append(distinct(keys[keys >= 0]))

    def _all_with_all(self, a: np.ndarray, b: np.ndarray) -> None:
        self.everything = self.everything or len(a) == len(b) == self.n > 1
        if not self._too_many(len(a) * len(b)):
            self.add(np.repeat(a, len(b)), np.tile(b, len(a)))

    def _too_many(self, count: int) -> bool:
        self.everything = self.everything or count > self.most
        return self.everything
