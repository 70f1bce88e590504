"""Figure 1: where GWG, NCG and PAVG propose to go from one state of a correlated lattice."""

from __future__ import annotations

from typing import Any

import numpy as np

import saltus

from .cells import Cell
from .lattice import STATE, correlated, draw_proposals, proposal
from .samplers import LOOKS
from .settings import Scale

TITLE = "Figure 1: proposals around a state"
ABOUT = (
    "Two ordinal sites of correlation 0.9. GWG moves one site by one step; NCG moves both at once, each on its own; "
    "PAVG's noise has the correlation of the target, and goes along the ridge. PAVG is averaged over its auxiliary variable."
)
_NAMES = ("gwg", "ncg", "pavg")


def cells(scale: Scale, seeds: int) -> list[Cell]:
    return [Cell("figure1", "proposals")]


def kernels(target: saltus.Target) -> dict[str, saltus.Kernel]:
    """NCG as saltus.tune has it, to a digit. PAVG with Σ the Hessian of this quadratic f: it accepts every move."""
    hessian = -np.asarray(target.params)
    return {"gwg": saltus.GWG(1), "ncg": saltus.NCG(3.5), "pavg": saltus.PAVG(1000.0, hessian)}


def measure(cell: Cell, scale: Scale) -> dict[str, Any]:
    target = correlated()
    found = {name: proposal(kernel, target, STATE, scale.noises) for name, kernel in kernels(target).items()}
    return {"state": list(STATE), **{name: table.tolist() for name, table in found.items()}}


def draw(results: dict[tuple[str, str], list[dict[str, Any]]]) -> dict[str, Any]:
    measured = results["proposals", ""][0]
    kinds = {name: (LOOKS[name].label, LOOKS[name].colour) for name in _NAMES}
    return {"figure1": draw_proposals(kinds, measured)}
