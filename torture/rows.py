"""The rows of the table: name -> what makes its trials in a folder; the second argument: for a quick look."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .disk_rows import crashes, flips, full_disk, power
from .limit_rows import limits
from .nonsense_rows import nonsense
from .place_rows import places
from .process_rows import crowds, kills, readers
from .trials import Trial

ROWS: dict[str, Callable[[Path, bool], list[Trial]]] = {
    row.__name__: row for row in (places, crashes, full_disk, power, flips, crowds, readers, kills, limits, nonsense)
}
