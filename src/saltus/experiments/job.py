"""`saltus reproduce`: measure the cells that are missing, draw, judge, write the page."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import RunError
from . import look
from .cells import Cell, Folder
from .page import write_page
from .settings import SCALES

EXPERIMENTS = {
    "figure1": "figure1",
    "proposals": "proposals",
    "targets2d": "targets2d",
    "ordinal": "ordinal",
    "regression": "regression",
    "third-order": "third_order",
}
GROUPS = {"sampling": tuple(EXPERIMENTS), "all": tuple(EXPERIMENTS)}
Results = dict[tuple[str, str], list[dict[str, Any]]]  # (problem, sampler) -> a cell for each seed


def reproduce(
    name: str,
    *,
    scale: str = "quick",
    out: Path | str = "saltus-results",
    seeds: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Path:
    """Run an experiment, or a group of them; the path of the page. Cells that are finished in `out` are not run again.

    say: told before every cell what is being done, how many are done, and about how long the rest will take.
    """
    chosen = _experiments(name)
    if scale not in SCALES:
        raise RunError(f"There is no scale {scale!r}.", expected="quick or full", found=repr(scale))
    seeds = SCALES[scale].seeds if seeds is None else seeds
    if seeds < 1:
        raise RunError("`seeds` is too small.", expected="1 or more", found=str(seeds))
    if find_spec("matplotlib") is None:
        raise RunError("Figures need matplotlib.", expected="matplotlib", found="not installed", hint="pip install 'saltus[plots]'")
    folder = Folder(Path(out), scale)
    folder.claim()
    cells = [cell for each in chosen for cell in module(each).cells(SCALES[scale], seeds)]
    _measure(cells, folder, say)
    for each in [name for name in present(folder) if name in chosen or not (folder.path / "figures" / f"{name}.svg").exists()]:
        say(f"drawing {each}")
        for figure_name, figure in module(each).draw(results(each, folder)).items():
            look.save(figure, folder.path / "figures", figure_name)
    say("writing the page")
    return write_page(folder, {each: results(each, folder) for each in present(folder)})


def _experiments(name: str) -> tuple[str, ...]:
    if name in GROUPS:
        return GROUPS[name]
    if name not in EXPERIMENTS:
        raise RunError(f"There is no experiment {name!r}.", expected=", ".join([*EXPERIMENTS, *GROUPS]), found=repr(name))
    return (name,)


def module(experiment: str) -> Any:
    return import_module(f"{__package__}.{EXPERIMENTS[experiment]}")


def _measure(cells: list[Cell], folder: Folder, say: Callable[[str], None]) -> None:
    missing = [cell for cell in cells if not folder.file(cell).exists()]
    if len(missing) < len(cells):
        say(f"{len(cells) - len(missing)} of {len(cells)} cells are finished already")
    began = time.monotonic()
    for done, cell in enumerate(missing):
        left = (time.monotonic() - began) / done * (len(missing) - done) if done else None
        say(
            f"cell {len(cells) - len(missing) + done + 1} of {len(cells)}  {cell}"
            + (f"  about {_duration(left)} left" if left else "")
        )
        start = time.monotonic()
        measured = module(cell.experiment).measure(cell, SCALES[folder.scale])
        folder.save(cell, {**measured, "cell_seconds": time.monotonic() - start})


def _duration(seconds: float) -> str:
    """75 -> '1:15'."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


def results(experiment: str, folder: Folder) -> Results:
    """Everything finished of this experiment, by problem and sampler, in the order of its cells."""
    most = len(list((folder.path / "cells" / experiment).glob("*.json")))
    found: Results = {}
    for cell in module(experiment).cells(SCALES[folder.scale], most):
        measured = folder.load(cell)
        if measured is not None:
            found.setdefault((cell.problem, cell.sampler), []).append(measured)
    for measured_cells in found.values():
        _same_pace(measured_cells)
    return found


def _same_pace(cells: list[dict[str, Any]]) -> None:
    """Seconds of every seed at the pace of the fastest that took the same kind of step: the others were disturbed."""
    if "seconds" not in cells[0]:
        return
    kinds = [(cell["kernel"].partition("(")[0], cell["evaluations"][-1]) for cell in cells]
    paces = [cell["seconds"][-1] / cell["iterations"][-1] for cell in cells]
    for cell, kind in zip(cells, kinds, strict=True):
        pace = min(pace for pace, other in zip(paces, kinds, strict=True) if other == kind)
        cell["seconds"] = [n * pace for n in cell["iterations"]]


def present(folder: Folder) -> list[str]:
    """Experiments of which every cell of at least one seed is finished."""
    return [name for name in EXPERIMENTS if all(folder.file(cell).exists() for cell in module(name).cells(SCALES[folder.scale], 1))]
