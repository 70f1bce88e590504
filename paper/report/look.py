"""How figures look: one style, panels of curves and of boxes, saved as SVG."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from ..samplers import LOOKS, VARIANTS, look
from .verdict import Measured, at_budget

_INK, _FAINT = "#333333", "#E6E6E6"
_STYLE = {
    **{"font.size": 9, "axes.titlesize": 10, "axes.labelsize": 9, "legend.fontsize": 8.5, "axes.titlelocation": "left"},
    **{"axes.edgecolor": _INK, "axes.labelcolor": _INK, "xtick.color": _INK, "ytick.color": _INK, "text.color": _INK},
    **{"axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True},
    **{"svg.fonttype": "none", "svg.hashsalt": "saltus"},
}
X_LABELS = {"iterations": "iterations after burn-in", "evaluations": "evaluations of f, ∇f", "seconds": "seconds, all chains"}
RATES = {"iterations": "per 1000 iterations", "evaluations": "per 1000 evaluations", "seconds": "per second"}
_PER = {"iterations": 1000.0, "evaluations": 1000.0, "seconds": 1.0}


@contextlib.contextmanager
def style() -> Iterator[None]:
    from matplotlib import rc_context

    with rc_context(_STYLE):
        yield


def new_figure(rows: int, columns: int, width: float, height: float, **settings: Any) -> tuple[Any, np.ndarray]:
    """A figure made without pyplot (no window, no state left behind) and its axes (rows, columns)."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
    return figure, figure.subplots(rows, columns, squeeze=False, **settings)


def save(figure: Any, folder: Path, name: str) -> None:
    """As SVG, without indentation and with coordinates to a hundredth of a point: two thirds of the file."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = StringIO()
    with style():
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    text = re.sub(r' [dxy]="[^"]*"', lambda at: re.sub(r"\d+\.\d{3,}", _hundredths, at[0]), drawn.getvalue())
    text = re.sub(r"\n +", "\n", text)
    (folder / f"{name}.svg").write_text(text, encoding="utf-8")


def _hundredths(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def curves(axes: Any, cells: dict[str, list[Measured]], metric: str, axis: str, solid: str = "") -> None:
    """The mean error of each sampler with a band of two standard errors, on logarithmic axes; `solid`: that one's line."""
    for name, measured in cells.items():
        drawn = look(name)
        line = "-" if name == solid else drawn.line
        x = np.geomspace(max(c[axis][0] for c in measured), min(c[axis][-1] for c in measured), len(measured[0][axis]))
        found = [at_budget(measured, metric, axis, value) for value in x]
        mean, error = np.array([e.mean for e in found]), np.array([e.error for e in found])
        axes.plot(x, mean, color=drawn.colour, linestyle=line, linewidth=1.7, label=drawn.label)
        axes.fill_between(x, np.maximum(mean - 2 * error, mean / 10), mean + 2 * error, color=drawn.colour, alpha=0.15, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel=X_LABELS[axis])
    axes.grid(color=_FAINT, linewidth=0.7)
    plain_labels(axes.yaxis)


def plain_labels(axis: Any) -> None:
    """Plain numbers, at 1, 2 and 5 where the axis spans little."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 60 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def boxes(axes: Any, cells: dict[str, list[Measured]], axis: str) -> None:
    """Effective draws of the distance statistic for what each chain has spent; outliers are not drawn."""
    names = list(cells)
    rates = [np.concatenate([_rates(cell, axis) for cell in cells[name]]) for name in names]
    drawn = axes.boxplot(rates, orientation="horizontal", showfliers=False, patch_artist=True, widths=0.6)
    for i, name in enumerate(names):
        colour = look(name).colour
        drawn["boxes"][i].set(facecolor=colour, alpha=0.45, edgecolor=colour)
        drawn["medians"][i].set(color=_INK, linewidth=1.4)
        for part in ("whiskers", "caps"):
            for line in drawn[part][2 * i : 2 * i + 2]:
                line.set(color=colour)
    axes.set_yticks(range(1, len(names) + 1), [look(name).label for name in names])
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel=f"ESS of a chain {RATES[axis]}")
    axes.grid(axis="x", color=_FAINT, linewidth=0.7)
    plain_labels(axes.xaxis)


def _rates(cell: Measured, axis: str) -> np.ndarray:
    """Of chains that moved: a constant one has no ESS."""
    ess = np.array(cell["ess"])
    return ess[ess > 0] / cell[axis][-1] * _PER[axis]


def with_errors(panel: Any, x: Any, errors: Any, **style: Any) -> None:
    """Means with two standard errors to either side, for a log axis: a bar that would reach zero ends at a third of the mean."""
    below = [min(2 * e.error, 2 / 3 * e.mean) for e in errors]
    panel.errorbar(x, [e.mean for e in errors], [below, [2 * e.error for e in errors]], capsize=2, **style)


def legend(figure: Any, axes: Any, columns: int) -> None:
    """One for the whole figure, above it."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False, handlelength=2.8)


def share_y(row: Any) -> None:
    """The same limits in every panel."""
    limits = np.array([panel.get_ylim() for panel in row])
    for panel in row:
        panel.set_ylim(limits[:, 0].min(), limits[:, 1].max())
        plain_labels(panel.yaxis)


def variant_legend(figure: Any) -> None:
    """What the lines mean, in the ink of no sampler; their colours are those of the panels' samplers."""
    from matplotlib.lines import Line2D

    named = {
        "": "the paper's, hand-tuned",
        "exact": "exact differences",
        "tuned": "tuned",
        "exact-tuned": "exact differences, tuned",
    }
    lines = [Line2D([], [], color=_INK, linestyle=VARIANTS[kind], linewidth=1.7, label=label) for kind, label in named.items()]
    auto = LOOKS["auto"]
    lines.append(Line2D([], [], color=auto.colour, linestyle=auto.line, linewidth=1.7, label=auto.label))
    figure.legend(handles=lines, loc="outside upper center", ncols=5, frameon=False, handlelength=2.8)
