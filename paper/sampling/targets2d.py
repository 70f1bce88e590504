"""Both ordinal mixtures in two dimensions, where they can be seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import saltus

from ..experiment import Cell, Experiment, Measured, Results
from ..report import look
from ..settings import Scale
from .plane import probabilities

_NAMES = {"poly2": "poly2: log-quadratic bumps", "poly4": "poly4: quartic bumps"}
_ORDERS = {"poly2": 2, "poly4": 4}


class Targets2d(Experiment):
    name = "targets2d"
    title = "The ordinal mixtures in two dimensions"
    about = "The targets of the ordinal experiment with 2 sites in place of 20: probabilities of all 50 x 50 states."

    def cells(self, scale: Scale, seeds: int) -> list[Cell]:
        return [Cell(self.name, "targets")]

    def measure(self, cell: Cell, scale: Scale, folder: Path) -> Measured:
        targets = {name: saltus.targets.polynomial_mixture(order, num_sites=2) for name, order in _ORDERS.items()}
        grid = np.asarray(targets["poly2"].space.show(np.arange(50)[:, None].repeat(2, axis=1)))[:, 0]
        return {"grid": grid.tolist(), **{name: probabilities(target).tolist() for name, target in targets.items()}}

    def draw(self, results: Results) -> dict[str, Any]:
        measured = results["targets", ""][0]
        grid = measured["grid"]
        with look.style():
            figure, axes = look.new_figure(1, 2, 8, 3.7)
            for panel, (name, label) in zip(axes[0], _NAMES.items(), strict=True):
                p = 1000 * np.array(measured[name])
                shown = panel.pcolormesh(grid, grid, p.T, cmap="viridis", rasterized=True)
                panel.set(xlabel="first site", ylabel="second site", aspect="equal")
                panel.set_title(label, loc="left")
                figure.colorbar(shown, ax=panel, label="probability x 1000", shrink=0.72)
        return {self.name: figure}
