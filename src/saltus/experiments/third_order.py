"""PAVG's quadratic model on a target with third-order terms: pairwise error against their strength α, beside AVG."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import saltus
from saltus.diagnostics import Tally, pairwise_error

from . import look
from .cells import Cell
from .chains import BLOCK, blocks
from .curves import measure as measure_curves
from .settings import Scale
from .verdict import at_budget, common_budget

TITLE = "Third-order terms"
ABOUT = (
    "A 4 x 4 torus of spins, coupling 0.4, plus α times the sum of 50 random products of three spins; the truth is an "
    "enumeration of 2^16 states. The published version's appendix asks here how PAVG fares where its quadratic model is wrong. "
    "Its Σ is γ times the Hessian of the quadratic part; γ climbs from 1 as in the paper, towards longer mean jumps, "
    "after a burn-in, or stays 1. The burn-in and γ = 1 were added after first results had been seen. "
    "All have the step size 1000 of {0, 1} coordinates, 4000 of spins."
)
_COUPLING, _STEP = 0.4, 4000.0
_BURN_IN = 500  # steps from the start, before jumps mean anything
_CLIMBING = 10**6  # keeps these seeds apart from those of the run
_WINDOWS = 20  # blocks of steps by which γ climbs
_DELTA, _SHRINK = 0.25, 0.99  # its step, and what is left of that after each
SAMPLERS = ("pavg", "pavg fixed", "avg")


def cells(scale: Scale, seeds: int) -> list[Cell]:
    names = [f"alpha{alpha:+.1f}" for alpha in scale.alphas]
    return [Cell("third-order", name, sampler, seed) for sampler in SAMPLERS for name in names for seed in range(seeds)]


@cache
def problem(name: str) -> tuple[saltus.Target, np.ndarray]:
    """The target of this α, and its exact tables of pairs."""
    target = saltus.targets.third_order(float(name.removeprefix("alpha")), coupling=_COUPLING)
    return target, saltus.testing.exact_moments(target).pair_table  # type: ignore[return-value]


def hessian() -> np.ndarray:
    """Of the quadratic part in spins: `coupling` between neighbours on the torus."""
    site = np.arange(16).reshape(4, 4)
    H = np.zeros((16, 16))
    for axis in (0, 1):
        H[site.ravel(), np.roll(site, 1, axis).ravel()] = _COUPLING
    return H + H.T


def measure(cell: Cell, scale: Scale) -> dict[str, Any]:
    (target, pair_table), length = problem(cell.problem), scale.third_order
    starts = np.random.default_rng(cell.seed).integers(0, 2, (length.chains, target.space.num_sites))
    kernel = _kernel(cell.sampler, target, starts, cell.seed)

    def errors(tally: Tally) -> dict[str, Any]:
        return {"pairwise": pairwise_error(tally, pair_table)}

    found = measure_curves(kernel, target, starts, cell.seed, length, errors, target.space)
    return {**found, "scale": float(getattr(kernel, "scale", 0.0))}


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


def draw(results: dict[tuple[str, str], list[dict[str, Any]]]) -> dict[str, Any]:
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
