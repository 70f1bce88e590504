"""Measure the cells that are missing, draw, judge, write the page."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import saltus

from .experiment import Cell, Experiment, Measured, Results
from .experiments import EXPERIMENTS, GROUPS
from .folder import Folder
from .pool import duration, measure_cell, measure_in_processes
from .report import look
from .report.page import write_page
from .settings import SCALES, Scale, with_columns

Say = Callable[[str], None]


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
    say: Say = lambda text: None,
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
        raise saltus.RunError(f"There is no scale {scale!r}.", expected="quick or full", found=repr(scale))
    for argument, value in {"seeds": 1 if seeds is None else seeds, "workers": workers}.items():
        if value < 1:
            raise saltus.RunError(f"`{argument}` is too small.", expected="1 or more", found=str(value))
    _check_installed(chosen)
    for each in chosen:
        each.check(SCALES[scale])
    folder = Folder(Path(out), scale)
    asked = SCALES[scale] if columns is None else with_columns(SCALES[scale], columns)
    cells = [cell for each in chosen for cell in each.cells(asked, seeds or each.num_seeds(SCALES[scale]))]
    cells = _only(list(dict.fromkeys(cells)), samplers)
    _check_known("k", columns, [column for each in chosen for column in each.columns])
    folder.claim()
    _measure(cells, folder, workers, say, dask)
    drawn = [each for each in present(folder) if each in chosen or not (folder.path / "figures" / f"{each.name}.svg").exists()]
    return _write(folder, drawn, say)


def make_page(out: Path | str, say: Say = lambda text: None) -> Path:
    """Draw and write again what is finished in `out`, from its cells or from the numbers kept of them; the path of the page."""
    _check_installed(())
    folder = Folder.open(Path(out))
    return _write(folder, present(folder), say)


def _write(folder: Folder, drawn: list[Experiment], say: Say) -> Path:
    for each in present(folder):
        folder.write_numbers(each)
    for each in drawn:
        say(f"drawing {each.name}")
        for name, figure in each.draw(results(each, folder)).items():
            look.save(figure, folder.path / "figures", name)
    say("writing the page")
    found = {each.name: results(each, folder) for each in present(folder)}
    return write_page(folder.path, folder.scale, folder.made_with, found)


def _only(cells: list[Cell], samplers: tuple[str, ...] | None) -> list[Cell]:
    """The cells of these samplers, and those that they need."""
    _check_known("samplers", samplers, [cell.sampler for cell in cells])
    return [cell for cell in cells if samplers is None or _first(cell) or cell.sampler in samplers]


def _check_known(option: str, asked: tuple | None, there: list) -> None:
    unknown = [str(each) for each in asked or () if each not in there]
    if unknown:
        raise saltus.RunError(
            f"`{option}`: {', '.join(unknown)} is not in these experiments.",
            expected=", ".join(map(str, dict.fromkeys(filter(None, there)))) or "nothing: they have none",
            found=", ".join(map(str, asked or ())),
        )


def _experiments(name: str) -> tuple[Experiment, ...]:
    if name not in EXPERIMENTS and name not in GROUPS:
        expected = ", ".join([*EXPERIMENTS, *GROUPS])
        raise saltus.RunError(f"There is no experiment {name!r}.", expected=expected, found=repr(name))
    return tuple(EXPERIMENTS[each] for each in GROUPS.get(name, (name,)))


def _check_installed(chosen: tuple[Experiment, ...]) -> None:
    needed = {"matplotlib": ("Figures need", "plots")}
    if any(each.trains for each in chosen):
        needed["optax"] = ("Training needs", "ebm")
    for package, (what, extra) in needed.items():
        if find_spec(package) is None:
            hint = f"pip install 'saltus[{extra}]'"
            raise saltus.RunError(f"{what} {package}.", expected=package, found="not installed", hint=hint)


def _measure(cells: list[Cell], folder: Folder, workers: int, say: Say, dask: str | None) -> None:
    """Cells that need others come last, so that a model that was not learned costs nothing but its own table."""
    missing = [cell for cell in cells if not folder.has(cell)]
    if len(missing) < len(cells):
        say(f"{len(cells) - len(missing)} of {len(cells)} cells are finished already")
    shared = [cell for cell in missing if (workers > 1 or dask) and EXPERIMENTS[cell.experiment].trains]
    alone = [cell for cell in missing if cell not in set(shared)]
    _one_by_one(sorted(alone, key=_prepared), folder, say)
    for later in (False, True):
        phase = sorted((cell for cell in shared if _needs_others(cell) is later), key=_prepared, reverse=True)
        if phase:
            measure_in_processes(phase, folder, workers, say, dask)


def _prepared(cell: Cell) -> bool:
    """Whether its experiment begins with cells that the others need."""
    return bool(EXPERIMENTS[cell.experiment].first)


def _first(cell: Cell) -> bool:
    return cell.problem in EXPERIMENTS[cell.experiment].first


def _needs_others(cell: Cell) -> bool:
    return _prepared(cell) and not _first(cell)


def _one_by_one(cells: list[Cell], folder: Folder, say: Say) -> None:
    began = time.monotonic()
    for done, cell in enumerate(cells):
        left = (time.monotonic() - began) / done * (len(cells) - done) if done else None
        say(f"cell {done + 1} of {len(cells)}  {cell}" + (f"  about {duration(left)} left" if left else ""))
        measure_cell(cell, folder)


def results(experiment: Experiment, folder: Folder) -> Results:
    """Everything finished of this experiment, by problem and sampler, in the order of its cells."""
    every = _every_column(folder.settings)
    most = max(folder.num_seeds(name) for name in {cell.experiment for cell in experiment.cells(every, 1)})
    found: Results = {}
    for cell in experiment.cells(every, most):
        measured = folder.load(cell)
        if measured is not None:
            found.setdefault((cell.problem, cell.sampler), []).append(measured)
    for measured_cells in found.values():
        _same_pace(measured_cells)
    return found


def _same_pace(cells: list[Measured]) -> None:
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


def present(folder: Folder) -> list[Experiment]:
    """Experiments of which every cell of a seed is finished; of those that can be shown in part, a cell that is no preparation."""
    return [each for each in EXPERIMENTS.values() if _is_present(each, folder)]


def _is_present(experiment: Experiment, folder: Folder) -> bool:
    if experiment.in_part:
        cells = experiment.cells(_every_column(folder.settings), 1)
        return any(folder.has(cell) for cell in cells if not _first(cell))
    return all(folder.has(cell) for cell in experiment.cells(folder.settings, 1))
