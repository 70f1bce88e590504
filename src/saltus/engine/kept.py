"""Everything a run writes to, by phase: memory or a store, a checkpoint's segments, running statistics.

A block is {name: (rows, chains, ...)}. All blocks of a group are full except the last, so what a sink has written
never changes; the block being filled belongs to the state of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..spaces import Space
from . import disk
from .arguments import Settings
from .checkpoint import Checkpoint
from .files import cannot_write, damaged, read_npz, write_npz_later
from .keys import DRAWS, WARMUP
from .loop import first_does
from .recording import STATS, Block
from .store import Store


class Kept:
    """Blocks in, results out."""

    def __init__(
        self, space: Any, settings: Settings, rows: int, store: Store | None, checkpoint: Checkpoint | None, weighted: bool
    ):
        self.settings, self.rows, self.store = settings, rows, store
        self.names = {WARMUP: "warmup_", DRAWS: "weighted_" if weighted else ""}  # in front of the groups
        self.statistics = Statistics(space, settings.statistics) if settings.statistics else None
        phases = {DRAWS: settings.num_draws} | ({WARMUP: settings.num_warmup} if settings.keep_warmup else {})
        self.memories = {} if store else {phase: Memory(space, most) for phase, most in phases.items()}
        self.streams = {phase: store.sink(self.names[phase], STATS) for phase in phases} if store else {}
        folder = checkpoint.folder if checkpoint and not store else None
        run_id = checkpoint.run_id if checkpoint else ""
        self.segments = (
            {p: Segments(folder, f"{self.names[p]}draws", rows, run_id, space.num_values) for p in phases} if folder else {}
        )
        self.phases = phases

    def wants(self, phase: int) -> bool:
        return phase in self.phases

    def write(self, phase: int, start: int, block: Block, unfinished: bool = False) -> None:
        """A block of rows; `unfinished`: the state of the run has these rows too, and more may follow."""
        if self.statistics and phase == DRAWS:
            self.statistics.write(start, block)
        kept = {name: rows for name, rows in block.items() if not (self.statistics and name == "s")}
        for memory in (self.memories[phase],) if phase in self.memories else ():
            memory.write(start, kept)
        disks: list[Any] = [self.streams[phase]] if phase in self.streams else []
        if phase in self.segments and not unfinished:
            disks.append(self.segments[phase])
        if disks:
            first_does(lambda: [each.write(start, kept) for each in disks])

    def write_provisional(self, block: Block) -> None:
        """Draws that will be replaced when the run goes on."""
        self.write(DRAWS, 0, block, unfinished=True)
        if DRAWS in self.streams:
            first_does(self.streams[DRAWS].mark_provisional)

    def commit(self) -> None:
        """All that was written is safe on the disk, and counted."""
        disks: list[Any] = [*self.segments.values(), *([self.store] if self.store else [])]
        if disks:
            first_does(lambda: [each.commit() for each in disks])

    def go_back(self, rows_written: dict[int, int], rows_known: dict[int, int], sums: dict[str, np.ndarray]) -> None:
        """To what a state knows of: read its segments, no longer count what a store has beyond it.

        rows_written: by phase, rows that have left the state. rows_known: with those that it still has.
        """
        if self.statistics:
            self.statistics.sums = dict(sums)
        for phase in self.phases:
            num_rows = rows_written.get(phase, 0)
            if self.segments:
                for start, block in self.segments[phase].read(num_rows):
                    self.memories[phase].write(start, block)
            if self.store:
                known = max(rows_known.get(phase, 0), num_rows)
                first_does(partial(self.store.go_back, self.names[phase], num_rows, known))

    def groups(self) -> dict[str, dict[str, np.ndarray]]:
        """{"" or "weighted_": draws, "warmup_": warm-up} of what is in memory."""
        return {self.names[phase]: memory.result() for phase, memory in sorted(self.memories.items(), reverse=True)}


class Memory:
    """(chains, draws, ...) arrays, codes already shown. Draw lies after draw, so that a block touches pages of its own only."""

    def __init__(self, space: Space, most_rows: int):
        self.space, self.most_rows, self.num_rows = space, most_rows, 0
        self.arrays: dict[str, np.ndarray] = {}

    def write(self, start: int, block: Block) -> None:
        for name, shown in self._shown(block):
            if name not in self.arrays:  # pages are taken as they are filled
                self.arrays[name] = np.empty((self.most_rows, *shown.shape[1:]), shown.dtype)
            self.arrays[name][start : start + len(shown)] = shown
            self.num_rows = start + len(shown)

    def _shown(self, block: Block) -> Iterator[tuple[str, np.ndarray]]:
        """(variable, rows): codes as a person reads them, a variable for each piece of the space."""
        for name, rows in block.items():
            if name != "s":
                yield name, rows
                continue
            for piece in self.space.pieces:
                yield piece.name, piece.space.labelled(rows[..., piece.sites])

    def result(self) -> dict[str, np.ndarray]:
        return {name: np.moveaxis(array[: self.num_rows], 0, 1) for name, array in self.arrays.items()}


class Segments:
    """One immutable npz per block in a checkpoint's folder."""

    def __init__(self, folder: Path, group: str, rows: int, run_id: str, num_values: int):
        self.folder, self.group, self.rows, self.run_id, self.num_values = folder, group, rows, run_id, num_values
        self.pending: list[Path] = []

    def write(self, start: int, block: Block) -> None:
        """Not safe before `commit`."""
        path = self._path(start)
        write_npz_later(path, {"kind": "segment", "run_id": self.run_id, "start": start, "group": self.group}, block)
        self.pending.append(path)

    def commit(self) -> None:
        """What was written survives a loss of power, once this returns."""
        pending, self.pending = self.pending, []
        if pending:
            try:
                disk.sync([*pending, self.folder])
            except OSError as cause:
                raise cannot_write(self.folder, cause) from cause

    def read(self, num_rows: int) -> Iterator[tuple[int, Block]]:
        """(start, block) of the first `num_rows` rows; what a kill left beyond them is not looked at."""
        for start in range(0, num_rows, self.rows):
            path = self._path(start)
            header, block = read_npz(path, "segment")
            told = header.get("start"), header.get("group"), header.get("run_id") if self.run_id else ""
            wanted = min(self.rows, num_rows - start)
            if told != (start, self.group, self.run_id) or not block or any(len(rows) != wanted for rows in block.values()):
                raise damaged(path, f"rows from {told[0]} of {told[1]}", "files were renamed or mixed up")
            if "s" in block and (block["s"].dtype.kind != "u" or block["s"].max(initial=0) >= self.num_values):
                raise damaged(path, "codes outside the space", "it was not written by saltus")
            yield start, block

    def _path(self, start: int) -> Path:
        return self.folder / f"{self.group}-{start:012d}.npz"


