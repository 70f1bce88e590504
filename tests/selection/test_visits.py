"""What a run keeps of its batches and visits: sums that stay sums when entries are merged, and every model once."""

import numpy as np
import pytest

from saltus.selection.visits import Tally, Visits


@pytest.mark.parametrize("num", [1, 3, 4, 5, 11, 16, 37])
def test_merged_entries_keep_the_sums(num):
    tally = Tally(steps=2, most=4)
    for i in range(num):
        tally.add(np.full((2, 3, 1), float(i)), np.zeros((2, 4, 1)), np.full(2, 1.0), np.full(2, 0.5))
    totals, kept = tally.kept()
    assert totals.weight.shape[1] <= 4
    assert totals.weight.sum() == 2 * kept  # one of each chain and batch
    assert totals.sums[:, :, 0].sum() == 2 * sum(range(num - kept, num))
    assert kept >= max(1, num // 2)


def test_models_are_known_once():
    keys = np.append(np.random.default_rng(0).integers(2**64, size=5, dtype=np.uint64), np.uint64(0))
    visits = Visits(keys)
    visits.SOME = 3  # merge often
    for slots in ([[0, 5, 5], [1, 0, 5]], [[5, 0, 5], [2, 3, 4]], [[0, 1, 5], [5, 5, 5]]):
        visits.add(np.array([slots]), np.arange(2.0)[None] + len(slots[0]), np.ones((1, 2)))
    hashes, slots, _ = visits.known()
    assert sorted(tuple(row[row < 5]) for row in slots) == [(), (0,), (0, 1), (2, 3, 4)]
    assert (np.diff(hashes) > 0).all()
    seen = [slots[np.searchsorted(hashes, h)] for each in visits.hashes for h in each.ravel()]
    assert [tuple(row[row < 5]) for row in seen] == [(0,), (0, 1), (0,), (2, 3, 4), (0, 1), ()]
