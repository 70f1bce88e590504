"""What the chains of Table 2 look like when training ends: samples of each sampler and K beside the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..experiment import Experiment, Results
from ..report import look
from ..report.markup import Page
from .images_pcd import SIDE
from .table2 import MODEL, PAPER, Table2, learned, unpacked

_ACROSS, _GAP = 3, 1


class Buffers(Table2):
    """The cells of Table 2, drawn otherwise."""

    name = "buffers"
    title = "Chains at the end of training"
    about = (
        "Nine chains of the buffer of every sampler and K of Table 2, beside nine samples of the model they should look like "
        "(left). MMD: maximum mean discrepancy from those samples, with the kernel exp(-mean Hamming distance); 0 is no "
        "difference."
    )

    def draw(self, results: Results) -> dict[str, Any]:
        model = next(measured[0] for (problem, _), measured in results.items() if problem == MODEL)
        chains = learned(results)
        columns = list(dict.fromkeys(problem for problem, _ in chains))
        samplers = [sampler for sampler in PAPER if any(key[1] == sampler for key in chains)]
        with look.style():
            figure, axes = look.new_figure(len(samplers), 1 + len(columns), 1.6 * (1 + len(columns)) + 0.5, 1.85 * len(samplers))
            for row, sampler in zip(axes, samplers, strict=True):
                _show(row[0], model["samples"], "samples of the model")
                row[0].set_ylabel(look.look(sampler).label)
                for panel, column in zip(row[1:], columns, strict=True):
                    if (column, sampler) not in chains:
                        panel.set_axis_off()
                        continue
                    cell = chains[column, sampler][0]
                    _show(panel, cell["samples"], f"K = {cell['num_steps']}, MMD {cell['mmd']:.3f}")
        return {"buffers": figure}

    def in_short(self, results: Results) -> list[list[str]]:
        return []

    def section(self, page: Page, results: Results, scale: str) -> None:
        Experiment.section(self, page, results, scale)


def _show(panel: Any, samples: list[str], title: str) -> None:
    panel.imshow(_tiled(unpacked(samples)), cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    panel.set_title(title, loc="left", fontsize=8)
    panel.set_xticks([])
    panel.set_yticks([])


def _tiled(bits: np.ndarray) -> np.ndarray:
    """Images side by side, grey between them."""
    size = SIDE + _GAP
    grid = np.full((_ACROSS * size - _GAP, _ACROSS * size - _GAP), 0.25)
    for i, image in enumerate(bits):
        top, left = size * (i // _ACROSS), size * (i % _ACROSS)
        grid[top : top + SIDE, left : left + SIDE] = image.reshape(SIDE, SIDE)
    return grid
