"""Table 2: the quadratic part of a convolutional energy-based model of digits, learned again by five samplers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from . import look
from .cells import Cell
from .images_pcd import SIDE, couplings, first_stages, images, relearn
from .settings import Scale
from .table1 import found_error

TITLE = "Table 2: learning in front of a convolutional network"
ABOUT = (
    "A model of 16 x 16 digits, f = xᵀJx + b·x + net(x), is learned; its samples are taken as data; then J alone is learned again "
    "from them, with K steps of a sampler an update, and the error is ||J - J*|| / 16. Crosses: the paper, whose network is that "
    "of the full scale; the quick scale has a quarter of its channels, a tenth of its learning rate and fewer updates: only the "
    "order can be compared."
)
NEEDS_FOLDER = True
IN_PART = True  # there is a table of any of its cells
FIRST = ("model",)  # the cells that all others need
COLUMNS = (5, 10, 15, 20)
PAPER = {
    "ncg": (0.128, 0.116, 0.112, 0.112),
    "avg": (3.310, 2.599, 0.496, 0.114),
    "pavg": (3.212, 0.117, 0.114, 0.112),
    "gwg": (0.732, 0.156, 0.120, 0.114),
    "gibbs": (3.121, 2.270, 1.637, 1.204),
}
NUM_STEPS = {sampler: (8, 16, 24, 32) if sampler == "gibbs" else COLUMNS for sampler in PAPER}
_SHOWN, _COMPARED = 9, 1000  # samples that are drawn, and that enter the MMD
Results = dict[tuple[str, str], list[dict[str, Any]]]


def cells(scale: Scale, seeds: int) -> list[Cell]:
    models = [Cell("table2", "model", scale.training.network.sampler, seed) for seed in range(seeds)]
    columns = [f"K{column}" for column in COLUMNS if column in scale.training.network.columns]
    return models + [Cell("table2", c, sampler, seed) for sampler in PAPER for seed in range(seeds) for c in columns]


def check(scale: Scale) -> None:
    """That the images are there, before hours of work."""
    images(scale.training)


def measure(cell: Cell, scale: Scale, folder: Path) -> dict[str, Any]:
    if cell.problem in FIRST:
        found, model = first_stages(cell.seed, scale.training, folder)
        return {**found, "train_seconds": model.seconds, "samples": packed(model.buffer[:_SHOWN])}
    num_steps = NUM_STEPS[cell.sampler][COLUMNS.index(int(cell.problem[1:]))]
    truth, learned = relearn(cell.sampler, num_steps, cell.seed, scale.training, folder)
    return {
        "error": float(np.linalg.norm(couplings(learned.params) - couplings(truth.params)) / SIDE),
        "mmd": mmd(learned.buffer[:_COMPARED], truth.buffer[-_COMPARED:]),
        "num_steps": num_steps,
        "train_seconds": learned.seconds,
        "compile_seconds": learned.compile_seconds,
        "diverged": learned.diverged,
        "acceptance": float(np.mean(learned.history["acceptance"][-100:])),
        "samples": packed(learned.buffer[:_SHOWN]),
    }


def mmd(x: np.ndarray, y: np.ndarray) -> float:
    """Maximum mean discrepancy of two sets of images, with the kernel exp(-mean Hamming distance), as a V-statistic."""

    def mean_kernel(a: np.ndarray, b: np.ndarray) -> float:
        a, b = a.astype(np.float64), b.astype(np.float64)
        return float(np.exp(-(a @ (1 - b).T + (1 - a) @ b.T) / a.shape[1]).mean())

    return float(np.sqrt(max(mean_kernel(x, x) + mean_kernel(y, y) - 2 * mean_kernel(x, y), 0)))


def packed(bits: np.ndarray) -> list[str]:
    """Images as text, four pixels a letter."""
    return [np.packbits(row.astype(np.uint8)).tobytes().hex() for row in bits]


def unpacked(text: list[str]) -> np.ndarray:
    return np.array([np.unpackbits(np.frombuffer(bytes.fromhex(row), np.uint8)) for row in text])


def learned(results: Results) -> Results:
    """Without the models of the first stages."""
    return {key: measured for key, measured in results.items() if key[0] not in FIRST}


def draw(results: Results) -> dict[str, Any]:
    with look.style():
        figure, axes = look.new_figure(1, 1, 7, 4.2)
        panel = axes[0, 0]
        for sampler in [sampler for sampler in PAPER if any(key[1] == sampler for key in learned(results))]:
            chosen = [measured for (_, name), measured in learned(results).items() if name == sampler]
            drawn, errors = look.look(sampler), [found_error(measured) for measured in chosen]
            style = {"color": drawn.colour, "linestyle": drawn.line, "label": drawn.label, "marker": "o", "markersize": 4}
            x = [measured[0]["num_steps"] for measured in chosen]
            look.with_errors(panel, x, errors, **style)
            panel.plot(NUM_STEPS[sampler], PAPER[sampler], "x", color=drawn.colour, markersize=7, markeredgewidth=1.3)
        panel.set(xscale="log", yscale="log", xlabel="K, steps of the sampler an update", ylabel="error of J, Frobenius / 16")
        panel.grid(color="#E6E6E6", linewidth=0.7)
        for axis in (panel.xaxis, panel.yaxis):
            look.plain_labels(axis)
        look.legend(figure, panel, 5)
    return {"table2": figure}
