"""The paper's 20-dimensional ordinal mixtures: seven samplers, both orders; marginal KL, covariance error, ESS."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import saltus
from saltus.diagnostics import Tally, covariance_error, marginal_kl

from . import look
from .cells import Cell
from .curves import measure as measure_curves
from .samplers import KERNELS
from .settings import Scale
from .verdict import AXES

TITLE = "Ordinal mixtures in 20 dimensions"
ABOUT = (
    "50 values a site, a mixture of 50 bumps along the diagonal; poly2 is log-quadratic bumps, poly4 quartic ones. The marginal "
    "KL is KL(p_i || q_i) with 1e-5 added to every count, as the authors' code has it; the covariance error is a Frobenius norm. "
    "Both compare one chain with exact truth, and are averaged over chains; bands are two standard errors. "
    "PAVG's Σ is minus the exact precision, in place of the paper's estimate of it."
)
PROBLEMS = {"poly2": 2, "poly4": 4}
_START = (10, 13)  # every site begins at index 10, 11 or 12, left of most of the mass
_NAMES = {"kl": "marginal KL", "covariance": "covariance error"}


def cells(scale: Scale, seeds: int) -> list[Cell]:
    return [Cell("ordinal", p, name, seed) for p in PROBLEMS for name in KERNELS[p] for seed in range(seeds)]


@cache
def problem(name: str) -> saltus.Target:
    return saltus.targets.polynomial_mixture(PROBLEMS[name])


def measure(cell: Cell, scale: Scale) -> dict[str, Any]:
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


def draw(results: dict[tuple[str, str], list[dict[str, Any]]]) -> dict[str, Any]:
    """A figure for each x-axis: a row for each order, its three panels."""
    return {"ordinal" if axis == "iterations" else f"ordinal-{axis}": _figure(results, axis) for axis in AXES}


def _figure(results: dict[tuple[str, str], list[dict[str, Any]]], axis: str) -> Any:
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
