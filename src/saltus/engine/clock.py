"""How far a run is, in phases, steps and rows, and how many seconds that took."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from .keys import DRAWS, WARMUP


@dataclass
class Times:
    """Seconds of wall-clock, over all sessions of a run."""

    compile: float = 0.0
    warmup: float = 0.0
    sampling: float = 0.0


@dataclass
class Clock:
    """Counts the steps of warm-up and draws; rows are what is kept of them, `rows` to a block."""

    num_warmup: int  # as asked, unless it is cut
    num_draws: int
    rows: int
    steps_per_draw: int = 0  # 0 until chosen
    thinning: str = "as given"  # or why so many
    phase: int = WARMUP
    done: int = 0  # steps of this phase
    times: Times = field(default_factory=Times)

    @property
    def thin(self) -> int:
        return self.steps_per_draw if self.phase == DRAWS else 1

    @property
    def total(self) -> int:
        """Steps of this phase."""
        return self.num_draws * self.steps_per_draw if self.phase == DRAWS else self.num_warmup

    @property
    def left(self) -> int:
        """Steps to the end of the run, as far as that is known."""
        later = self.num_draws * max(self.steps_per_draw, 1) if self.phase == WARMUP else 0
        return self.total - self.done + later

    @property
    def num_rows(self) -> int:
        """Rows of this phase so far."""
        return self.done // self.thin

    @property
    def draws_so_far(self) -> int:
        return self.num_rows if self.phase == DRAWS else 0

    @property
    def block_start(self) -> int:
        """The first row of the block that the next step belongs to."""
        return self.num_rows // self.rows * self.rows

    @property
    def left_in_block(self) -> int:
        """Steps."""
        return min(self.total, (self.block_start + self.rows) * self.thin) - self.done

    @property
    def phase_over(self) -> bool:
        return self.done == self.total

    @property
    def warmup_made(self) -> int:
        return self.done if self.phase == WARMUP else self.num_warmup

    @property
    def finished(self) -> bool:
        return self.phase == DRAWS and self.phase_over

    def passed(self, steps: int, seconds: float) -> None:
        """So many steps of this phase were made."""
        self.done += steps
        if self.phase == DRAWS:
            self.times.sampling += seconds
        else:
            self.times.warmup += seconds

    def rows_written(self) -> dict[int, int]:
        """By phase: rows that have left the state."""
        return {self.phase: self.block_start} | ({WARMUP: self.num_warmup} if self.phase == DRAWS else {})

    def rows_known(self) -> dict[int, int]:
        """By phase: rows that have left the state, and those of the block that it has."""
        return {**self.rows_written(), self.phase: self.num_rows}

    def as_data(self) -> dict[str, Any]:
        """The header of a checkpoint's state."""
        told = {"phase": self.phase, "done": self.done, "rows": self.rows, "times": vars(self.times)}
        return told | {"thin": self.steps_per_draw, "thinning": self.thinning}

    def go_back(self, told: dict[str, Any]) -> None:
        """To what `as_data` told; ValueError where no run can be there."""
        times, whole = told["times"], [told["phase"], told["done"], told["thin"]]
        if any(type(n) is not int for n in whole) or not isinstance(told["thinning"], str):
            raise ValueError(f"a clock at {whole}")
        if not all(isinstance(t, (int, float)) and 0 <= t < math.inf for t in times.values()):
            raise ValueError(f"times of {times}")
        if (
            told["phase"] not in (WARMUP, DRAWS)
            or told["thin"] < (told["phase"] == DRAWS)
            or self.steps_per_draw not in (0, told["thin"])
        ):
            raise ValueError(f"phase {told['phase']} with {told['thin']} steps a draw")
        total = self.num_draws * told["thin"] if told["phase"] == DRAWS else self.num_warmup
        if not 0 <= told["done"] <= total:
            raise ValueError(f"{told['done']} of {total} steps")
        self.phase, self.done, self.times = told["phase"], told["done"], Times(**told["times"])
        self.steps_per_draw, self.thinning = told["thin"], told["thinning"]
