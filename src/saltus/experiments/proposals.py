"""Where the baselines propose to go: GWG, ordinal GWG of radius 3, uniform MH of radius 2."""

from __future__ import annotations

from typing import Any

import saltus

from .cells import Cell
from .lattice import STATE, correlated, draw_proposals, proposal
from .samplers import LOOKS
from .settings import Scale

TITLE = "The baselines' proposals"
ABOUT = (
    "The same lattice and state as in figure 1. GWG moves one site by one step, ordinal GWG one site by up to three, "
    "both preferring what the gradient promises; uniform MH moves both sites by up to two steps, blindly."
)
KERNELS = {"gwg": saltus.GWG(1), "gwg-ordinal": saltus.GWG(3), "uniform-mh": saltus.UniformMH(2)}
_RADII = {"gwg": "GWG (radius 1)", "gwg-ordinal": "ordinal GWG, radius 3", "uniform-mh": "uniform MH, radius 2"}


def cells(scale: Scale, seeds: int) -> list[Cell]:
    return [Cell("proposals", "proposals")]


def measure(cell: Cell, scale: Scale) -> dict[str, Any]:
    target = correlated()
    found = {name: proposal(kernel, target, STATE, scale.noises) for name, kernel in KERNELS.items()}
    return {"state": list(STATE), **{name: table.tolist() for name, table in found.items()}}


def draw(results: dict[tuple[str, str], list[dict[str, Any]]]) -> dict[str, Any]:
    kinds = {name: (_RADII[name], LOOKS[name].colour) for name in KERNELS}
    return {"proposals": draw_proposals(kinds, results["proposals", ""][0])}
