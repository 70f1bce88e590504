"""Everything a run writes to, by phase: memory or a store, a checkpoint's segments, running statistics."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .arguments import Settings
from .checkpoint import Checkpoint
from .keys import DRAWS, WARMUP
from .loop import first_does
from .recording import STATS
from .sinks import Block, Memory, Segments, Statistics
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
            first_does(lambda: [disk.write(start, kept) for disk in disks])

    def write_provisional(self, block: Block) -> None:
        """Draws that will be replaced when the run goes on."""
        self.write(DRAWS, 0, block, unfinished=True)
        if DRAWS in self.streams:
            first_does(self.streams[DRAWS].mark_provisional)

    def commit(self) -> None:
        """All that was written is safe on the disk, and counted."""
        disks: list[Any] = [*self.segments.values(), *([self.store] if self.store else [])]
        if disks:
            first_does(lambda: [disk.commit() for disk in disks])

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
