"""Where results are kept: a file for every finished cell, and one of rounded numbers for every experiment.

cells/table1/K5-ncg-seed0.json   as measured; not tracked with the source
numbers/table1.json              a line for each cell, curves to six digits: enough to draw the figures and to write the page again
figures/, results.md, results.html
settings.json                    the version and the settings that all of these belong to
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import saltus

from .experiment import Cell, Experiment, Measured
from .experiments import GROUPS
from .files import read, rounded, write_whole
from .settings import SCALES, Scale

_MARK = "settings.json"


@dataclass(frozen=True)
class Folder:
    """Results of one version and scale."""

    path: Path
    scale: str

    @property
    def settings(self) -> Scale:
        return SCALES[self.scale]

    @staticmethod
    def open(path: Path) -> Folder:
        """Finished results of whatever version, to be drawn and told again."""
        if not (path / _MARK).exists():
            raise saltus.StorageError(
                f"There are no results in {path}.",
                expected=f"a folder with {_MARK}",
                found="none" if path.exists() else "no such folder",
                hint="name the folder with --out; python -m paper sampling makes one",
            )
        folder = Folder(path, str(read(path / _MARK).get("scale")))
        if folder.scale not in SCALES:
            raise folder._refusal("other settings", folder._found())
        folder._refuse_others(any_version=True)
        return folder

    def claim(self) -> None:
        """Refuse, before any work, a place that cannot hold these results; then mark it as theirs."""
        if self.path.exists() and not self.path.is_dir():
            raise saltus.StorageError(
                f"{self.path} is not a folder.",
                expected="a folder for the results, or nothing there yet",
                found="a file",
                hint="it was left as it is: choose another with --out",
            )
        self._refuse_others()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(self.path / _MARK, json.dumps({**self._mark(), "made_with": _machine()}, indent=2) + "\n")
        except OSError as cause:
            raise saltus.StorageError(
                f"{self.path} cannot be written.",
                expected="a place with room that this user may write to",
                found=f"{type(cause).__name__}: {cause.strerror or cause}",
                hint="nothing has been computed yet: choose another folder with --out",
            ) from cause

    @property
    def made_with(self) -> str:
        """Versions and machine of the run that was here last."""
        found = self._found()
        return f"saltus {found['saltus']}" + "".join(f", {each}" for each in found.get("made_with", ()))

    def _found(self) -> dict[str, Any]:
        return read(self.path / _MARK) if (self.path / _MARK).exists() else {}

    def _mark(self) -> dict[str, Any]:
        settings = plain(self.settings)
        return {"saltus": saltus.__version__, "scale": self.scale, "training": settings.pop("training"), "settings": settings}

    def _refuse_others(self, any_version: bool = False) -> None:
        if not any((self.path / each).exists() for each in (_MARK, "cells", "numbers")):
            return
        found, ours = self._found(), self._mark()
        if found and not any(self._has_some(each) for each in GROUPS["training"]):
            found["training"] = ours["training"]  # there is nothing yet that they could differ from
        differs = [name for name, value in ours.items() if found.get(name) != value and not (any_version and name == "saltus")]
        if differs:
            kind = "another version" if "saltus" in differs else "other settings"
            raise self._refusal(kind, found, " as it is now" if differs == ["settings"] else "")

    def _refusal(self, kind: str, found: dict[str, Any], now: str = "") -> saltus.StorageError:
        return saltus.StorageError(
            f"{self.path} holds results of {kind}; they are not mixed.",
            expected=f"saltus {saltus.__version__}, scale {self.scale if self.scale in SCALES else 'quick or full'}{now}",
            found=f"saltus {found.get('saltus', 'nothing')}, scale {found.get('scale', 'nothing')}",
            hint=f"to start clean: rm -r {shlex.quote(str(self.path))}, or choose another folder with --out",
        )

    def _has_some(self, experiment: str) -> bool:
        return (self.path / "cells" / experiment).exists() or self.numbers_file(experiment).exists()

    def file(self, cell: Cell) -> Path:
        return self.path / "cells" / cell.experiment / f"{cell.name}.json"

    def numbers_file(self, experiment: str) -> Path:
        return self.path / "numbers" / f"{experiment}.json"

    def has(self, cell: Cell) -> bool:
        """Whether it is finished."""
        return self.file(cell).exists() or cell.name in self._numbers(cell.experiment)

    def load(self, cell: Cell) -> Measured | None:
        """What was measured, or None where the cell is not finished."""
        if self.file(cell).exists():
            return read(self.file(cell))
        found = self._numbers(cell.experiment).get(cell.name)
        return None if found is None else {**asdict(cell), **found}

    def save(self, cell: Cell, measured: Measured) -> None:
        path = self.file(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({**asdict(cell), **measured}, allow_nan=False) + "\n")

    def num_seeds(self, experiment: str) -> int:
        """One more than the largest seed of a cell that is finished."""
        names = [file.stem for file in (self.path / "cells" / experiment).glob("*.json")]
        seeds = [int(end[1]) for name in (*names, *self._numbers(experiment)) if (end := re.search(r"-seed(\d+)$", name))]
        return max(seeds, default=0) + 1

    def write_numbers(self, experiment: Experiment) -> None:
        """The compact numbers of every finished cell: those of before, and those of the cells that are here."""
        kept = dict(self._numbers(experiment.name))
        for file in sorted((self.path / "cells" / experiment.name).glob("*.json")):
            measured = read(file)
            for name in asdict(Cell("", "")):
                measured.pop(name, None)
            kept[file.stem] = rounded(experiment.compact(measured))
        if kept:
            self.numbers_file(experiment.name).parent.mkdir(exist_ok=True)
            lines = [f"{json.dumps(name)}: {json.dumps(each, separators=(',', ':'))}" for name, each in sorted(kept.items())]
            write_whole(self.numbers_file(experiment.name), "{\n" + ",\n".join(lines) + "\n}\n")

    def _numbers(self, experiment: str) -> Mapping[str, Measured]:
        file = self.numbers_file(experiment)
        return _read_numbers(file, file.stat().st_mtime_ns) if file.exists() else {}


@lru_cache(maxsize=16)
def _read_numbers(file: Path, changed: int) -> dict[str, Measured]:
    return read(file)


def _machine() -> list[str]:
    return [f"jax {version('jax')}", f"Python {platform.python_version()}", f"{os.cpu_count()} cores"]


def plain(scale: Scale) -> dict[str, Any]:
    """As JSON gives it back."""
    return json.loads(json.dumps(asdict(scale)))
