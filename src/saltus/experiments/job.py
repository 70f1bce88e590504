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
from .catalogue import EXPERIMENTS, GROUPS, LEARNING
from .cells import Cell, Folder
from .page import write_page
from .pool import duration, measure_cell, measure_in_processes
from .settings import SCALES, Scale, with_columns

Results = dict[tuple[str, str], list[dict[str, Any]]]  # (problem, sampler) -> a cell for each seed


def reproduce(
    name: str,
    *,
    scale: str = "quick",
    out: Path | str = "saltus-results",
    seeds: int | None = None,
    workers: int = 1,
    samplers: tuple[str, ...] | None = None,
    columns: tuple[int, ...] | None = None,
    dask: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Path:
    """Run an experiment, or a group of them; the path of the page. Cells that are finished in `out` are not run again.

    workers: processes that measure training experiments, one thread each; sampling is timed, and runs alone. A script that asks
    for more than one needs `if __name__ == "__main__":` around the call.
    samplers, columns: measure these samplers only, and these values of K of the two tables; all of the scale's unless given.
    dask: address of a dask scheduler that shares out training experiments in place of processes here; its workers see `out`.
    say: told before every cell what is being done, how many are done, and about how long the rest will take.
    """
    chosen = _experiments(name)
    if scale not in SCALES:
        raise RunError(f"There is no scale {scale!r}.", expected="quick or full", found=repr(scale))
    for argument, value in {"seeds": 1 if seeds is None else seeds, "workers": workers}.items():
        if value < 1:
            raise RunError(f"`{argument}` is too small.", expected="1 or more", found=str(value))
    _check_installed(chosen)
    for each in chosen:
        getattr(module(each), "check", lambda scale: None)(SCALES[scale])
    folder = Folder(Path(out), scale)
    asked = SCALES[scale] if columns is None else with_columns(SCALES[scale], columns)
    cells = [cell for each in chosen for cell in module(each).cells(asked, seeds or _seeds(each, scale))]
    cells = _only(list(dict.fromkeys(cells)), samplers)
    _check_columns(chosen, columns)
    folder.claim()
    _measure(cells, folder, workers, say, dask)
    for each in [name for name in present(folder) if name in chosen or not (folder.path / "figures" / f"{name}.svg").exists()]:
        say(f"drawing {each}")
        for figure_name, figure in module(each).draw(results(each, folder)).items():
            look.save(figure, folder.path / "figures", figure_name)
    say("writing the page")
    return write_page(folder, {each: results(each, folder) for each in present(folder)})


def _only(cells: list[Cell], samplers: tuple[str, ...] | None) -> list[Cell]:
    """The cells of these samplers, and those that they need."""
    _check_known("samplers", samplers, [cell.sampler for cell in cells])
    return [cell for cell in cells if samplers is None or _first(cell) or cell.sampler in samplers]


def _check_columns(chosen: tuple[str, ...], columns: tuple[int, ...] | None) -> None:
    _check_known("k", columns, [column for each in chosen for column in getattr(module(each), "COLUMNS", ())])


def _check_known(option: str, asked: tuple | None, there: list) -> None:
    unknown = [str(each) for each in asked or () if each not in there]
    if unknown:
        raise RunError(
            f"`{option}`: {', '.join(unknown)} is not in these experiments.",
            expected=", ".join(map(str, dict.fromkeys(filter(None, there)))) or "nothing: they have none",
            found=", ".join(map(str, asked or ())),
        )


def _experiments(name: str) -> tuple[str, ...]:
    if name in GROUPS:
        return GROUPS[name]
    if name not in EXPERIMENTS:
        raise RunError(f"There is no experiment {name!r}.", expected=", ".join([*EXPERIMENTS, *GROUPS]), found=repr(name))
    return (name,)


def module_name(experiment: str) -> str:
    return f"{__package__}.{EXPERIMENTS[experiment]}"


def module(experiment: str) -> Any:
    return import_module(module_name(experiment))


def _check_installed(chosen: tuple[str, ...]) -> None:
    if find_spec("matplotlib") is None:
        raise RunError("Figures need matplotlib.", expected="matplotlib", found="not installed", hint="pip install 'saltus[plots]'")
    if find_spec("optax") is None and not set(chosen).isdisjoint(LEARNING):
        raise RunError("Training needs optax.", expected="optax", found="not installed", hint="pip install 'saltus[ebm]'")


def _seeds(experiment: str, scale: str) -> int:
    return SCALES[scale].training.seeds if experiment in LEARNING else SCALES[scale].seeds


def _measure(cells: list[Cell], folder: Folder, workers: int, say: Callable[[str], None], dask: str | None) -> None:
    """Cells that need others come last, so that a model that was not learned costs nothing but its own table."""
    missing = [cell for cell in cells if not folder.file(cell).exists()]
    if len(missing) < len(cells):
        say(f"{len(cells) - len(missing)} of {len(cells)} cells are finished already")
    shared = [cell for cell in missing if (workers > 1 or dask) and cell.experiment in LEARNING]
    alone = [cell for cell in missing if cell not in set(shared)]
    _one_by_one(sorted(alone, key=_prepared), folder, say)
    for later in (False, True):
        phase = sorted((cell for cell in shared if _needs_others(cell) is later), key=_prepared, reverse=True)
        if phase:
            measure_in_processes(phase, {name: module_name(name) for name in LEARNING}, folder, workers, say, dask)


def _prepared(cell: Cell) -> bool:
    """Whether its experiment begins with cells that the others need."""
    return bool(getattr(module(cell.experiment), "FIRST", ()))


def _first(cell: Cell) -> bool:
    return cell.problem in getattr(module(cell.experiment), "FIRST", ())


def _needs_others(cell: Cell) -> bool:
    return _prepared(cell) and not _first(cell)


def _one_by_one(cells: list[Cell], folder: Folder, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    for done, cell in enumerate(cells):
        left = (time.monotonic() - began) / done * (len(cells) - done) if done else None
        say(f"cell {done + 1} of {len(cells)}  {cell}" + (f"  about {duration(left)} left" if left else ""))
        measure_cell(cell, module_name(cell.experiment), folder)


def results(experiment: str, folder: Folder) -> Results:
    """Everything finished of this experiment, by problem and sampler, in the order of its cells."""
    every = _every_column(folder.settings)
    kept = {cell.experiment for cell in module(experiment).cells(every, 1)}
    most = max(len(list((folder.path / "cells" / each).glob("*.json"))) for each in kept)
    found: Results = {}
    for cell in module(experiment).cells(every, most):
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


def _every_column(scale: Scale) -> Scale:
    return with_columns(scale, tuple(range(1, 100)))


def present(folder: Folder) -> list[str]:
    """Experiments of which every cell of a seed is finished; of those that can be shown in part, a cell that is no preparation."""
    return [name for name in EXPERIMENTS if _is_present(module(name), folder)]


def _is_present(experiment: Any, folder: Folder) -> bool:
    if getattr(experiment, "IN_PART", False):
        cells = experiment.cells(_every_column(folder.settings), 1)
        return any(folder.file(cell).exists() for cell in cells if not _first(cell))
    return all(folder.file(cell).exists() for cell in experiment.cells(folder.settings, 1))
