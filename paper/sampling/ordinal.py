"""The paper's 20-dimensional ordinal mixtures: seven samplers, both orders; marginal KL, covariance error, ESS."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import saltus
from saltus.diagnostics import Tally, covariance_error, marginal_kl

from ..experiment import Cell, Experiment, Measured, Results
from ..report import look
from ..report.claims import chain, pairs
from ..report.compared import compared
from ..report.markup import Page
from ..report.verdict import AXES
from ..samplers import KERNELS
from ..settings import Scale
from .curves import measure as measure_curves

PROBLEMS = {"poly2": 2, "poly4": 4}
_START = (10, 13)  # every site begins at index 10, 11 or 12, left of most of the mass
_NAMES = {"kl": "marginal KL", "covariance": "covariance error"}


@cache
def problem(name: str) -> saltus.Target:
    return saltus.targets.polynomial_mixture(PROBLEMS[name])


class OrdinalMixtures(Experiment):
    name = "ordinal"
    title = "Ordinal mixtures in 20 dimensions"
    about = (
        "50 values a site, a mixture of 50 bumps along the diagonal; poly2 is log-quadratic bumps, poly4 quartic ones. The "
        "marginal KL is KL(p_i || q_i) with 1e-5 added to every count, as the authors' code has it; the covariance error is a "
        "Frobenius norm. Both compare one chain with exact truth, and are averaged over chains; bands are two standard errors."
        " PAVG's Σ is minus the exact precision, in place of the paper's estimate of it."
    )
    rankings = (
        *chain("poly2", "pavg > ncg > avg = gibbs > uniform-mh > gwg-ordinal > gwg"),
        *chain("poly4", "pavg = ncg > avg"),
        *pairs("poly4", "avg", ">", ("gibbs", "uniform-mh", "gwg-ordinal", "gwg")),
    )

    def cells(self, scale: Scale, seeds: int) -> list[Cell]:
        return [Cell(self.name, p, name, seed) for p in PROBLEMS for name in KERNELS[p] for seed in range(seeds)]

    def measure(self, cell: Cell, scale: Scale, folder: Path) -> Measured:
        target, length = problem(cell.problem), scale.ordinal
        truth: Any = target.truth
        starts = np.random.default_rng(cell.seed).integers(*_START, (length.chains, target.space.num_sites))

        def errors(tally: Tally) -> dict[str, Any]:
            return {
                "kl": marginal_kl(tally, truth.marginals, "p||q"),
                "kl_reverse": marginal_kl(tally, truth.marginals, "q||p"),
                "covariance": covariance_error(tally, truth.covariance),
            }

        kernel = KERNELS[cell.problem][cell.sampler](target)
        return measure_curves(kernel, target, starts, cell.seed, length, errors, target.space)

    def draw(self, results: Results) -> dict[str, Any]:
        """A figure for each x-axis: a row for each order, its three panels."""
        return {"ordinal" if axis == "iterations" else f"ordinal-{axis}": _figure(results, axis) for axis in AXES}

    def section(self, page: Page, results: Results, scale: str) -> None:
        super().section(page, results, scale)
        compared(page, self, results, scale)


def _figure(results: Results, axis: str) -> Any:
    with look.style():
        figure, axes = look.new_figure(2, 3, 11, 6.2)
        for row, order in zip(axes, PROBLEMS, strict=True):
            chosen = {sampler: measured for (problem, sampler), measured in results.items() if problem == order}
            for panel, (metric, name) in zip(row, _NAMES.items(), strict=False):
                look.curves(panel, chosen, metric, axis)
                panel.set_title(f"{order}: {name}", loc="left")
            look.boxes(row[2], chosen, axis)
            row[2].set_title(f"{order}: effective sample size", loc="left")
        look.legend(figure, axes[0, 0], 7)
    return figure
