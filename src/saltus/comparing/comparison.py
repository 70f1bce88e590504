"""What `compare` found: rows of numbers, a table, a figure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..diagnostics.worth import worth
from ..errors import RunError
from ..kernels import Kernel
from .competitor import Competitor

_OK = "ok"


@dataclass(frozen=True)
class Ranking:
    """One sampler on one target. Arrays have one number for every repetition.

    evaluations: of log_prob, with or without its gradient, in one step of one chain; 0 where a step makes none.
    verdict: "ok", or why it is not ranked.
    """

    target: str
    sampler: str
    kernel: Kernel | None = None
    ess_per_second: np.ndarray | None = None
    ess_per_evaluation: np.ndarray | None = None
    seconds_per_step: np.ndarray | None = None
    evaluations: int = 0
    num_steps: int = 0
    acceptance: float = float("nan")
    rhat: float = float("nan")
    worst: str = ""
    tuning_seconds: float = 0.0
    verdict: str = _OK

    @staticmethod
    def of(target: str, made: Competitor, tuning_seconds: float, most_rhat: float) -> Ranking:
        each, whole = made.worths(), worth(made.whole())
        ess = np.array([made.chains.num * made.steps / found.steps for found in each])
        calls = made.chains.num * made.steps * made.evaluations
        rhat = whole.rhat
        told = f"R-hat {rhat:.2f}: its chains disagree" if np.isfinite(rhat) else "its chains do not move"
        return Ranking(
            target,
            made.name,
            made.kernel,
            ess / (made.steps * np.array(made.seconds)),
            ess / calls if calls else np.full(len(ess), np.nan),
            np.array(made.seconds),
            made.evaluations,
            made.steps * len(ess),
            float(np.mean(made.acceptance)),
            rhat,
            whole.worst,
            tuning_seconds,
            _OK if rhat <= most_rhat else told,
        )

    @staticmethod
    def unusable(target: str, sampler: str, why: str) -> Ranking:
        return Ranking(target, sampler, verdict=why)

    def but(self, verdict: str) -> Ranking:
        return replace(self, verdict=verdict)

    @property
    def ranked(self) -> bool:
        return self.verdict == _OK


@dataclass(frozen=True)
class Comparison:
    """rows: in the order of targets and samplers as given. most_rhat: the gate."""

    rows: tuple[Ranking, ...]
    most_rhat: float

    @property
    def targets(self) -> list[str]:
        return list(dict.fromkeys(row.target for row in self.rows))

    def of(self, target: str | None = None) -> list[Ranking]:
        """Rows of a target, the most effective draws per second first; those that are not ranked last."""
        if target is None and len(self.targets) == 1:
            target = self.targets[0]
        if target not in self.targets:
            raise RunError("There is no such target.", expected=", ".join(map(repr, self.targets)), found=repr(target))
        rows = [row for row in self.rows if row.target == target]
        return sorted(rows, key=lambda row: (not row.ranked, -_median(row.ess_per_second)))

    def best(self, target: str | None = None) -> Ranking | None:
        """The one with the most effective draws per second; None where none is ranked. target: may be left out if there is one."""
        rows = [row for row in self.of(target) if row.ranked]
        return rows[0] if rows else None

    def ratio(self, first: str, second: str, target: str | None = None) -> np.ndarray:
        """Effective draws per second of one sampler over those of another, repetition by repetition."""
        rows = {row.sampler: row for row in self.of(target)}
        for name in (first, second):
            if name not in rows or rows[name].ess_per_second is None:
                raise RunError("That sampler was not measured.", expected=", ".join(map(repr, rows)), found=repr(name))
        return np.asarray(rows[first].ess_per_second) / np.asarray(rows[second].ess_per_second)

    def __str__(self) -> str:
        return "\n\n".join(_table(name, self.of(name)) for name in self.targets)

    __repr__ = __str__

    def plot(self, axes: Any = None) -> Any:
        """One line of panels a target: effective draws per second, and per evaluation. Dots are medians, bars go from the least
        to the most of the repetitions; hollow dots are not ranked. axes: (targets, 2) of matplotlib, or None for a new figure."""
        from .figure import drawn

        return drawn(self, axes)


def _median(values: np.ndarray | None) -> float:
    return -1.0 if values is None else float(np.median(values))


_COLUMNS = ("", "ESS/s", "spread", "ESS/evaluation", "spread", "µs/step", "accept", "R-hat")


def _table(name: str, rows: list[Ranking]) -> str:
    cells = [_COLUMNS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_COLUMNS))]
    lines = [name]
    for line, row in zip(cells, [None, *rows], strict=True):
        text = "  ".join([line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))])
        lines.append(f"  {text}".rstrip())
        if row is not None and not row.ranked:
            lines.append(f"    not ranked: {row.verdict}")
    return "\n".join(lines)


def _cells(row: Ranking) -> tuple[str, ...]:
    if row.ess_per_second is None or row.seconds_per_step is None:
        return (row.sampler, *("-" for _ in _COLUMNS[1:]))
    second, call = row.ess_per_second, row.ess_per_evaluation
    told = (row.sampler, _figure(second), _spread(second), _figure(call), _spread(call))
    return (*told, f"{1e6 * np.median(row.seconds_per_step):.3g}", f"{row.acceptance:.2f}", f"{row.rhat:.3f}")


def _figure(values: Any) -> str:
    return _number(float(np.median(values))) if np.isfinite(values).all() else "-"


def _spread(values: Any) -> str:
    return f"{_number(min(values))} to {_number(max(values))}" if np.isfinite(values).all() else ""


def _number(x: float) -> str:
    """Three digits; thousands and millions written out as such."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if x >= size:
            return f"{x / size:.3g}{unit}"
    return f"{x:.3g}"
