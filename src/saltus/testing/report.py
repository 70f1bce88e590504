"""What a check found, for a person to read."""

from __future__ import annotations

import dataclasses

from ..errors import CheckError


@dataclasses.dataclass(frozen=True)
class Finding:
    """One instrument: what it measured, against which limit, and what a failure usually means."""

    instrument: str
    status: str  # "passed", "FAILED", "not run", "warning"
    text: str
    meaning: str = ""


@dataclasses.dataclass(frozen=True)
class Report:
    """All findings about one kernel or space."""

    subject: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        return not self.failed

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(f.instrument for f in self.findings if f.status == "FAILED")

    @property
    def ran(self) -> tuple[str, ...]:
        return tuple(f.instrument for f in self.findings if f.status in ("passed", "FAILED"))

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(f.text for f in self.findings if f.status == "warning")

    def __str__(self) -> str:
        verdict = f"FAILED ({', '.join(self.failed)})" if self.failed else "passed every instrument that could run"
        lines = [f"{self.subject}: {verdict}"]
        for f in self.findings:
            lines.append(f"  {f.instrument:<17} {f.status:<8} {f.text}")
            if f.status in ("FAILED", "warning") and f.meaning:
                lines.append(f"  {'':<17} {'':<8} usually means: {f.meaning}")
        return "\n".join(lines)

    def raise_if_failed(self) -> Report:
        if self.failed:
            raise CheckError(str(self))
        return self


def compare(instrument: str, what: str, measured: float, limit: float, meaning: str) -> Finding:
    """A finding from one number that must stay below its limit; NaN fails."""
    status = "passed" if measured <= limit else "FAILED"
    return Finding(instrument, status, f"{what} = {measured:.2g} (limit {limit:.0e})", meaning)


def p_value(instrument: str, what: str, p: float, meaning: str, limit: float = 1e-6) -> Finding:
    """A finding from a test whose p-value must not be tiny."""
    status = "passed" if p >= limit else "FAILED"
    return Finding(instrument, status, f"{what}: p = {p:.2g} (fails below {limit:.0e})", meaning)
