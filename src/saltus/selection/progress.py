"""A line that says how far the errors have come."""

from __future__ import annotations

import sys

from .._words import significant


class Progress:
    """On a terminal one line that is rewritten; elsewhere nothing."""

    def __init__(self, wanted: bool):
        self._shown = wanted and sys.stderr is not None and sys.stderr.isatty()
        self._width = 0

    def say(self, text: str) -> None:
        if self._shown:
            print(f"\r{text:<{self._width}}", end="", file=sys.stderr, flush=True)
            self._width = max(self._width, len(text))

    def show(self, steps: int, error: float, goal: float, rhat: float, seconds: float) -> None:
        self.say(
            f"{steps} steps of each chain, largest error {error:.4f} (goal {goal:g}), R-hat {rhat:.3f}, {significant(seconds)} s"
        )

    def end(self) -> None:
        if self._shown and self._width:
            print(f"\r{'':<{self._width}}\r", end="", file=sys.stderr, flush=True)
