"""The rows of the page's tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..samplers import BEYOND, look
from .claims import Judged, numbers
from .verdict import AXES, Comparison, Estimate, Measured, Results, at_budget, common_budget, compare, estimate

METRICS = {
    "kl": "marginal KL",
    "covariance": "covariance error",
    "marginal": "marginal error",
    "pairwise": "pairwise error",
}
AXIS_HEADS = [f"by {axis}" for axis in AXES]


def claim_rows(judged: list[Judged]) -> list[list[str]]:
    """A verdict for each axis, with the two errors behind it."""
    return [
        [j.claim.problem, str(j.claim), METRICS[j.metric], *(_told(j.found[axis], j.verdicts[axis]) for axis in AXES)]
        for j in judged
    ]


def _told(found: Comparison, verdict: str) -> str:
    return f"{verdict} ({found.better} against {found.worse})"


def number_rows(cells: Results, problems: tuple[str, ...]) -> list[list[str]]:
    return [
        [
            n.problem,
            look(n.sampler).label,
            METRICS[n.metric],
            f"{n.expected:g}",
            str(n.found),
            f"{n.found.mean / n.expected:.2f}",
            n.verdict,
        ]
        for n in numbers(cells)
        if n.problem in problems
    ]


def measured_rows(cells: Results, problems: tuple[str, ...]) -> tuple[list[str], list[list[str]]]:
    """Head and rows: errors at the end, acceptance, jump, ESS and speed of every sampler."""
    chosen = {key: measured for key, measured in cells.items() if key[0] in problems}
    metrics = [m for m in METRICS if m in next(iter(chosen.values()))[0]["metrics"]]
    head = [
        "",
        "sampler",
        *(METRICS[m] for m in metrics),
        "accepted",
        "jump",
        "ESS per 1000 iterations",
        "ESS/s, all chains",
        "steps/s",
    ]
    return head, [_measured(key, measured, metrics) for key, measured in chosen.items()]


def _measured(key: tuple[str, str], measured: list[Measured], metrics: list[str]) -> list[str]:
    end = common_budget(measured, "iterations")
    speed = np.mean([cell["iterations"][-1] / cell["seconds"][-1] for cell in measured])
    return [
        *(key[0], look(key[1]).label),
        *(str(at_budget(measured, m, "iterations", end)) for m in metrics),
        *(f"{np.mean([cell[name] for cell in measured]):.3g}" for name in ("acceptance", "jump")),
        str(_ess(measured, lambda cell: cell["iterations"][-1] / 1000)),
        str(_ess(measured, lambda cell: cell["seconds"][-1] / len(cell["ess"]))),
        f"{speed:.0f}",
    ]


def _ess(measured: list[Measured], spent: Any) -> Estimate:
    """Mean over chains of the effective draws for what was spent."""
    rates = [np.array(cell["ess"]) / spent(cell) for cell in measured]
    return estimate([float(r.mean()) for r in rates], [float(r.std(ddof=1) / np.sqrt(len(r))) for r in rates])


def beyond_rows(cells: Results) -> list[list[str]]:
    """Every sampler that is not in the paper against its hand-tuned counterpart."""
    pairs = [(name, base) for base, names in BEYOND.items() for name in names] + [("auto", "pavg")]
    rows = []
    for name, base in pairs:
        ours, theirs = cells.get(("regression", name)), cells.get(("regression", base))
        if ours and theirs:
            found = [compare(ours, theirs, "pairwise", axis) for axis in AXES]
            rows.append([_named(name, ours), look(base).label, *(_win(f) for f in found), _ess_ratio(ours, theirs), _tuning(ours)])
    return rows


def _named(name: str, measured: list[Measured]) -> str:
    chosen = sorted({cell["kernel"].partition("(")[0] for cell in measured})
    return f"auto (chose {' and '.join(chosen)})" if name == "auto" else look(name).label


def _win(found: Comparison) -> str:
    word = {"holds": "wins", "does not hold": "loses"}.get(found.verdict(">"), "within the noise")
    return f"{found.ratio}, {word}"


def _ess_ratio(ours: list[Measured], theirs: list[Measured]) -> str:
    rates = [_ess(measured, lambda cell: cell["seconds"][-1]) for measured in (ours, theirs)]
    return str(Comparison(*rates).ratio)


def _tuning(measured: list[Measured]) -> str:
    spent = [cell["tuning_evaluations"] for cell in measured if "tuning_evaluations" in cell]
    return f"{np.mean(spent):.3g} evaluations" if spent else "none"
