"""Table 2: the quadratic part of a convolutional energy-based model of digits, learned again by five samplers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..experiment import Cell, Experiment, Measured, Results
from ..report import look
from ..report.markup import Page
from ..report.printed import ORDER, counts, found_error, order_rows, table_rows
from ..report.verdict import ALIKE, Estimate, alike
from ..settings import SCALES, Scale
from .images_pcd import SIDE, couplings, first_stages, images, relearn

MODEL = "model"  # the problem of the cells that learn it, which all others need
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


class Table2(Experiment):
    name = "table2"
    title = "Table 2: learning in front of a convolutional network"
    about = (
        "A model of 16 x 16 digits, f = xᵀJx + b·x + net(x), is learned; its samples are taken as data; then J alone is "
        "learned again from them, with K steps of a sampler an update, and the error is ||J - J*|| / 16. Crosses: the paper, "
        "whose network is that of the full scale; the quick scale has a quarter of its channels, a tenth of its learning rate "
        "and fewer updates: only the order can be compared."
    )
    trains = in_part = True
    first = (MODEL,)
    printed = PAPER
    columns = COLUMNS

    def columns_of(self, scale: Scale) -> tuple[int, ...]:
        return scale.training.network.columns

    def cells(self, scale: Scale, seeds: int) -> list[Cell]:
        models = [Cell("table2", MODEL, scale.training.network.sampler, seed) for seed in range(seeds)]
        columns = [f"K{column}" for column in COLUMNS if column in scale.training.network.columns]
        return models + [Cell("table2", c, sampler, seed) for sampler in PAPER for seed in range(seeds) for c in columns]

    def check(self, scale: Scale) -> None:
        """That the images are there, before hours of work."""
        images(scale.training)

    def measure(self, cell: Cell, scale: Scale, folder: Path) -> Measured:
        if cell.problem == MODEL:
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

    def draw(self, results: Results) -> dict[str, Any]:
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

    def in_short(self, results: Results) -> list[list[str]]:
        orders = order_rows(results, PAPER, COLUMNS, ALIKE)
        return [["Table 2, order of samplers", *counts([row[2] for row in orders])]]

    def section(self, page: Page, results: Results, scale: str) -> None:
        super().section(page, results, scale)
        network = SCALES[scale].training.network
        models = [cell for (problem, _), cells in results.items() if problem in self.first for cell in cells]
        head = ["seed", "data", "acceptance of NCG, about 0.8", "||J*|| / 16, about 0.2", "seconds"]
        rows = [
            [cell["data"], f"{cell['acceptance']:.3f}", f"{cell['norm']:.3f}", f"{cell['train_seconds']:.0f}"] for cell in models
        ]
        page.say(
            f"The model: {network.width} channels at first, {network.first_updates} updates of {network.num_steps} steps of "
            f"{network.sampler.upper()}; J again: {network.updates} updates. A first stage that has diverged is not gone on from."
        )
        page.table(head, [[str(cell["seed"]), *row] for cell, row in zip(models, rows, strict=True)])
        same = network.width == 16
        page.table(*table_rows(results, PAPER, COLUMNS, _verdict if same else lambda *_: ""))
        page.say(ORDER.format(apart=100 * ALIKE))
        page.table(["column", "claim", "verdict"], order_rows(results, PAPER, COLUMNS, ALIKE))


def _verdict(sampler: str, column: int, found: Estimate) -> str:
    """Within 15 % of the paper's."""
    return alike(found, PAPER[sampler][COLUMNS.index(column)])


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
    return {key: measured for key, measured in results.items() if key[0] != MODEL}
