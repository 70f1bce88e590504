"""PAVG's quadratic model on a target with third-order terms: pairwise error against their strength α, beside AVG."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import saltus
from saltus.diagnostics import Tally, pairwise_error

from ..experiment import Cell, Experiment, Measured, Results
from ..report import look
from ..report.markup import Page
from ..report.verdict import at_budget, common_budget, compare
from ..settings import Scale
from .chains import BLOCK, blocks
from .curves import measure as measure_curves

_COUPLING, _STEP = 0.4, 4000.0
_BURN_IN = 500  # steps from the start, before jumps mean anything
_CLIMBING = 10**6  # keeps these seeds apart from those of the run
_WINDOWS = 20  # blocks of steps by which γ climbs
_DELTA, _SHRINK = 0.25, 0.99  # its step, and what is left of that after each
SAMPLERS = ("pavg", "pavg fixed", "avg")
_HEAD = ["α", "γ", "PAVG", "PAVG, γ = 1", "AVG", "PAVG better than AVG", "with γ = 1 better than AVG"]


class ThirdOrder(Experiment):
    name = "third-order"
    title = "Third-order terms"
    about = (
        "A 4 x 4 torus of spins, coupling 0.4, plus α times the sum of 50 random products of three spins; the truth is an "
        "enumeration of 2^16 states. The published version's appendix asks here how PAVG fares where its quadratic model is wrong. "
        "Its Σ is γ times the Hessian of the quadratic part; γ climbs from 1 as in the paper, towards longer mean jumps, "
        "after a burn-in, or stays 1. The burn-in and γ = 1 were added after first results had been seen. "
        "All have the step size 1000 of {0, 1} coordinates, 4000 of spins."
    )

    def cells(self, scale: Scale, seeds: int) -> list[Cell]:
        names = [f"alpha{alpha:+.1f}" for alpha in scale.alphas]
        return [Cell(self.name, name, sampler, seed) for sampler in SAMPLERS for name in names for seed in range(seeds)]

    def measure(self, cell: Cell, scale: Scale, folder: Path) -> Measured:
        (target, pair_table), length = problem(cell.problem), scale.third_order
        starts = np.random.default_rng(cell.seed).integers(0, 2, (length.chains, target.space.num_sites))
        kernel = _kernel(cell.sampler, target, starts, cell.seed)

        def errors(tally: Tally) -> dict[str, Any]:
            return {"pairwise": pairwise_error(tally, pair_table)}

        found = measure_curves(kernel, target, starts, cell.seed, length, errors, target.space)
        return {**found, "scale": float(getattr(kernel, "scale", 0.0))}

    def draw(self, results: Results) -> dict[str, Any]:
        with look.style():
            figure, axes = look.new_figure(1, 2, 8.5, 3.6)
            for sampler in SAMPLERS:
                rows = sorted((float(p.removeprefix("alpha")), found) for (p, s), found in results.items() if s == sampler)
                drawn, alphas, errors = look.look(sampler), [alpha for alpha, _ in rows], [final(found) for _, found in rows]
                line = {"color": drawn.colour, "linestyle": drawn.line, "label": drawn.label, "marker": "o", "markersize": 4}
                look.with_errors(axes[0, 0], alphas, errors, **line)
                axes[0, 1].plot(alphas, [np.mean([cell["acceptance"] for cell in found]) for _, found in rows], **line)
            axes[0, 0].set(yscale="log", ylabel="pairwise error")
            axes[0, 1].set(ylim=(0, 1.05), ylabel="share of proposals accepted")
            for panel in axes[0]:
                panel.set_xlabel("strength α of the third-order terms")
                panel.grid(color="#E6E6E6", linewidth=0.7)
            look.legend(figure, axes[0, 1], 3)
        return {"third-order": figure}

    def section(self, page: Page, results: Results, scale: str) -> None:
        super().section(page, results, scale)
        page.say("Pairwise errors at the end of the run.")
        page.table(_HEAD, rows(results))

    def compact(self, measured: Measured) -> Measured:
        """The last point of every curve: the others are not shown."""
        ends = {name: measured[name][-1:] for name in ("iterations", "evaluations", "seconds")}
        curves = {name: {part: each[-1:] for part, each in curve.items()} for name, curve in measured["metrics"].items()}
        return {**measured, **ends, "metrics": curves}


@cache
def problem(name: str) -> tuple[saltus.Target, np.ndarray]:
    """The target of this α, and its exact tables of pairs."""
    target = saltus.targets.third_order(float(name.removeprefix("alpha")), coupling=_COUPLING)
    return target, saltus.testing.exact_moments(target).pair_table


def hessian() -> np.ndarray:
    """Of the quadratic part in spins: `coupling` between neighbours on the torus."""
    site = np.arange(16).reshape(4, 4)
    H = np.zeros((16, 16))
    for axis in (0, 1):
        H[site.ravel(), np.roll(site, 1, axis).ravel()] = _COUPLING
    return H + H.T


def _kernel(sampler: str, target: saltus.Target, starts: np.ndarray, seed: int) -> saltus.Kernel:
    if sampler == "avg":
        return saltus.AVG(_STEP)
    kernel = saltus.PAVG(_STEP, saltus.Dense(hessian()))
    return kernel if sampler == "pavg fixed" else _climb(kernel, target, starts, seed)


def _climb(kernel: Any, target: saltus.Target, codes: np.ndarray, seed: int) -> saltus.Kernel:
    """γ by the paper's hill-climb on the mean jump of windows of steps, after a burn-in; the best window's is frozen."""
    codes = list(blocks(kernel, target, codes, seed + _CLIMBING, _BURN_IN))[-1].codes[:, -1]
    scale, delta, up, last, best = 1.0, _DELTA, 1, -1.0, (-1.0, 1.0)
    for window in range(_WINDOWS):
        trial = saltus.PAVG(kernel.step_size, kernel.preconditioner, scale)
        (block,) = blocks(trial, target, codes, _CLIMBING * (window + 2) + seed, BLOCK)
        codes, jump = block.codes[:, -1], float(block.jump.mean())
        best, up, last = max(best, (jump, scale)), up if jump >= last else -up, jump
        scale = scale * (1 + up * delta) if abs(scale) >= 1 else scale + up * delta
        delta *= _SHRINK
    return saltus.PAVG(kernel.step_size, kernel.preconditioner, best[1])


def final(measured: list[dict[str, Any]]) -> Any:
    return at_budget(measured, "pairwise", "iterations", common_budget(measured, "iterations"))


def rows(cells: Results) -> list[list[str]]:
    """Pairwise errors at each α, and whether PAVG is ahead of AVG."""
    rows = []
    for alpha in sorted({problem for problem, _ in cells}, key=lambda name: float(name.removeprefix("alpha"))):
        climbed, fixed = (
            compare(cells[alpha, name], cells[alpha, "avg"], "pairwise", "iterations") for name in ("pavg", "pavg fixed")
        )
        scale = np.mean([cell["scale"] for cell in cells[alpha, "pavg"]])
        errors = [str(climbed.better), str(fixed.better), str(fixed.worse)]
        rows.append([alpha.removeprefix("alpha"), f"{scale:.2g}", *errors, climbed.verdict(">"), fixed.verdict(">")])
    return rows
