"""`lattice`: the true couplings of Table 1's lattice, those that were learned, and samples of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..experiment import Cell, Experiment, Measured, Results
from ..report import look
from ..settings import Scale
from .ising_pcd import COLUMNS, NUM_STEPS, SIDE, lattice_data, learn, learned_couplings, measured, true_couplings

SAMPLERS = ("ncg", "pavg", "avg")
_SHOWN = 4  # states


class Couplings(Experiment):
    name = "lattice"
    title = "The lattice, true and learned"
    about = (
        "Above: the couplings J of the torus, and those learned in the column K = 5 of Table 1, all 100 x 100 of them on one "
        "scale. Below: four states of the data, and four chains of the buffer at the end of training. A sampler that does not "
        "follow the model leaves a J that has run away, and chains that have stopped."
    )
    trains = True

    def cells(self, scale: Scale, seeds: int) -> list[Cell]:
        return [Cell(self.name, "K5", sampler) for sampler in SAMPLERS]

    def measure(self, cell: Cell, scale: Scale, folder: Path) -> Measured:
        num_steps, settings = NUM_STEPS[cell.sampler][COLUMNS.index(5)], scale.training
        found = learn(cell.sampler, num_steps, cell.seed, settings)
        data = lattice_data(cell.seed, settings.rows, settings.sweeps)
        return {
            **measured(found, num_steps, cell.seed, settings),
            "couplings": learned_couplings(found.params).round(4).tolist(),
            "samples": (2 * found.buffer[:_SHOWN].astype(int) - 1).tolist(),
            "data": data[:_SHOWN].astype(int).tolist(),
        }

    def draw(self, results: Results) -> dict[str, Any]:
        found = {sampler: results["K5", sampler][0] for sampler in SAMPLERS}
        first = found[SAMPLERS[0]]
        columns = [("true", true_couplings(), first["data"])]
        for sampler, cell in found.items():
            columns.append((f"{look.look(sampler).label}, error {cell['error']:.3g}", np.array(cell["couplings"]), cell["samples"]))
        with look.style():
            figure, axes = look.new_figure(2, len(columns), 11, 5.6)
            for above, below, (label, J, states) in zip(*axes, columns, strict=True):
                shown = above.imshow(J, cmap="RdBu_r", vmin=-0.25, vmax=0.25, interpolation="nearest", rasterized=True)
                above.set_title(label, loc="left")
                below.imshow(_tiled(np.array(states)), cmap="gray_r", vmin=-1, vmax=1, interpolation="nearest")
                for panel in (above, below):
                    panel.set_xticks([])
                    panel.set_yticks([])
            axes[0, 0].set_ylabel("couplings J")
            axes[1, 0].set_ylabel("states")
            figure.colorbar(shown, ax=axes[0].tolist(), shrink=0.85, extend="both")
        return {"lattice": figure}

    def compact(self, measured: Measured) -> Measured:
        """Couplings to a hundredth of the largest that is shown."""
        return {**measured, "couplings": np.round(measured["couplings"], 3).tolist()}


def _tiled(states: np.ndarray) -> np.ndarray:
    """Four lattices in a square, with a gap between them."""
    grid = np.zeros((2 * SIDE + 1, 2 * SIDE + 1))
    for i, state in enumerate(states[:_SHOWN]):
        top, left = (SIDE + 1) * (i // 2), (SIDE + 1) * (i % 2)
        grid[top : top + SIDE, left : left + SIDE] = state.reshape(SIDE, SIDE)
    return grid
