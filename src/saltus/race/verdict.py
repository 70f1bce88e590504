"""The race in words, and as a table for people."""

from __future__ import annotations

import json
import math
from typing import Any

from .._words import aligned, counted, significant
from ..errors import SaltusError
from .contest import NOT_NEEDED
from .race import RaceRow


def paragraph(rows: list[RaceRow], out: dict[str, str], doubt: str) -> str:
    """Who won, by how much, and why not the others."""
    won = next(row for row in rows if row.chosen)
    chose = "was good enough to need no race" if len(rows) == 1 else f"won a race of {counted(len(rows), 'sampler')}"
    told = [f"{won.kernel} {chose}: {_why(won, rows)}."]
    if won.steps < math.inf:
        told.append(f"An effective draw took {won.steps:.3g} steps, by the {won.worst}.")
    if doubt:
        told.append(f"About the local model: {doubt}")
    lost = [f"{row.sampler}: {row.verdict}" for row in rows if row.verdict and row is not won]
    if lost:
        told.append("Could not win: " + "; ".join(lost) + ".")
    reasons: dict[str, list[str]] = {}
    for name, why in out.items():
        reasons.setdefault(why.rstrip("."), []).append(name)
    needless = reasons.pop(NOT_NEEDED, [])
    if needless:
        told.append(f"The others ({', '.join(needless)}) were not needed.")
    told += [f"Did not enter: {', '.join(names)} ({why})." for why, names in reasons.items()]
    return " ".join(told)


def _why(won: RaceRow, rows: list[RaceRow]) -> str:
    others = [row for row in rows if row is not won and row.ess_per_second > 0 and not row.verdict]
    if "R-hat" in won.verdict:
        return f"no sampler's chains agree yet, and its are the nearest to it (R-hat {won.rhat:.2f}); expect to need a longer run"
    if "never moved" in won.verdict or not won.steps < math.inf:
        return "nothing could be measured: no sampler changes any statistic here"
    rate = f"{significant(won.ess_per_second)} effective draws a second, all chains together"
    if not others:
        return rate
    second = max(others, key=lambda row: row.ess_per_second)
    ratio = won.ess_per_second / second.ess_per_second
    if ratio < 1:
        return f"{rate}; {second.sampler} made {significant(second.ess_per_second)}, too little more to prefer it"
    return f"{rate}, {ratio:.2g} times those of {second.sampler}, the next"


class RaceTable:
    """The race of a run; `print` it. rows: a `RaceRow` for every sampler that raced, in the order in which they did."""

    def __init__(self, rows: list[RaceRow], paragraph: str):
        self.rows, self.paragraph = rows, paragraph

    def __str__(self) -> str:
        head = ["", "ESS/second", "steps/second", "steps/ESS", "R-hat", "accepted", "compiling"]
        lines = aligned(head, [_cells(row) for row in self.rows])
        return "\n".join([lines[0], *(f"{line}  {_said(row)}".rstrip() for line, row in zip(lines[1:], self.rows, strict=True))])

    __repr__ = __str__


def _cells(row: RaceRow) -> list[str]:
    if not row.kernel:
        return [row.sampler, *["-"] * 6]
    rate = significant(row.ess_per_second) if row.ess_per_second else "-"
    steps = significant(row.steps) if row.steps < math.inf else "-"
    rhat = f"{row.rhat:.2f}" if row.rhat < 100 else "-"
    return [
        row.sampler,
        rate,
        significant(row.steps_per_second),
        steps,
        rhat,
        f"{row.acceptance:.2f}",
        f"{row.compile_seconds:.1f} s",
    ]


def _said(row: RaceRow) -> str:
    """R-hat has a column of its own."""
    verdict = row.verdict.partition(" (R-hat")[0]
    return ", but ".join(filter(None, ["chosen", verdict])) if row.chosen else verdict


def race_of(run: Any) -> RaceTable:
    """The race by which `sampler="auto"` chose: the table that the run carries."""
    text = getattr(run, "attrs", {}).get("race", "")
    if not text:
        raise SaltusError(
            "This run has no race.",
            expected='a run of saltus.sample(target), which is sampler="auto", with a warm-up long enough to race',
            found=str(getattr(run, "attrs", {}).get("sampler", type(run).__name__)),
        )
    told: list[dict[str, Any]] = [{k: math.inf if v is None else v for k, v in row.items()} for row in json.loads(text)]
    rows = [RaceRow(**row) for row in told]
    return RaceTable(rows, str(run.attrs["tuning"]))
