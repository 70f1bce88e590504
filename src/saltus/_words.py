"""Numbers and lists as a person reads them."""

from __future__ import annotations

import math
import re
from typing import Any

WIDTH = 96
# What steers a terminal or turns text around: controls but newline and tab, separators, marks of direction.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def escaped(text: Any) -> str:
    """The text with everything that a terminal would obey written out: '\\x1b[31m'."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def listed(names: list, most: int = 5) -> str:
    """'3, 7, 12 and 40 more'."""
    return ", ".join(map(escaped, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def counted(number: Any, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def significant(x: float) -> str:
    """Three digits: 12345.6 -> '12300', 0.0123456 -> '0.0123'."""
    if x == 0 or not math.isfinite(x):
        return f"{x:g}"
    if not 1e-4 <= abs(x) < 1e9:
        return f"{x:.2e}"
    places = 2 - math.floor(math.log10(abs(x)))
    return f"{round(x, places):.{max(places, 0)}f}"


def show_rhat(x: float) -> str:
    return f"{x:.3f}" if x < 10 else significant(x)


def aligned(head: list[str], rows: list[list[str]]) -> list[str]:
    """Columns two spaces apart, the first to the left, numbers to the right; whatever they say is escaped."""
    head, rows = list(map(escaped, head)), [list(map(escaped, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  " + f"{cells[0]:<{widths[0]}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True))
        for cells in (head, *rows)
    ]
