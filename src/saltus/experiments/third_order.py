"""PAVG's quadratic model on a target with third-order terms: pairwise error against their strength α, beside AVG."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import saltus
from saltus.diagnostics import Tally, pairwise_error

from . import look
from .cells import Cell
from .chains import blocks
from .curves import measure as measure_curves
from .settings import Scale
from .verdict import at_budget, common_budget

TITLE = "Third-order terms"
ABOUT = (
    "A 4 x 4 torus of spins, coupling 0.4, plus α times the sum of 50 random products of three spins; the truth is an enumeration of "
    "2^16 states. PAVG has the Hessian of the quadratic part as its Σ, times a scale γ that is chosen on the mean jump of a short "
    "run; both samplers have the step size 1000 of {0, 1} coordinates, 4000 of spins. From the appendix of the published "
    "version: it asks how PAVG fares where its quadratic model is wrong."
)
_COUPLING, _STEP = 0.4, 4000.0
_SCALES = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
_TRIAL = 200  # steps by which a scale is judged


def cells(scale: Scale, seeds: int) -> list[Cell]:
    names = [f"alpha{alpha:+.1f}" for alpha in scale.alphas]
    return [Cell("third-order", name, sampler, seed) for sampler in ("pavg", "avg") for name in names for seed in range(seeds)]


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
    kernel = saltus.AVG(_STEP) if cell.sampler == "avg" else _scaled(target, starts, cell.seed)

    def errors(tally: Tally) -> dict[str, Any]:
        return {"pairwise": pairwise_error(tally, pair_table)}

    found = measure_curves(kernel, target, starts, cell.seed, length, errors, target.space)
    return {**found, "scale": float(getattr(kernel, "scale", 0.0))}


def _scaled(target: saltus.Target, starts: np.ndarray, seed: int) -> saltus.Kernel:
    """PAVG with the γ of the longest mean jump, measured in the second half of a short run."""
    sigma = saltus.Dense(hessian())
    jumps = {}
    for scale in _SCALES:
        run = list(blocks(saltus.PAVG(_STEP, sigma, scale), target, starts, seed + 10**6, _TRIAL))
        jumps[scale] = float(np.mean([block.jump for block in run[len(run) // 2 :]]))
    return saltus.PAVG(_STEP, sigma, max(jumps, key=lambda scale: jumps[scale]))


def final(measured: list[dict[str, Any]]) -> Any:
    return at_budget(measured, "pairwise", "iterations", common_budget(measured, "iterations"))


def draw(results: dict[tuple[str, str], list[dict[str, Any]]]) -> dict[str, Any]:
    with look.style():
        figure, axes = look.new_figure(1, 2, 8.5, 3.4)
        for sampler in ("pavg", "avg"):
            rows = sorted((float(p.removeprefix("alpha")), found) for (p, s), found in results.items() if s == sampler)
            drawn = look.look(sampler)
            errors = [final(found) for _, found in rows]
            alphas = [alpha for alpha, _ in rows]
            bars = {"color": drawn.colour, "label": drawn.label, "marker": "o", "markersize": 4, "capsize": 2}
            axes[0, 0].errorbar(alphas, [e.mean for e in errors], [2 * e.error for e in errors], **bars)
            jumps = [np.mean([cell["jump"] for cell in found]) for _, found in rows]
            axes[0, 1].plot(alphas, jumps, color=drawn.colour, marker="o", markersize=4)
        axes[0, 0].set(yscale="log", ylabel="pairwise error", xlabel="strength α of the third-order terms")
        axes[0, 1].set(ylim=(0, None), ylabel="mean L1 jump of a step", xlabel="strength α of the third-order terms")
        axes[0, 0].set_title("error", loc="left")
        axes[0, 1].set_title("movement", loc="left")
        for panel in axes[0]:
            panel.grid(color="#E6E6E6", linewidth=0.7)
        look.legend(figure, axes[0, 0], 2)
    return {"third-order": figure}
