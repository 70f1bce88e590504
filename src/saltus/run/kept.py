"""Everything a run writes to, by phase: memory or a store, a checkpoint's segments, running statistics."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .checkpoint import Checkpoint
from .loop import DRAWS, WARMUP
from .recording import STATS
from .settings import Settings
from .sinks import Block, Memory, Segments, Sink, Statistics
from .store import Store

GROUPS = {WARMUP: "warmup_", DRAWS: ""}


class Kept:
    """Blocks in, results out."""

    def __init__(self, space: Any, settings: Settings, rows: int, store: Store | None, checkpoint: Checkpoint | None):
        self.settings, self.rows, self.store = settings, rows, store
        self.statistics = Statistics(space, settings.statistics) if settings.statistics else None
        phases = {DRAWS: settings.num_draws} | ({WARMUP: settings.num_warmup} if settings.keep_warmup else {})
        self.memories = {} if store else {phase: Memory(space, most) for phase, most in phases.items()}
        writes = jax.process_index() == 0
        keeps_segments = checkpoint and not store
        self.segments = {p: Segments(checkpoint.folder, GROUPS[p] + "draws", rows) for p in phases} if keeps_segments else {}  # type: ignore[union-attr]
        streams: dict[int, Sink] = {phase: store.sink(GROUPS[phase], STATS) for phase in phases} if store and writes else {}
        self.finally_to: dict[int, list[Sink]] = {p: [s[p] for s in (self.memories, streams) if p in s] for p in phases}
        self.also_to: dict[int, list[Sink]] = {p: [self.segments[p]] if self.segments and writes else [] for p in phases}

    def wants(self, phase: int) -> bool:
        return phase in self.finally_to

    def write(self, phase: int, start: int, block: Block, unfinished: bool = False) -> None:
        """A block of rows; `unfinished`: the state of the run has these rows too, and more may follow."""
        if self.statistics and phase == DRAWS:
            self.statistics.write(start, block)
        kept = {name: rows for name, rows in block.items() if not (self.statistics and name == "s")}
        for sink in self.finally_to[phase] + ([] if unfinished else self.also_to[phase]):
            sink.write(start, kept)

    def go_back(self, rows_written: dict[int, int], sums: dict[str, np.ndarray]) -> None:
        """To what a state knows of: read its segments, cut off what a store has beyond it."""
        if self.statistics:
            self.statistics.sums = dict(sums)
        for phase in self.finally_to:
            num_rows = rows_written.get(phase, 0)
            if self.segments:
                for start, block in self.segments[phase].read(num_rows):
                    self.memories[phase].write(start, block)
            if self.store and jax.process_index() == 0:
                self.store.truncate(GROUPS[phase], num_rows)

    def groups(self) -> dict[str, dict[str, np.ndarray]]:
        """{"": draws, "warmup_": warm-up} of what is in memory."""
        return {GROUPS[phase]: memory.result() for phase, memory in sorted(self.memories.items(), reverse=True)}
