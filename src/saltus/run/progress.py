"""What a run shows of itself while it runs: a live panel on a terminal, a line now and then elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

_MOST_TRACE = 2048  # points per chain, and chains, that the ESS so far is computed from
_MOST_CHAINS = 32
_LINE_EVERY = 10.0  # seconds between lines where there is no terminal
_ESS_EVERY = 1.0


@dataclass
class Status:
    """One moment of a run."""

    doing: str  # "compiling", "warm-up", "sampling", ...
    done: int = 0  # steps of this phase
    total: int = 0
    thin: int = 1
    num_chains: int = 1
    steps_per_second: float = float("nan")
    acceptance: float = float("nan")
    jump: float = float("nan")
    ess: float | None = None  # None: not known yet; 0: the energy is constant
    seconds_left: float | None = None

    def figures(self) -> list[tuple[str, str]]:
        """(label, number) for every figure that is known."""
        shown = [("steps/s", _number(self.steps_per_second))]
        shown.append(("draws/s", _number(self.steps_per_second * self.num_chains / self.thin)))
        if np.isfinite(self.acceptance):
            shown += [("accept", f"{self.acceptance:.2f}"), ("jump", f"{self.jump:.3g}")]
        if self.ess is not None:
            shown.append(("ESS", _number(self.ess) if self.ess > 0 else "energy is constant"))
        return shown

    def line(self) -> str:
        text = f"{self.doing:<8} {self.done:>{len(str(self.total))}}/{self.total} {100 * self.done / max(self.total, 1):3.0f} %"
        text += "".join(f"  {label} {number}" for label, number in self.figures())
        return text + (f"  {_duration(self.seconds_left)} left" if self.seconds_left is not None else "")


class EnergyTrace:
    """The energies so far, thinned by halves to a bounded length, for the ESS so far."""

    def __init__(self) -> None:
        self.stride, self.seen, self.values = 1, 0, np.zeros((0, 0))
        self._last: float | None = None
        self._time = 0.0

    def extend(self, lp: np.ndarray) -> None:
        """lp: (rows, chains), the rows since the last call."""
        lp = lp[:, :_MOST_CHAINS]
        rows = lp[(-self.seen) % self.stride :: self.stride]
        self.seen += len(lp)
        self.values = np.concatenate([self.values, rows]) if self.values.size else rows
        while len(self.values) > _MOST_TRACE:
            self.values, self.stride = self.values[::2], 2 * self.stride

    def ess(self, num_chains: int, now: bool) -> float | None:
        """Effective draws of the energy over all chains, at most once a second unless wanted `now`.

        None before 20 draws; 0 where every chain is constant.
        """
        from ..diagnostics import ess

        if len(self.values) < 20 or (not now and time.monotonic() - self._time < _ESS_EVERY):
            return self._last
        self._last = float(np.sum(ess(self.values.T))) * num_chains / self.values.shape[1]
        self._time = time.monotonic()
        return self._last


class Silent:
    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    def show(self, status: Status) -> None:
        pass


class Lines(Silent):
    """For logs and pipes: what it is doing, then a line every ten seconds and one at each end."""

    def __init__(self) -> None:
        self.last, self.doing = -np.inf, ""

    def __enter__(self) -> Lines:
        return self

    def say(self, text: str) -> None:
        print(f"saltus: {text}", file=sys.stderr, flush=True)

    def show(self, status: Status) -> None:
        ended = status.total > 0 and status.done == status.total
        if ended or status.doing != self.doing or time.monotonic() - self.last > _LINE_EVERY:
            self.last, self.doing = time.monotonic(), status.doing
            self.say(status.line())


class Live(Silent):
    """For a terminal: a bar with its figures, redrawn in place."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            TextColumn("[bold]{task.description:<9}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[figures]}"),
        )
        self.progress = Progress(*columns, console=console, refresh_per_second=8)
        self.console, self.doing = console, ""
        self.task: Any = None

    def __enter__(self) -> Live:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def say(self, text: str) -> None:
        self.console.print(f"saltus: {text}", markup=False, highlight=False)

    def show(self, status: Status) -> None:
        if status.doing != self.doing:
            self.doing = status.doing
            self.task = self.progress.add_task(status.doing, total=max(status.total, 1), figures="")
        figures = "  ".join(f"[dim]{label}[/] {number}" for label, number in status.figures())
        left = f"  {_duration(status.seconds_left)} left" if status.seconds_left is not None else ""
        self.progress.update(self.task, completed=status.done, figures=figures + left)


def make_progress(wanted: bool) -> Silent:
    if not wanted:
        return Silent()
    if sys.stderr.isatty():
        try:
            from rich.console import Console
        except ImportError:
            return Lines()
        return Live(Console(file=sys.stderr))
    return Lines()


def _number(x: float) -> str:
    """12345 -> '12.3k'."""
    if not np.isfinite(x):
        return "?"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if x >= size:
            return f"{x / (1e3 if unit == 'k' else size):.3g}{unit}"
    return f"{x:.3g}" if x < 100 else f"{x:.0f}"


def _duration(seconds: float) -> str:
    """75 -> '1:15', 3700 -> '1:01:40'."""
    whole = max(round(seconds), 0)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
