"""What a run keeps of its chains: every model they visited, once; and sums of batches, in a bounded number of entries."""

from __future__ import annotations

import numpy as np

from .estimates import Totals


class Visits:
    """Models visited: (chains, steps) hashes and weights by batches, and of every model columns and log posterior, once.

    keys: (p + 1,) random numbers, the last 0; their sums are the hashes.
    """

    SOME = 2**18  # models

    def __init__(self, keys: np.ndarray):
        self.keys = keys
        self.hashes: list[np.ndarray] = []
        self.weights: list[np.ndarray] = []
        self._models: list[tuple] = []
        self._code = np.int16 if len(keys) < 2**15 else np.int32
        self._next = self.SOME

    def add(self, slots: np.ndarray, log_prob: np.ndarray, weight: np.ndarray) -> None:
        hashes = self.keys[slots].sum(axis=-1, dtype=np.uint64)
        new, first = np.unique(hashes, return_index=True)
        columns = np.sort(slots.reshape(-1, slots.shape[-1])[first], axis=1)
        most = int(np.max(np.sum(columns < len(self.keys) - 1, axis=1)))
        self._models.append((new, columns[:, :most].astype(self._code), log_prob.reshape(-1)[first]))
        if sum(len(each[0]) for each in self._models) > self._next:
            self._next = max(self.SOME, 2 * len(self.known()[0]))
        self.hashes.append(hashes)
        self.weights.append(weight)

    def known(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(hashes in order, slots (models, most) in order of columns, log posterior) of all models."""
        hashes, slots, log_posterior = zip(*self._models, strict=True)
        seen, first = np.unique(np.concatenate(hashes), return_index=True)
        most, p = max(each.shape[1] for each in slots), len(self.keys) - 1
        found = seen, np.concatenate([padded(each, most, p) for each in slots])[first], np.concatenate(log_posterior)[first]
        self._models = [found]
        return found


class Tally:
    """Sums of batches, in at most so many entries: where there would be more, neighbours are added up. steps: of a batch."""

    def __init__(self, steps: int, most: int):
        self.steps, self.each, self._most = steps, 1, most
        self._entries: list[list[np.ndarray]] = []
        self._counts: list[int] = []

    def add(self, *sums: np.ndarray) -> None:
        """Of one batch, (chains, ...) each."""
        if self._counts and self._counts[-1] < self.each:
            self._entries[-1] = [a + b for a, b in zip(self._entries[-1], sums, strict=True)]
            self._counts[-1] += 1
            return
        if len(self._entries) == self._most:
            pairs = zip(self._entries[::2], self._entries[1::2], strict=True)
            self._entries = [[a + b for a, b in zip(*pair, strict=True)] for pair in pairs]
            self.each, self._counts = 2 * self.each, [2 * self.each] * (self._most // 2)
        self._entries.append(list(sums))
        self._counts.append(1)

    @property
    def even(self) -> bool:
        """Whether all entries have as many batches."""
        return self._counts[-1] == self.each

    def kept(self) -> tuple[Totals, int]:
        """(totals after the warm-up, how many batches they are of)."""
        sums, moments, weight, square = (np.stack([entry[i] for entry in self._entries], axis=1) for i in range(4))
        totals = Totals(sums, moments, weight, square, self.steps * self.each).kept()
        return totals, sum(self._counts[-totals.weight.shape[1] :])


def padded(slots: np.ndarray, most: int, p: int) -> np.ndarray:
    return np.pad(slots, [(0, 0), (0, most - slots.shape[1])], constant_values=p)
