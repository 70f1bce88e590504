"""One figure of the table: what, its goal, what was measured, and whether that passes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Line:
    """goal: a bound of the median; at_most tells on which side. None: nothing is asked, only told."""

    what: str
    values: tuple[float, ...]
    goal: float | None = None
    at_most: bool = True
    note: str = ""

    @property
    def measured(self) -> float:
        return float(np.median(self.values)) if self.values else float("nan")

    @property
    def passed(self) -> bool:
        if self.goal is None:
            return True
        return self.measured <= self.goal if self.at_most else self.measured >= self.goal

    def __str__(self) -> str:
        goal = "" if self.goal is None else f"{'<=' if self.at_most else '>='} {self.goal:g}"
        low, high = (min(self.values), max(self.values)) if self.values else (float("nan"),) * 2
        spread = f"{low:.3g} to {high:.3g}" if len(self.values) > 1 else ""
        verdict = "" if self.goal is None else "pass" if self.passed else "MISS"
        note = f"\n    {self.note}" if self.note else ""
        return f"{self.what:<44} {goal:>7} {self.measured:>7.3g} {spread:<14} {verdict}".rstrip() + note


HEADER = f"{'figure':<44} {'goal':>7} {'median':>7} spread"


def save(folder: Path, group: str, lines: Iterable[Line], about: dict[str, str]) -> None:
    """One file per group, so that a run that was interrupted goes on."""
    folder.mkdir(parents=True, exist_ok=True)
    told = {"group": group, **about, "lines": [asdict(line) for line in lines]}
    (folder / f"{group}.json").write_text(json.dumps(told, indent=1))


def load(folder: Path, group: str) -> list[Line]:
    """What an earlier run left; nothing where there is none."""
    path = folder / f"{group}.json"
    if not path.exists():
        return []
    return [Line(**{**each, "values": tuple(each["values"])}) for each in json.loads(path.read_text())["lines"]]
