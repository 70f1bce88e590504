"""Where batches of data come from: a table in memory, a file read as it is needed, a loader, or a function of the update."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import shown
from ..errors import SaltusError, TrainingError
from ..spaces import Space
from .buffer import Visits
from .codes import read_codes

MOST_UPDATES = 512  # of one chunk: one shape, one compilation
_MOST_NUMBERS = 2**26  # of the batches of a chunk
_STREAM = 0  # of row numbers of the data


class Source:
    """Batches of codes. `sample` has codes to begin with: all of a table, the first batch of anything else."""

    sample: np.ndarray
    mark: str  # by which a checkpoint knows it
    most_updates = MOST_UPDATES

    def rows(self) -> int | None:
        """How many there are; None where that is not known."""
        return None

    def begin(self, update: int) -> None:
        """The next batch that is asked for is that of this update."""

    def take(self, first: int, count: int) -> tuple[Any, np.ndarray]:
        """(a table on the device, (most_updates, batch) the rows of it that each of `count` updates visits)."""
        raise NotImplementedError

    def length(self, first: int, count: int) -> int:
        """How many of the next `count` updates there are batches for; TrainingError where there is none for the next."""
        return count


class Table(Source):
    """All data, on the device."""

    def __init__(self, codes: np.ndarray, batch: int, seed: int):
        self.sample, self.batch = codes, batch
        self.mark = f"{len(codes)} rows #{zlib.crc32(np.ascontiguousarray(codes).data):08x}"
        self.visits = Visits("slices", len(codes), batch, seed, _STREAM)
        self.table: jax.Array | None = None

    def rows(self) -> int | None:
        return len(self.sample)

    def take(self, first: int, count: int) -> tuple[Any, np.ndarray]:
        self.table = jnp.asarray(self.sample) if self.table is None else self.table
        rows = np.zeros((self.most_updates, self.batch), np.int32)
        rows[:count] = self.visits.rows(first, first + count)
        return self.table, rows


class Stream(Source):
    """Batches that are read when their update comes. A batch that cannot be used ends training at its update, not before.

    in_order: a batch can be read only after all before it.
    """

    def __init__(self, space: Space, batch: int, read: Callable[[int], Any], kind: str, in_order: bool = True):
        self.space, self.batch, self.read, self.in_order = space, batch, read, in_order
        self.most_updates = int(min(MOST_UPDATES, max(_MOST_NUMBERS // (batch * space.num_sites), 1)))
        self.waiting: list[np.ndarray] = []  # batches that have been read, of updates from `at` on
        self.at, self.failure = 0, None
        self.sample = self._batch(0)
        self.waiting = [self.sample]
        self.mark = f"{kind}, first batch #{zlib.crc32(np.ascontiguousarray(self.sample).data):08x}"

    def begin(self, update: int) -> None:
        if update > self.at:
            for past in range(self.at + len(self.waiting), update) if self.in_order else ():
                self._batch(past)
            self.at, self.waiting = update, self.waiting[update - self.at :]

    def length(self, first: int, count: int) -> int:
        self.begin(first)
        while len(self.waiting) < count and self.failure is None:
            try:
                self.waiting.append(self._batch(first + len(self.waiting)))
            except TrainingError as failure:
                self.failure = failure  # type: ignore[assignment]
        if not self.waiting and self.failure is not None:
            raise self.failure
        return min(len(self.waiting), count)

    def take(self, first: int, count: int) -> tuple[Any, np.ndarray]:
        table = np.zeros((self.most_updates, *self.sample.shape), self.sample.dtype)
        for row, batch in zip(table, self.waiting[:count], strict=False):
            row[:] = batch
        rows = np.arange(self.most_updates * self.batch, dtype=np.int32).reshape(self.most_updates, self.batch)
        return jnp.asarray(table.reshape(-1, self.space.num_sites)), rows

    def _batch(self, update: int) -> np.ndarray:
        try:
            states = self.read(update)
        except StopIteration:
            raise TrainingError(
                f"The data ended before update {update + 1}.",
                expected="a batch for every update",
                found=f"{update} batches",
                hint="num_updates=... within them, or data that can be gone through again: a list of batches, a DataLoader",
            ) from None
        except Exception as cause:
            found = f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}"
            raise TrainingError(f"The data failed at update {update + 1}.", expected="a batch of states", found=found) from cause
        return self._codes(states, update)

    def _codes(self, states: Any, update: int) -> np.ndarray:
        if isinstance(states, (tuple, list)) and len(states) and all(hasattr(part, "shape") for part in states):
            hint = "take the states alone, e.g. (x for x, label in loader)"
            found = f"{len(states)} arrays of shapes {[tuple(part.shape) for part in states]}"
            raise TrainingError(
                f"The batch of update {update + 1} is not a table of states.", expected="one array", found=found, hint=hint
            )
        try:
            states = states if isinstance(states, dict) else np.asarray(states)
            codes = read_codes(self.space, states, "batch")
        except (SaltusError, TypeError, ValueError) as cause:
            lines = str(cause).splitlines() or [""]
            told = {line.split(None, 1)[0]: line.split(None, 1)[1] for line in lines[1:] if len(line.split(None, 1)) == 2}
            raise TrainingError(
                f"The batch of update {update + 1} cannot be used: {lines[0]}",
                expected=told.get("expected", f"{self.batch} states of {self.space}"),
                found=told.get("found", shown(states)),
                hint=told.get("hint", ""),
            ) from cause
        if len(codes) != self.batch:
            raise TrainingError(
                f"The batch of update {update + 1} has another size.",
                expected=f"batch_size = {self.batch} rows",
                found=f"{len(codes)}",
                hint="drop_last=True leaves out a short batch at the end of a pass" if update else f"batch_size={len(codes)}",
            )
        return codes


def read_source(space: Space, data: Any, batch: int, seed: int) -> Source:
    """The source of what was given as `data`; SpaceError or TrainingError where that is no data of this space."""
    if isinstance(data, np.memmap):
        return _mapped(space, data, batch, seed)
    if hasattr(data, "__next__"):
        return Stream(space, batch, lambda update: next(data), "an iterator")
    if callable(data):
        return Stream(space, batch, data, "a function", in_order=False)
    loader = hasattr(data, "__iter__") and not hasattr(data, "__array__") and not isinstance(data, (list, tuple, dict, str, bytes))
    if loader and not isinstance(data, (set, frozenset, range)):
        return Stream(space, batch, _again_and_again(data), "a loader")
    if isinstance(data, (list, tuple)) and len(data) and all(isinstance(each, np.ndarray) and each.ndim == 2 for each in data):
        return Stream(space, batch, _again_and_again(data), "a list of batches")
    return Table(read_codes(space, data, "data"), batch, seed)


def _again_and_again(data: Any) -> Callable[[int], Any]:
    def passes() -> Iterator[Any]:
        while True:
            empty = True
            for batch in data:
                empty = False
                yield batch
            if empty:
                return

    batches = passes()
    return lambda update: next(batches)


def _mapped(space: Space, data: np.memmap, batch: int, seed: int) -> Source:
    """A file is not read as a whole: batches are, in order of their rows."""
    if data.ndim < 2 or len(data) < batch:
        return Table(read_codes(space, data, "data"), batch, seed)
    visits = Visits("slices", len(data), batch, seed, _STREAM)

    def read(update: int) -> np.ndarray:
        rows = visits.at(update)
        order = np.argsort(rows)
        found = np.empty((batch, *data.shape[1:]), data.dtype)
        found[order] = data[rows[order]]
        return found

    return Stream(space, batch, read, f"a file of {len(data)} rows", in_order=False)
