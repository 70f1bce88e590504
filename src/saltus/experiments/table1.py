"""Table 1: an Ising lattice learned by persistent contrastive divergence, six samplers, K steps an update."""

from __future__ import annotations

from typing import Any

from . import look
from .cells import Cell
from .ising_pcd import COLUMNS, NUM_STEPS, learn, measured
from .settings import Scale
from .verdict import Estimate, estimate

TITLE = "Table 1: learning an Ising lattice"
ABOUT = (
    "The couplings J of a 10 x 10 torus, learned from 10 000 samples by persistent contrastive divergence with K steps of a "
    "sampler each update. The error is ||J - J*|| / sqrt(d), whose floor of about 0.117 is the shrinkage of the L1 penalty, not "
    "sampling. Crosses: the paper. Dotted: step size (and scale of the preconditioner) retuned while the model trains, which "
    "the paper leaves as future work."
)
# Errors at the columns of COLUMNS, as printed.
PAPER = {
    "ncg": (0.837, 0.117, 0.117, 0.117, 0.117),
    "avg": (5.535, 5.452, 5.273, 4.814, 0.120),
    "block-gibbs": (0.120, 0.118, 0.118, 0.118, 0.118),
    "pavg": (5.521, 0.124, 0.121, 0.119, 0.119),
    "gwg": (5.271, 0.163, 0.138, 0.132, 0.128),
    "gibbs": (4.825, 0.805, 0.167, 0.136, 0.132),
}
IN_PART = True  # there is a table of any of its cells
RETUNED = ("pavg retuned", "avg retuned", "ncg retuned")
Results = dict[tuple[str, str], list[dict[str, Any]]]


def cells(scale: Scale, seeds: int) -> list[Cell]:
    columns = [f"K{column}" for column in COLUMNS if column in scale.training.columns]
    return [Cell("table1", c, s, seed) for s in (*PAPER, *RETUNED) for seed in range(seeds) for c in columns]


def measure(cell: Cell, scale: Scale) -> dict[str, Any]:
    num_steps = NUM_STEPS[cell.sampler.partition(" ")[0]][COLUMNS.index(int(cell.problem[1:]))]
    found = learn(cell.sampler, num_steps, cell.seed, scale.training)
    return measured(found, num_steps, cell.seed, scale.training)


def found_error(measured: list[dict[str, Any]]) -> Estimate:
    """Mean over seeds, with the standard error of their spread; 0 where there is one seed."""
    return estimate([cell["error"] for cell in measured], [0.0] * len(measured))


def draw(results: Results) -> dict[str, Any]:
    with look.style():
        figure, axes = look.new_figure(1, 1, 7.5, 4.6)
        panel = axes[0, 0]
        for sampler in dict.fromkeys(sampler for _, sampler in results):
            _curve(panel, sampler, results)
        panel.set(xscale="log", yscale="log", xlabel="K, steps of the sampler an update", ylabel="error of J, Frobenius / √d")
        panel.grid(color="#E6E6E6", linewidth=0.7)
        look.plain_labels(panel.xaxis)
        look.plain_labels(panel.yaxis)
        look.legend(figure, panel, 4)
    return {"table1": figure}


def _curve(panel: Any, sampler: str, results: Results) -> None:
    drawn, base = look.look(sampler), sampler.partition(" ")[0]
    chosen = [measured for (_, name), measured in results.items() if name == sampler]
    errors = [found_error(measured) for measured in chosen]
    x = [measured[0]["num_steps"] for measured in chosen]
    style = {"color": drawn.colour, "linestyle": drawn.line, "label": drawn.label, "marker": "o", "markersize": 4}
    look.with_errors(panel, x, errors, **style)
    if sampler in PAPER:
        panel.plot(NUM_STEPS[base], PAPER[sampler], "x", color=drawn.colour, markersize=7, markeredgewidth=1.3)
