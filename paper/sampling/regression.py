"""The paper's sparse regression: five samplers, three panels; and beyond the paper what exact local models and tuning add."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import saltus
from saltus.diagnostics import Tally, marginal_error, pairwise_error

from ..experiment import Cell, Experiment, Measured, Results
from ..report import look
from ..report.claims import chain
from ..report.compared import compared
from ..report.markup import Page
from ..report.tables import beyond_rows
from ..report.verdict import AXES
from ..samplers import BEYOND, KERNELS
from ..settings import Scale
from .curves import measure as measure_curves

BEYOND_ABOUT = (
    "exact: the true change of every single site in closed form in place of the gradient, at the paper's step sizes (PAVG: "
    "without the diagonal of Σ). tuned: step sizes, and PAVG's Σ, by saltus.tune on the gradient. exact, tuned: both. "
    "auto: what sampler='auto' chose. Tuning is not in the curves; the table says what it cost."
)
SITES = 20
_CODE = tuple(range(SITES))
_NAMES = {"marginal": "marginal error", "pairwise": "pairwise error"}
PAPER = tuple(KERNELS["regression"])
KINDS = {"ncg": saltus.NCG, "avg": saltus.AVG, "pavg": saltus.PAVG}


@cache
def problem(differences: str = "gradient") -> saltus.Target:
    return saltus.targets.sparse_regression(differences=differences)


class Regression(Experiment):
    name = "regression"
    title = "Sparse Bayesian regression"
    about = (
        "Which of 20 columns, 5 distinct ones in 4 copies, explain y; 80 independent sites are appended. Marginal error: mean "
        "over the 100 sites. Pairwise error: over the 210 pairs i <= j of the 20 columns, the four cells of each table summed,"
        " as the authors' code has it. ESS: of the L1 distance from the start over the 20 columns. All chains begin at the "
        "second column. The gradient of this posterior sees the prior only, so the paper's samplers are blind to the data in "
        "their proposals. PAVG's Σ is 8 times the exact covariance."
    )
    rankings = chain("regression", "pavg >= ncg >= avg >= gwg >= gibbs")

    def cells(self, scale: Scale, seeds: int) -> list[Cell]:
        return [Cell(self.name, "regression", name, seed) for name in (*PAPER, *scale.beyond) for seed in range(seeds)]

    def measure(self, cell: Cell, scale: Scale, folder: Path) -> Measured:
        kernel, target, extra = choose(cell.sampler, cell.seed)
        truth: Any = target.truth
        length = scale.regression

        def errors(tally: Tally) -> dict[str, Any]:
            return {
                "marginal": marginal_error(tally, truth.means),
                "pairwise": pairwise_error(tally, truth.pair_table, domain="code", sites=_CODE),
            }

        starts = np.tile(np.asarray(target.initial), (length.chains, 1))
        return {**measure_curves(kernel, target, starts, cell.seed, length, errors, saltus.Binary(SITES)), **extra}

    def draw(self, results: Results) -> dict[str, Any]:
        """A figure of the paper's samplers for each x-axis, and one with what is not in the paper."""
        by_name = {sampler: measured for (_, sampler), measured in results.items()}
        drawn = {}
        for axis in AXES:
            end = "" if axis == "iterations" else f"-{axis}"
            drawn[f"regression{end}"] = _figure({name: by_name[name] for name in PAPER}, axis)
            if "auto" in by_name:
                drawn[f"regression-beyond{end}"] = _beyond(by_name, axis)
        return drawn

    def section(self, page: Page, results: Results, scale: str) -> None:
        super().section(page, results, scale)
        compared(page, self, results, scale)
        rows = beyond_rows(results)
        if not rows:
            return
        page.heading("Beyond the paper: regression")
        page.figure("regression-beyond", BEYOND_ABOUT)
        page.say(
            "Pairwise error over that of the paper's hand-tuned sampler of the same name (for auto: of PAVG, the best of them), at "
            "equal budget; less than 1 wins. Errors fall with the root of the number of draws: 0.7 is worth twice the draws."
        )
        page.table(["sampler", "against", *(f"ratio at equal {axis}" for axis in AXES), "ESS per second, ratio", "tuning"], rows)
        for axis in ("evaluations", "seconds"):
            page.figure(f"regression-beyond-{axis}", f"The same by {axis}.")


def choose(name: str, seed: int) -> tuple[saltus.Kernel, saltus.Target, dict[str, Any]]:
    """The kernel of this name, the target as it sees it, and what tuning spent."""
    base, _, variant = name.partition(" ")
    target = problem("exact" if variant.startswith("exact") else "gradient")
    if name == "auto":
        run = saltus.sample(target, "auto", seed=seed, num_draws=1000, progress=False)
        spent = {"tuning_evaluations": int(run.attrs["race_evaluations"])}
        return saltus.kernel_of(run), target, spent
    if variant.endswith("tuned"):
        tuned = saltus.tune(target, KINDS[base], seed)
        return tuned.kernel, target, {"tuning_evaluations": tuned.report.evaluations, "tuning_seconds": tuned.report.seconds}
    if name == "pavg exact":
        return _without_sites(KERNELS["regression"]["pavg"](target)), target, {}
    return KERNELS["regression"][base](target), target, {}


def _without_sites(kernel: Any) -> saltus.Kernel:
    """PAVG without the diagonal of its Σ: exact differences know what a single site does already."""
    sigma = np.asarray(kernel.preconditioner.matrix())
    return saltus.PAVG(kernel.step_size, sigma - np.diag(np.diag(sigma)), kernel.scale)


def _figure(chosen: dict[str, list[dict[str, Any]]], axis: str) -> Any:
    with look.style():
        figure, axes = look.new_figure(1, 3, 11, 3.4)
        for panel, (metric, name) in zip(axes[0], _NAMES.items(), strict=False):
            look.curves(panel, chosen, metric, axis)
            panel.set_title(name, loc="left")
        look.boxes(axes[0, 2], chosen, axis)
        axes[0, 2].set_title("effective sample size", loc="left")
        look.legend(figure, axes[0, 0], 5)
    return figure


def _beyond(by_name: dict[str, list[dict[str, Any]]], axis: str) -> Any:
    """A column for each of the paper's samplers: it, its variants, and auto beside them; a row for each measure."""
    with look.style():
        figure, axes = look.new_figure(3, len(BEYOND), 11, 8, sharex="row")
        for column, (base, variants) in zip(axes.T, BEYOND.items(), strict=True):
            chosen = {name: by_name[name] for name in (base, *variants, "auto") if name in by_name}
            for panel, (metric, name) in zip(column, _NAMES.items(), strict=False):
                look.curves(panel, chosen, metric, axis, solid=base)
                panel.set_title(f"{look.look(base).label}: {name}", loc="left")
            look.boxes(column[2], chosen, axis)
            column[2].set_title(f"{look.look(base).label}: ESS", loc="left")
            column[2].set_yticks(column[2].get_yticks(), [_variant(name) for name in chosen])
        for row in axes[:2]:
            look.share_y(row)
        for panel in axes.ravel():
            panel.xaxis.label.set_size(8)
        look.variant_legend(figure)
    return figure


def _variant(name: str) -> str:
    _, _, variant = name.partition(" ")
    return "auto" if name == "auto" else variant.replace("-", ", ") or "the paper's"
