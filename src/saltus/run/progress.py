"""What a run shows of itself while it runs: a live panel on a terminal, a line now and then elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import jax
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
    counted: str = "steps"

    def figures(self) -> list[tuple[str, str]]:
        """(label, number) for every figure that is known."""
        shown = [("steps/s", _number(self.steps_per_second))]
        shown.append(("draws/s", _number(self.steps_per_second * self.num_chains / self.thin)))
        if np.isfinite(self.acceptance):
            shown += [("accept", f"{self.acceptance:.2f}"), ("jump", f"{self.jump:.3g}")]
        if self.ess is not None:
            shown.append(("ESS", _number(self.ess) if self.ess > 0 else "constant"))
        return shown

    def line(self) -> str:
        text = f"{self.doing:<8} {self.done:>{len(str(self.total))}}/{self.total} {100 * self.done / max(self.total, 1):3.0f} %"
        text += "".join(f"  {label} {number}" for label, number in self.figures())
        return text + (f"  {_duration(self.seconds_left)} left" if self.seconds_left is not None else "")


class EnergyTrace:
    """The energies so far, for the ESS so far: the newest draws in full, and all of them thinned by halves."""

    def __init__(self) -> None:
        self.stride, self.seen = 1, 0
        self.thinned = self.newest = np.zeros((0, 0))
        self._last: float | None = None
        self._time = 0.0

    def extend(self, lp: np.ndarray) -> None:
        """lp: (rows, chains), the rows since the last call."""
        lp = lp[:, :_MOST_CHAINS]
        self.thinned = _stacked(self.thinned, lp[(-self.seen) % self.stride :: self.stride])
        self.newest = _stacked(self.newest, lp)[-_MOST_TRACE:]
        self.seen += len(lp)
        while len(self.thinned) > _MOST_TRACE:
            self.thinned, self.stride = self.thinned[::2], 2 * self.stride

    def ess(self, num_chains: int, now: bool) -> float | None:
        """Effective draws of the energy over all chains, at most once a second unless wanted `now`.

        None before 20 draws; 0 where every chain is constant.
        """
        if self.seen < 20 or (not now and time.monotonic() - self._time < _ESS_EVERY):
            return self._last
        per_chain = self.seen / self._autocorrelation_time()
        self._last = float(np.mean(per_chain)) * num_chains
        self._time = time.monotonic()
        return self._last

    def _autocorrelation_time(self) -> np.ndarray:
        """In draws, chain by chain: fast changes show in the newest draws, slow ones in the thinned trace."""
        from ..diagnostics import autocorrelation_time

        fast = autocorrelation_time(self.newest.T)
        slow = autocorrelation_time(self.thinned.T)
        constant = ~np.isfinite(slow)
        slow = np.where(slow > 1.5, self.stride * slow, 0)  # strides longer than the memory of the chain show none
        return np.where(constant, np.inf, np.maximum(np.where(np.isfinite(fast), fast, 0), np.maximum(slow, 0.5)))


def _stacked(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.concatenate([old, new]) if old.size else new


class Silent:
    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, text: str) -> None:
        """What is being done now."""

    def tell(self, text: str) -> None:
        """What the reader should still see at the end."""
        self.say(text)

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
    """For a terminal: a line that turns while there is nothing to count, then per phase a bar with its figures below."""

    def __init__(self, console: Any) -> None:
        from rich.live import Live as Display
        from rich.spinner import Spinner

        self.shown: dict[str, Status] = {}
        self.waiting, self.spinner = "", Spinner("dots")
        self.display = Display(console=console, get_renderable=self._render, refresh_per_second=8)

    def __enter__(self) -> Live:
        self.display.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.waiting = ""
        self.display.stop()

    def say(self, text: str) -> None:
        self.waiting = text

    def tell(self, text: str) -> None:
        self.display.console.print(text, markup=False, highlight=False)

    def show(self, status: Status) -> None:
        self.waiting = ""
        self.shown[status.doing] = status

    def _render(self) -> Any:
        from rich.console import Group

        lines = [line for status in self.shown.values() for line in self._phase(status)]
        if self.waiting:
            self.spinner.update(text=self.waiting)
            lines.append(self.spinner)
        return Group(*lines)

    def _phase(self, status: Status) -> list[Any]:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        bar = Table.grid(padding=(0, 1))
        left = (
            f"{_duration(status.seconds_left)} left" if status.seconds_left is not None and status.done < status.total else "done"
        )
        count = f"{status.done}/{status.total} {status.counted}"
        share = f"{100 * status.done / max(status.total, 1):.0f} %"
        bar.add_row(
            Text(f"{status.doing:<8}", "bold"), ProgressBar(max(status.total, 1), status.done, width=24), share, count, left
        )
        figures = Text("         ")
        for label, number in status.figures():
            figures.append(f"{label} ", "dim").append(f"{number}   ")
        return [bar, figures]


def make_progress(wanted: bool) -> Silent:
    """What fits where we are; process 0 alone speaks."""
    if not wanted or jax.process_index() != 0:
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
