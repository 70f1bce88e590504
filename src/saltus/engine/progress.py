"""What a run shows of itself while it runs: a live panel on a terminal, a line now and then elsewhere, or nothing."""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from .._words import escaped
from ..diagnostics import autocorrelation_time, ess_of_chains

_LOGGER = logging.getLogger("saltus")
_MOST_TRACE = 2048  # points per chain, and chains, that the ESS so far is computed from
_MOST_CHAINS = 32
_LINE_EVERY = 10.0  # seconds between lines where there is no terminal
_ESS_EVERY = 1.0


@dataclass
class Status:
    """One moment of a run, or of any other long job."""

    doing: str  # "warm-up", "sampling", "training", ...
    done: int = 0  # steps of this phase
    total: int = 0
    figures: list[tuple[str, str]] = field(default_factory=list)  # (label, number)
    seconds_left: float | None = None
    counted: str = "steps"

    def line(self) -> str:
        text = f"{self.doing:<8} {self.done:>{len(str(self.total))}}/{self.total} {100 * self.done / max(self.total, 1):3.0f} %"
        text += "".join(f"  {label} {shown}" for label, shown in self.figures)
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
        self._last = float(np.mean(per_chain)) * num_chains * self._agreement()
        self._time = time.monotonic()
        return self._last

    def _agreement(self) -> float:
        """The share of effective draws that is left of those of single chains where chains disagree."""
        alone = np.sum(len(self.thinned) / autocorrelation_time(self.thinned.T))
        together = float(ess_of_chains(self.thinned.T.astype(np.float64)))
        return min(together / alone, 1.0) if alone > 0 and together > 0 else 1.0

    def _autocorrelation_time(self) -> np.ndarray:
        """In draws, chain by chain: fast changes show in the newest draws, slow ones in the thinned trace."""
        fast = autocorrelation_time(self.newest.T)
        slow = autocorrelation_time(self.thinned.T)
        constant = ~np.isfinite(slow)
        slow = np.where(slow > 1.5, self.stride * slow, 0)  # strides longer than the memory of the chain show none
        return np.where(constant, np.inf, np.maximum(np.where(np.isfinite(fast), fast, 0), np.maximum(slow, 0.5)))


def _stacked(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.concatenate([old, new]) if old.size else new


class Silent:
    """Shows nothing; what would be shown goes to Python's logger "saltus" in any case, at level INFO."""

    @property
    def heard(self) -> bool:
        """Whether anybody sees how far it is."""
        return _LOGGER.isEnabledFor(logging.INFO)

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, text: str) -> None:
        """What is being done now."""
        _LOGGER.info("%s", text)

    def tell(self, text: str) -> None:
        """What the reader should still see at the end."""
        self.say(text)

    def show(self, status: Status) -> None:
        """How far it is; in the log every ten seconds, and at each end."""
        if self._due(status):
            _LOGGER.info("%s", status.line())

    last, doing = -np.inf, ""

    def _due(self, status: Status) -> bool:
        ended = status.total > 0 and status.done == status.total
        due = ended or status.doing != self.doing or time.monotonic() - self.last > _LINE_EVERY
        if due:
            self.last, self.doing = time.monotonic(), status.doing
        return due


class Lines(Silent):
    """For logs and pipes: what it is doing, then a line every ten seconds and one at each end."""

    heard = True

    def __enter__(self) -> Lines:
        return self

    def say(self, text: str) -> None:
        super().say(text)
        print(escaped(f"saltus: {text}"), file=sys.stderr, flush=True)

    def show(self, status: Status) -> None:
        if self._due(status):
            self.say(status.line())


class Live(Silent):
    """For a terminal: a line that turns while there is nothing to count, then per phase a bar with its figures below."""

    heard = True

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
        super().say(text)
        self.waiting = text

    def tell(self, text: str) -> None:
        super().say(text)
        self.display.console.print(text, markup=False, highlight=False)

    def show(self, status: Status) -> None:
        super().show(status)
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
        for label, shown in status.figures:
            figures.append(f"{label} ", "dim").append(f"{shown}   ")
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


def number(x: float) -> str:
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
