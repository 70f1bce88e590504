"""The pictures of a `Selection`: inclusion, models, size, coefficients, convergence. Readable with five columns and with
thousands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._record import as_choice
from ..errors import SelectionError

KINDS = ("all", "inclusion", "models", "size", "coefficients", "convergence")
BLUE, ORANGE, GREY = "#3465a4", "#d9822b", "#b8bcc2"


def draw(found: Any, kind: str, most: int) -> Any:
    as_choice(kind, "kind", KINDS, SelectionError)
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SelectionError("Pictures need matplotlib.", hint="pip install 'saltus[plots]'") from None
    shown = min(most, len(found.names))
    tall = 1.2 + 0.21 * shown
    if kind != "all":
        high = tall if kind in ("inclusion", "coefficients", "models") else 3.6
        figure = Figure(figsize=(7.2, max(high, 2.8)), layout="constrained")
        PANELS[kind](figure.add_subplot(), found, most)
        return figure
    figure = Figure(figsize=(12.5, max(tall, 3.4) + 3.4), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[max(tall, 3.4), 3.4])
    for axes, name in zip(top.subplots(1, 3, width_ratios=[1.1, 1, 1.1]), ("inclusion", "coefficients", "models"), strict=True):
        PANELS[name](axes, found, most)
    for axes, name in zip(bottom.subplots(1, 2), ("size", "convergence"), strict=True):
        PANELS[name](axes, found, most)
    return figure


def ranked(found: Any, most: int) -> list[str]:
    """Names of the columns that are shown: by falling inclusion."""
    return list(found.inclusion.sort_values(ascending=False, kind="stable").index[:most])


def inclusion(axes: Any, found: Any, most: int) -> None:
    names = ranked(found, most)
    value, error = found.inclusion[names].to_numpy(), found.inclusion_error[names].to_numpy()
    place = np.arange(len(names))
    axes.barh(place, value, color=[BLUE if v >= 0.5 else GREY for v in value], height=0.72)
    if not found._answer.exact:
        axes.errorbar(value, place, xerr=2 * error, fmt="none", ecolor="black", elinewidth=1, capsize=2)
    axes.axvline(0.5, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
    for y, v, e in zip(place, value, error, strict=True):
        axes.text(v + 2 * e + 0.015, y, f"{v:.2f}", va="center", fontsize=7)
    _name_rows(axes, names)
    axes.set_xlim(0, 1.12)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_xlabel("probability of being in the model" + ("" if found._answer.exact else ", ± 2 errors"))
    rest = len(found.names) - len(names)
    axes.set_title(f"Inclusion{f' (first {len(names)} of {len(found.names)} columns)' if rest else ''}", fontsize=10, loc="left")


def coefficients(axes: Any, found: Any, most: int) -> None:
    """In standard deviations of the response for one of the column, so that all fit one axis: density when in, spike when out."""
    names = ranked(found, most)
    data = found._data
    spread = data.X.std(axis=0) / data.y.std()
    where = [found.names.index(name) for name in names]
    table = found.coefficients.loc[names]
    scale = spread[where]
    mean, sd = table["mean_if_in"].to_numpy() * scale, table["sd_if_in"].to_numpy() * scale
    share = table["inclusion"].to_numpy()
    seen = np.isfinite(mean) & np.isfinite(sd) & (share > 0.01)
    reach = np.max(np.abs(mean[seen]) + 3.2 * sd[seen], initial=0.1)
    x = np.linspace(-reach, reach, 241)
    for y, (m, s, p) in enumerate(zip(mean, sd, share, strict=True)):
        axes.plot([0, 0], [y, y - 0.75 * (1 - p)], color=ORANGE, linewidth=2.2, solid_capstyle="butt")
        if np.isfinite(m) and np.isfinite(s) and s > 0 and p > 0.01:
            height = 0.75 * p * np.exp(-0.5 * ((x - m) / s) ** 2)
            axes.fill_between(x, y, y - height, color=BLUE, alpha=0.75, linewidth=0)
    _name_rows(axes, names)
    axes.set_xlim(-reach, reach)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel("coefficient, in standard deviations of y and column")
    axes.set_title("Coefficients: blue if in, orange spike: out", fontsize=10, loc="left")


def models(axes: Any, found: Any, most: int) -> None:
    """The best models side by side, each as wide as its probability; a dark cell is a column that is in."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    names = ranked(found, most)
    place = {name: i for i, name in enumerate(names)}
    table = found.models.head(40)
    width = np.sqrt(table["probability"].to_numpy())  # a root, or narrow ones cannot be seen
    width = width / max(width.sum(), 1e-300)
    edges = np.concatenate([[0], np.cumsum(width)])
    cells, colours = [], []
    coef = found.coefficients["mean_if_in"]
    for i, columns in enumerate(table["columns"]):
        for name in columns:
            if name in place:
                cells.append(Rectangle((edges[i], place[name] - 0.5), width[i], 1))
                colours.append(BLUE if not coef[name] < 0 else ORANGE)
    axes.add_collection(PatchCollection(cells, facecolors=colours, edgecolors="white", linewidths=0.3))
    _name_rows(axes, names)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xticks([])
    total = table["probability"].sum()
    axes.set_xlabel(f"{len(table)} best models, together {min(total, 1):.2g}")
    axes.set_title("Models: blue +, orange -; width: √probability", fontsize=10, loc="left")


