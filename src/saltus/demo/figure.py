"""The demo's figure: every site against its exact probability, and the race."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._words import significant
from ..race.race import RaceRow
from .comparison import Comparison, Group

_BLUE, _VERMILLION, _GREY, _FAINT, _INK = "#0072B2", "#D55E00", "#B4B4B4", "#EBEBEB", "#333333"  # two by Okabe and Ito
_SPREAD = 0.3  # of the sites of a group, to either side
_FEWEST_BARS, _ROOM = 3, 1.4  # places for bars; the axis, in lengths of the longest, so that words fit behind it


def draw(found: Comparison, race: list[RaceRow]) -> Any:
    """A matplotlib figure, made without pyplot: no window, no state left behind."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    look = {"font.size": 9, "axes.edgecolor": _INK, "axes.titlesize": 10, "svg.fonttype": "none", "axes.titlelocation": "left"}
    with rc_context(look):
        figure = Figure(figsize=(11, 4.2), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
        left, right = figure.subplots(1, 2, width_ratios=[3, 2])
        _marginals(left, found)
        _race(right, race)
        for axes in (left, right):
            axes.spines[["top", "right"]].set_visible(False)
        left.grid(axis="y", color=_FAINT)
        left.set_axisbelow(True)
    return figure


def _marginals(axes: Any, found: Comparison) -> None:
    for i, group in enumerate(found.groups):
        _one_group(axes, i, group, found)
    axes.set_xticks(range(len(found.groups)), [_label(group) for group in found.groups])
    axes.tick_params(axis="x", length=0)
    axes.set_ylim(bottom=min(-0.01, *(found.drawn - 2 * found.error)))
    axes.set_xlabel("sites, copies of a column side by side")
    axes.set_ylabel("probability that the column is used")
    axes.set_title(f"Which columns explain y? {len(found.exact)} sites, drawn and exact")
    axes.legend(loc="lower left", bbox_to_anchor=(0.02, 0.12), facecolor="white", edgecolor="white", framealpha=1)


def _one_group(axes: Any, i: int, group: Group, found: Comparison) -> None:
    x = i + np.linspace(-_SPREAD, _SPREAD, len(group.sites))
    names = ["exact", "drawn, with 2 standard errors"] if i == 0 else [None, None]
    bars = {"fmt": "o", "markersize": 4 if len(x) < 20 else 1.5, "elinewidth": 1.2 if len(x) < 20 else 0.5}
    axes.hlines(group.exact, x[0] - 0.1, x[-1] + 0.1, color=_VERMILLION, linewidth=1.6, label=names[0])
    axes.errorbar(x, found.drawn[group.sites], 2 * found.error[group.sites], color=_BLUE, label=names[1], **bars)


def _label(group: Group) -> str:
    """In two lines where there are many names."""
    names = group.name.split(", ")
    half = -(-len(names) // 2)
    return "\n".join(", ".join(part) for part in (names[:half], names[half:]) if part)


def _race(axes: Any, race: list[RaceRow]) -> None:
    """The fastest at the top."""
    rows = sorted(race, key=lambda row: -row.ess_per_second)
    rates = [row.ess_per_second for row in rows]
    bars = axes.barh(range(len(rows)), rates, height=0.6, color=[_VERMILLION if row.chosen else _GREY for row in rows])
    axes.bar_label(bars, [_told(row) for row in rows], padding=4)
    axes.set_yticks(range(len(rows)), [row.sampler for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(max(len(rows), _FEWEST_BARS) - 0.5, -0.5)
    axes.set_xlim(0, _ROOM * max(*rates, 1))
    axes.set_xlabel("effective draws a second, all chains together")
    axes.set_title("The race: steps measured, seconds computed" if len(rows) > 1 else "The sampler: good enough to need no race")


def _told(row: RaceRow) -> str:
    rate = significant(row.ess_per_second) if row.ess_per_second else ""
    return ", ".join(filter(None, (rate, "chosen" if row.chosen else "", row.verdict.partition(":")[0])))
