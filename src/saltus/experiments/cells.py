"""A cell is the smallest piece of an experiment that is kept: one JSON file, written whole or not at all."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import saltus

from ..errors import StorageError
from .catalogue import LEARNING
from .settings import SCALES, Scale

_OURS = "settings.json"


@dataclass(frozen=True)
class Cell:
    """One sampler on one problem from one seed; pictures have a single cell."""

    experiment: str
    problem: str
    sampler: str = ""
    seed: int = 0

    @property
    def name(self) -> str:
        words = [self.problem, *self.sampler.split(), f"seed{self.seed}"] if self.sampler else [self.problem]
        return "-".join(words)

    def __str__(self) -> str:
        sampler = f", {self.sampler}, seed {self.seed}" if self.sampler else ""
        return f"{self.experiment}: {self.problem}{sampler}"


@dataclass(frozen=True)
class Folder:
    """Where results are kept, all of one version and scale."""

    path: Path
    scale: str

    @property
    def settings(self) -> Scale:
        return SCALES[self.scale]

    def claim(self) -> None:
        """Refuse, before any work, a place that cannot hold these results; then mark it as theirs."""
        if self.path.exists() and not self.path.is_dir():
            raise StorageError(
                f"{self.path} is not a folder.",
                expected="a folder for the results, or nothing there yet",
                found="a file",
                hint="it was left as it is: choose another with --out",
            )
        self._refuse_others()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(self.path / _OURS, json.dumps(self._mark(), indent=2) + "\n")
        except OSError as cause:
            raise StorageError(
                f"{self.path} cannot be written.",
                expected="a place with room that this user may write to",
                found=f"{type(cause).__name__}: {cause.strerror or cause}",
                hint="nothing has been computed yet: choose another folder with --out",
            ) from cause

    def _mark(self) -> dict[str, Any]:
        settings = plain(self.settings)
        return {"saltus": saltus.__version__, "scale": self.scale, "training": settings.pop("training"), "settings": settings}

    def _refuse_others(self) -> None:
        mark = self.path / _OURS
        if not mark.exists() and not (self.path / "cells").exists():
            return
        found = _read(mark) if mark.exists() else {}
        ours = self._mark()
        if found and not any((self.path / "cells" / each).exists() for each in LEARNING):
            found["training"] = ours["training"]  # there is nothing yet that they could differ from
        differs = [name for name, value in ours.items() if found.get(name) != value]
        if not differs:
            return
        shown = {name: found.get(name, "nothing") for name in ("saltus", "scale")}
        raise StorageError(
            f"{self.path} holds results of {'another version' if 'saltus' in differs else 'other settings'}; they are not mixed.",
            expected=f"saltus {saltus.__version__}, scale {self.scale}" + (" as it is now" if differs == ["settings"] else ""),
            found=f"saltus {shown['saltus']}, scale {shown['scale']}",
            hint=f"to start clean: rm -r {shlex.quote(str(self.path))}, or choose another folder with --out",
        )

    def file(self, cell: Cell) -> Path:
        return self.path / "cells" / cell.experiment / f"{cell.name}.json"

    def load(self, cell: Cell) -> dict[str, Any] | None:
        """What was measured, or None where the cell is not finished."""
        return _read(self.file(cell)) if self.file(cell).exists() else None

    def save(self, cell: Cell, measured: dict[str, Any]) -> None:
        path = self.file(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({**asdict(cell), **measured}, allow_nan=False) + "\n")


def plain(scale: Scale) -> dict[str, Any]:
    """As JSON gives it back."""
    return json.loads(json.dumps(asdict(scale)))


def write_whole(path: Path, text: str) -> None:
    """A reader sees the old file or the new one, also after a kill."""
    aside = path.with_name(f"{path.name}.aside")
    with open(aside, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as cause:
        raise StorageError(
            f"{path} cannot be read.",
            expected="a file written by saltus reproduce",
            found=f"{type(cause).__name__}: {cause}",
            hint=f"delete it, and the same command makes it again: rm {shlex.quote(str(path))}",
        ) from cause
