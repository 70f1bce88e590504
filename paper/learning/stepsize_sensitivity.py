"""How far from its best value may a step size be? Table 1 at K = 10, step sizes in factors of 1.5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..experiment import Cell, Experiment, Measured, Results
from ..report import look
from ..report.markup import Page
from ..report.printed import found_error
from ..settings import Scale
from .ising_pcd import STEP_SIZES, learn, measured

NUM_STEPS, FACTOR = 10, 1.5


class StepSizeSensitivity(Experiment):
    name = "stepsize-sensitivity"
    title = "Step-size sensitivity"
    about = (
        "The lattice of Table 1 with K = 10 steps an update, and the step size of each sampler multiplied by powers of 1.5 (the "
        "paper's values, at 1, are 0.5 for NCG and 0.2 for AVG and PAVG, in {0, 1} coordinates). "
        "Dashed: 0.125, near the floor of the penalty."
    )
    trains = True

    def cells(self, scale: Scale, seeds: int) -> list[Cell]:
        names = [f"step{exponent:+d}" for exponent in scale.training.exponents]
        return [Cell(self.name, name, s, seed) for s in STEP_SIZES for seed in range(seeds) for name in names]

    def measure(self, cell: Cell, scale: Scale, folder: Path) -> Measured:
        step_size = STEP_SIZES[cell.sampler] * factor(cell.problem)
        found = learn(cell.sampler, NUM_STEPS, cell.seed, scale.training, step_size)
        return {"step_size": step_size, **measured(found, NUM_STEPS, cell.seed, scale.training)}

    def draw(self, results: Results) -> dict[str, Any]:
        with look.style():
            figure, axes = look.new_figure(1, 2, 9, 3.7)
            for sampler in STEP_SIZES:
                found = [(factor(problem), cells) for (problem, name), cells in results.items() if name == sampler]
                drawn, x, errors = look.look(sampler), [f for f, _ in found], [found_error(cells) for _, cells in found]
                style = {"color": drawn.colour, "label": drawn.label, "marker": "o", "markersize": 4}
                look.with_errors(axes[0, 0], x, errors, **style)
                axes[0, 1].plot(x, [sum(c["last"]["acceptance"] for c in cells) / len(cells) for _, cells in found], **style)
            axes[0, 0].axhline(0.125, color="#888888", linewidth=0.9, linestyle=(0, (4, 3)))
            axes[0, 0].set(yscale="log", ylabel="error of J, Frobenius / √d")
            axes[0, 1].set(ylim=(0, 1.05), ylabel="acceptance at the end")
            for panel in axes[0]:
                panel.set(xscale="log", xlabel="step size over the paper's")
                panel.grid(color="#E6E6E6", linewidth=0.7)
                look.plain_labels(panel.xaxis)
            look.plain_labels(axes[0, 0].yaxis)
            look.legend(figure, axes[0, 0], 3)
        return {"stepsize-sensitivity": figure}

    def section(self, page: Page, results: Results, scale: str) -> None:
        super().section(page, results, scale)
        page.table(*rows(results))


def factor(problem: str) -> float:
    return float(FACTOR ** int(problem.removeprefix("step")))


def rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the table: an error for every factor and sampler."""
    problems = list(dict.fromkeys(problem for problem, _ in results))
    head = ["step size times", *(look.look(sampler).label for sampler in STEP_SIZES)]
    return head, [
        [f"{factor(p):.3g}", *(str(found_error(results[p, s])) for s in STEP_SIZES if (p, s) in results)] for p in problems
    ]
