"""A comparison as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .comparison import Comparison, Ranking

_RANKED, _NOT = "#0072B2", "#999999"


def drawn(comparison: Comparison, axes: Any = None) -> Any:
    """(targets, 2) axes."""
    import matplotlib.pyplot as plt

    names = comparison.targets
    if axes is None:
        height = sum(0.9 + 0.3 * len(comparison.of(name)) for name in names)
        ratios = [0.9 + 0.3 * len(comparison.of(name)) for name in names]
        _, axes = plt.subplots(
            len(names), 2, figsize=(9, height), squeeze=False, sharey="row", height_ratios=ratios, layout="constrained"
        )
    axes = np.asarray(axes).reshape(len(names), 2)
    for name, (left, right) in zip(names, axes, strict=True):
        rows = comparison.of(name)[::-1]
        _panel(left, rows, [row.ess_per_second for row in rows], "effective draws per second")
        _panel(right, rows, [row.ess_per_evaluation for row in rows], "effective draws per evaluation")
        left.set_title(name, fontsize=10, loc="left")
    return axes


def _panel(ax: Any, rows: list[Ranking], values: list[Any], label: str) -> None:
    shown = [i for i, each in enumerate(values) if each is not None and np.isfinite(each).all() and (each > 0).all()]
    for i in shown:
        each, ranked = values[i], rows[i].ranked
        colour = _RANKED if ranked else _NOT
        ax.plot([each.min(), each.max()], [i, i], color=colour, linewidth=2, solid_capstyle="round")
        ax.plot(np.median(each), i, "o", color=colour, markerfacecolor=colour if ranked else "white", markersize=6)
    if shown:
        ax.set_xscale("log")
    else:
        ax.set_xticks([])
    ax.set_yticks(range(len(rows)), [_label(row) for row in rows], fontsize=9)
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_xlabel(label, fontsize=9)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def _label(row: Ranking) -> str:
    name = row.sampler if len(row.sampler) <= 32 else row.sampler[:30] + "..."
    return name if row.ranked else f"{name} (not ranked)"
