"""What happened, one number an update of each quantity: in memory, in checkpoints, and as a JSON-lines log."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..engine import disk
from ..engine.arguments import read_path
from ..engine.files import cannot_write, check_writable, read_npz
from ..errors import StorageError

History = dict[str, np.ndarray]


def pack_history(history: History) -> History:
    return {f"history.{name}": series for name, series in history.items()}


def unpack_history(arrays: History) -> History:
    return {name.removeprefix("history."): array for name, array in arrays.items() if name.startswith("history.")}


def longer(history: History, rows: History, count: int) -> History:
    """With `count` updates more. A quantity that was not, or is no longer, followed is NaN."""
    before = len(next(iter(history.values()))) if history else 0
    blank = lambda num: np.full(num, np.nan, np.float32)  # noqa: E731
    names = dict.fromkeys([*history, *rows])
    return {
        name: np.concatenate([history.get(name, blank(before)), rows[name][:count] if name in rows else blank(count)])
        for name in names
    }


def means(history: History, first: int) -> dict[str, float]:
    """Of every quantity, over updates from `first` on."""
    return {name: float(np.mean(series[first:])) for name, series in history.items() if len(series) > first}


def history(path: Any) -> History:
    """What happened so far in a training with a checkpoint, whether it still runs or not.

    path: of the checkpoint. Returns {name: (updates,) array} of loss, data_energy, model_energy, acceptance, jump and every setting
    that is retuned; as new as the checkpoint (`checkpoint_every`).
    Raises StorageError where there is no training, or none that has written its state.
    """
    place = read_path(path, "path")
    file = place / "state.npz" if place else None
    if file is None or not file.exists():
        hint = "a training writes its state every `checkpoint_every` seconds" if place and place.exists() else ""
        expected = "the folder of a training's checkpoint"
        raise StorageError(f"{place} holds no state of a training.", expected=expected, found="nothing", hint=hint)
    return unpack_history(read_npz(file, "training state")[1])


class Log:
    """A file of JSON lines, one for every `report_every` updates; pandas, wandb and TensorBoard's helpers read it.

    Every line names its run. A training that goes on from its checkpoint keeps the lines up to there and writes the rest anew.
    """

    def __init__(self, path: Path):
        self.path = path

    def open(self, run: str, update: int, overwrite: bool) -> None:
        """Go on after the line of `update`; StorageError where the file is no log of this run, unless it may be overwritten."""
        self.run = run
        check_writable(self.path, "log")
        kept = self._lines(update, overwrite) if self.path.exists() else []
        try:
            disk.write(self.path, lambda file: file.write("".join(kept).encode()))
        except OSError as cause:
            raise cannot_write(self.path, cause) from cause

    def _lines(self, update: int, overwrite: bool) -> list[str]:
        """Those of the file that are kept."""
        lines = [] if self.path.is_dir() else self.path.read_text(errors="replace").splitlines(keepends=True)
        told = [_told(line) for line in lines]
        whole = told[:-1] if told and told[-1] is None else told  # the last line may have been cut off by a kill
        if self.path.is_dir() or (lines and not whole) or any(line is None for line in whole):
            hint = "it was left as it is: choose another path"
            raise StorageError(f"{self.path} is not a log of saltus.", expected="JSON lines with run and update", hint=hint)
        own = all(line["run"] == self.run for line in whole if line)
        if whole and not (own or overwrite):
            hint = "overwrite=True replaces it, another path keeps both"
            raise StorageError(f"{self.path} is the log of another training.", expected="a new file", found="a log", hint=hint)
        return [text for text, line in zip(lines, whole, strict=False) if own and line and line["update"] <= update]

    def write(self, update: int, numbers: dict[str, float]) -> None:
        told = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        try:
            with open(self.path, "a") as file:
                file.write(json.dumps({"run": self.run, "update": update, **told}) + os.linesep)
        except OSError as cause:
            raise cannot_write(self.path, cause) from cause


def _told(line: str) -> dict[str, Any] | None:
    """A line of a log; None where it is something else."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    usable = isinstance(found, dict) and isinstance(found.get("run"), str) and isinstance(found.get("update"), int)
    return found if usable and line.endswith("\n") else None
