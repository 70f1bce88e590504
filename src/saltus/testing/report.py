"""What a check found, for a person to read."""

from __future__ import annotations

import dataclasses

from ..errors import CheckError
from .power import LEVEL

PROVED, OBSERVED = "proved by enumeration", "not refuted by running it"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One instrument: what it measured, against which limit, and what a failure usually means.

    how: whether a pass proves something (an enumeration does) or only fails to refute it (a test of draws).
    """

    instrument: str
    status: str  # "passed", "FAILED", "FAILED (rounding)", "not run", "warning"
    text: str
    meaning: str = ""
    how: str = ""

    @property
    def failed(self) -> bool:
        return self.status.startswith("FAILED")

    def on(self, where: str) -> Finding:
        """The same, said of another target than the one that was given."""
        return dataclasses.replace(self, text=f"on {where}: {self.text}")


@dataclasses.dataclass(frozen=True)
class Report:
    """All findings about one kernel or space.

    subject: what was checked, in words.
    """

    subject: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()  # what a pass does not say

    @property
    def passed(self) -> bool:
        return not self.failed

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(f.instrument for f in self.findings if f.failed))

    @property
    def ran(self) -> tuple[str, ...]:
        return tuple(f.instrument for f in self.findings if f.failed or f.status == "passed")

    @property
    def proved(self) -> tuple[str, ...]:
        """Instruments whose pass is a proof for the targets they ran on; the others only failed to refute."""
        return tuple(dict.fromkeys(f.instrument for f in self.findings if f.how == PROVED and f.status == "passed"))

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(f.text for f in self.findings if f.status == "warning")

    def __str__(self) -> str:
        verdict = f"FAILED ({', '.join(self.failed)})" if self.failed else "passed every instrument that could run"
        lines = [f"{self.subject}: {verdict}"]
        for how in dict.fromkeys(f.how for f in self.findings):
            lines += [f" {how}:"] if how else []
            lines += [line for f in self.findings if f.how == how for line in _lines(f)]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def raise_if_failed(self) -> Report:
        if self.failed:
            raise CheckError(str(self))
        return self


def _lines(f: Finding) -> list[str]:
    lines = [f"  {f.instrument:<17} {f.status:<8} {f.text}"]
    if (f.failed or f.status == "warning") and f.meaning:
        lines.append(f"  {'':<17} {'':<8} usually means: {f.meaning}")
    return lines


def compare(instrument: str, what: str, measured: float, limit: float, meaning: str, how: str = "") -> Finding:
    """A finding from one number that must stay below its limit; NaN fails."""
    status = "passed" if measured <= limit else "FAILED"
    return Finding(instrument, status, f"{what} = {measured:.2g} (limit {limit:.0e})", meaning, how)


def p_value(instrument: str, what: str, p: float, meaning: str, limit: float = LEVEL, how: str = "") -> Finding:
    """A finding from a test whose p-value must not be tiny."""
    status = "passed" if p >= limit else "FAILED"
    return Finding(instrument, status, f"{what}: p = {p:.2g} (fails below {limit:.0e})", meaning, how)