class Statistics:
    r"""Sums over draws, chain by chain, from which mean, covariance, pairs and best follow.

    $$ n, \quad \sum_t r_t, \quad \sum_t r_t r_t^\top, \quad \sum_t e_t e_t^\top, \quad \arg\max_t f(s_t) $$

    with r = s minus the chain's mean in its first block (so that float32 products keep their digits) and e the one-hot
    codes. Blocks are summed whole and in order, so that neither chunks nor kills change a bit.
    """

    def __init__(self, space: Space, names: tuple[str, ...]):
        self.space, self.names = space, names
        self.sums: dict[str, np.ndarray] = {}

    def write(self, start: int, block: Block) -> None:
        if not len(block["s"]):
            return
        codes, lp = np.moveaxis(block["s"], 0, 1), block["lp"].T  # (chains, rows, d), (chains, rows)
        self._add("count", np.array(codes.shape[1]))
        sums = [self._of_chain(number, own) for number, own in enumerate(codes)]  # one at a time: no array of all of them
        for name in sums[0]:
            self._add(name, np.stack([each[name] for each in sums]))
        if "best" in self.names:
            self._best(codes, lp)

    def _of_chain(self, number: int, codes: np.ndarray) -> dict[str, np.ndarray]:
        found = {}
        if {"mean", "covariance"} & set(self.names):
            s = self.space.numbers(codes)
            if "centre" not in self.sums or len(self.sums["centre"]) <= number:
                before = self.sums.get("centre", np.zeros((0, s.shape[1])))
                self.sums["centre"] = np.concatenate([before, s.mean(0)[None]])
            r = s - self.sums["centre"][number]
            found["first"] = r.sum(0)
            if "covariance" in self.names:
                r = r.astype(np.float32)
                found["second"] = (r.T @ r).astype(np.float64)
        if "pairs" in self.names:
            e = (codes[..., None] == np.arange(self.space.num_values)).reshape(len(codes), -1).astype(np.float32)
            found["pairs"] = (e.T @ e).astype(np.int64)
        return found

    def _add(self, name: str, increment: np.ndarray) -> None:
        self.sums[name] = self.sums.get(name, 0) + increment

    def _best(self, codes: np.ndarray, lp: np.ndarray) -> None:
        at = np.argmax(lp, axis=1)
        each = np.arange(len(lp))
        found, value = codes[each, at], lp[each, at]
        before = self.sums.get("best_lp", np.full(len(lp), -np.inf, lp.dtype))
        better = value > before
        self.sums["best"] = np.where(better[:, None], found, self.sums.get("best", found))
        self.sums["best_lp"] = np.maximum(value, before)

    def result(self) -> dict[str, np.ndarray]:
        """mean (chain, n), covariance (chain, n, n), pairs (chain, d, k, d, k), best (chain, d) and best_lp (chain,)."""
        n = self.sums.get("count", np.array(0))
        if not n:
            return {}
        d, k = self.space.num_sites, self.space.num_values
        found: dict[str, np.ndarray] = {"count": n}
        if "first" in self.sums:
            mean = self.sums["first"] / n
            if "mean" in self.names:
                found["mean"] = mean + self.sums["centre"]
            if "covariance" in self.names:
                found["covariance"] = self.sums["second"] / n - mean[:, :, None] * mean[:, None, :]
        if "pairs" in self.sums:
            found["pairs"] = (self.sums["pairs"] / n).reshape(-1, d, k, d, k)
        if "best" in self.sums:
            for piece in self.space.pieces:
                name = "best" if len(self.space.pieces) == 1 else f"best_{piece.name}"
                found[name] = piece.space.labels[self.sums["best"][:, piece.sites]]
            found["best_lp"] = self.sums["best_lp"]
        return found

    def bytes_needed(self, num_chains: int) -> int:
        """Of the sums, and of a block while it is added."""
        n, e = self.space.size, self.space.num_sites * self.space.num_values
        per_chain = 24 * n + ("covariance" in self.names) * 20 * n**2 + ("pairs" in self.names) * 20 * e**2
        return num_chains * per_chain
