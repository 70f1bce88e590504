"""Everything a run writes to, by phase: memory or a store, a checkpoint's segments, running statistics."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .checkpoint import Checkpoint
from .loop import DRAWS, WARMUP, first_does
from .recording import STATS
from .settings import Settings
from .sinks import Block, Memory, Segments, Statistics
from .store import Store

GROUPS = {WARMUP: "warmup_", DRAWS: ""}


class Kept:
    """Blocks in, results out."""

    def __init__(self, space: Any, settings: Settings, rows: int, store: Store | None, checkpoint: Checkpoint | None):
        self.settings, self.rows, self.store = settings, rows, store
        self.statistics = Statistics(space, settings.statistics) if settings.statistics else None
        phases = {DRAWS: settings.num_draws} | ({WARMUP: settings.num_warmup} if settings.keep_warmup else {})
        self.memories = {} if store else {phase: Memory(space, most) for phase, most in phases.items()}
        self.streams = {phase: store.sink(GROUPS[phase], STATS) for phase in phases} if store else {}
        folder = checkpoint.folder if checkpoint and not store else None
        self.segments = {phase: Segments(folder, GROUPS[phase] + "draws", rows) for phase in phases} if folder else {}
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
        disks = [d[phase] for d in (self.streams, {} if unfinished else self.segments) if phase in d]
        if disks and len(next(iter(kept.values()))):
            first_does(lambda: [disk.write(start, kept) for disk in disks])

    def go_back(self, rows_written: dict[int, int], sums: dict[str, np.ndarray]) -> None:
        """To what a state knows of: read its segments, cut off what a store has beyond it."""
        if self.statistics:
            self.statistics.sums = dict(sums)
        for phase in self.phases:
            num_rows = rows_written.get(phase, 0)
            if self.segments:
                for start, block in self.segments[phase].read(num_rows):
                    self.memories[phase].write(start, block)
            if self.store:
                first_does(partial(self.store.truncate, GROUPS[phase], num_rows))

    def groups(self) -> dict[str, dict[str, np.ndarray]]:
        """{"": draws, "warmup_": warm-up} of what is in memory."""
        return {GROUPS[phase]: memory.result() for phase, memory in sorted(self.memories.items(), reverse=True)}
