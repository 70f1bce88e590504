"""What an experiment is: its cells, how one of them is measured, and how all of them are drawn, judged and told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .report.claims import Ranking
from .report.markup import Page
from .report.verdict import Measured, Results
from .settings import Scale

__all__ = ["Cell", "Experiment", "Measured", "Results"]


@dataclass(frozen=True)
class Cell:
    """The smallest piece that is kept: one sampler on one problem from one seed. Pictures have a single cell."""

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


class Experiment:
    """One figure or table of the paper. A new one declares the names below, and overrides `cells`, `measure` and `draw`.

    name: what people type, and the name of its first figure.
    title, about: its heading on the page, and the caption of that figure.
    trains: it learns a model. It needs optax, and its cells may be shared out to processes, since none of them is timed.
    in_part: it is drawn as soon as one cell is there; else every cell of a seed is needed.
    first: problems of cells that the others of the same seed need.
    printed: the paper's table, sampler -> a number for each of `columns`.
    rankings: which sampler the paper says is better.
    """

    name: str
    title: str
    about: str
    trains: bool = False
    in_part: bool = False
    first: tuple[str, ...] = ()
    printed: dict[str, tuple[float, ...]] = {}
    columns: tuple[int, ...] = ()
    rankings: tuple[Ranking, ...] = ()

    def cells(self, scale: Scale, seeds: int) -> list[Cell]:
        """All that are measured at this scale; those of one sampler and seed are neighbours."""
        raise NotImplementedError

    def measure(self, cell: Cell, scale: Scale, folder: Path) -> Measured:
        """Numbers, texts and lists of them. folder: where the results are kept."""
        raise NotImplementedError

    def draw(self, results: Results) -> dict[str, Any]:
        """{name: figure}."""
        raise NotImplementedError

    def section(self, page: Page, results: Results, scale: str) -> None:
        """Its part of the page. scale: the name of the settings it was measured with."""
        page.heading(self.title)
        page.figure(self.name, self.about)

    def in_short(self, results: Results) -> list[list[str]]:
        """Rows of the table that counts verdicts: what, and how many hold, do not hold and are not decided."""
        return []

    def check(self, scale: Scale) -> None:
        """Raise an error here where something is missing, before hours of work."""

    def compact(self, measured: Measured) -> Measured:
        """What of a cell is tracked with the source: all that `draw` and `section` use."""
        return measured

    def num_seeds(self, scale: Scale) -> int:
        return scale.training.seeds if self.trains else scale.seeds

    def columns_of(self, scale: Scale) -> tuple[int, ...]:
        """The columns of its printed table that are measured at this scale."""
        return ()