def size(axes: Any, found: Any, most: int) -> None:
    table = found.size
    posterior = table["posterior"].to_numpy()
    seen = np.flatnonzero(posterior > 1e-3 * posterior.max())
    low, high = max(int(seen.min()) - 2, 0), min(int(seen.max()) + 3, len(posterior) - 1)
    x = np.arange(low, high + 1)
    axes.bar(x, posterior[x], color=BLUE, width=0.8, label="posterior")
    if not found._answer.exact:
        axes.errorbar(x, posterior[x], yerr=2 * table["posterior_error"].to_numpy()[x], fmt="none", ecolor="black", elinewidth=1)
    axes.plot(x, table["prior"].to_numpy()[x], color=ORANGE, marker="o", markersize=3, linewidth=1.2, label="prior")
    axes.set_xlim(low - 0.6, high + 0.6)
    axes.set_ylim(bottom=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("columns in the model")
    axes.set_title("Size", fontsize=10, loc="left")
    axes.legend(frameon=False, fontsize=8)


def convergence(axes: Any, found: Any, most: int) -> None:
    """How often the best models were visited against what their posteriors say; models of hardly any probability are left out."""
    axes.set_title("Convergence: visits against renormalised probabilities", fontsize=10, loc="left")
    if found._answer.exact:
        axes.text(0.5, 0.5, "all models were enumerated:\nnothing to converge", ha="center", va="center", transform=axes.transAxes)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    x, y, e = (found.models[name].to_numpy() for name in ("renormalised", "frequency", "frequency_error"))
    seen = (x > 1e-4 * x.max()) & (y > 0)
    x, y, e = x[seen], y[seen], e[seen]
    down = np.minimum(2 * e, 0.6 * y)  # to 0 is for ever on this axis
    axes.errorbar(x, y, yerr=[down, 2 * e], fmt="o", markersize=3, color=BLUE, ecolor=GREY, elinewidth=0.8)
    low, high = min(x.min(), y.min()) * 0.4, max(x.max(), (y + 2 * e).max()) * 1.25
    log_posterior = found._answer.models.log_posterior
    share = min(float(np.exp(np.logaddexp.reduce(log_posterior) - found.log_marginal_likelihood)), 1.0)
    share = share if np.isfinite(share) else 1.0
    axes.plot([low, high], [share * low, share * high], color="black", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_xlabel("posterior, renormalised over the models visited")
    axes.set_ylabel("weighted visits, ± 2 errors")
    worst, error = float(np.nanmax(found.rhat.to_numpy(), initial=1)), float(found.inclusion_error.max())
    axes.text(
        0.03,
        0.95,
        f"largest error of an inclusion {error:.4f}\nlargest R-hat {worst:.3f}\n"
        f"line: as it should be; the models visited hold about {share:.2g} of the probability",
        transform=axes.transAxes,
        va="top",
        fontsize=8,
    )


def _name_rows(axes: Any, names: list[str]) -> None:
    axes.set_yticks(np.arange(len(names)), [name if len(name) <= 18 else name[:16] + "…" for name in names], fontsize=8)
    axes.set_ylim(len(names) - 0.4, -1.0)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


PANELS = {"inclusion": inclusion, "coefficients": coefficients, "models": models, "size": size, "convergence": convergence}
