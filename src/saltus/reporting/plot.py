"""`saltus.plot`: pictures of a run. Every function takes matplotlib axes, or makes some, and returns them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._record import as_size
from ..diagnostics.ess import autocorrelations
from ..errors import SaltusError
from ..race import race_of
from .summary import check_run

BLUE, VERMILLION, GREY, INK = "#0072B2", "#D55E00", "#B4B4B4", "#333333"  # two by Okabe and Ito
CHAINS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MOST_POINTS = 2000  # of a line: more cannot be told apart
_MOST_BARS, _MOST_ROWS = 60, 400  # sites with a bar of their own, with a row of their own
_MOST_CHAINS = 12


def energy(run: Any, ax: Any = None) -> Any:
    """log_prob of every chain, draw by draw: chains that agree lie on top of each other.

    run: what `saltus.sample` or `saltus.open` returned. ax: matplotlib axes; new ones unless given. Returns the axes.
    """
    lp = _stat(run, "lp")
    ax = _axes(ax)
    every = max(lp.shape[1] // _MOST_POINTS, 1)
    draws = np.arange(0, lp.shape[1], every)
    for chain, series in enumerate(lp[:_MOST_CHAINS]):
        ax.plot(draws, series[::every], color=CHAINS[chain % len(CHAINS)], linewidth=0.7, label=f"chain {chain}")
    ax.set(xlabel="draw", ylabel="log_prob")
    ax.set_title(_some("Energy trace", lp.shape[0], _MOST_CHAINS, "chains"), loc="left", fontsize=10)
    return ax


def autocorrelation(run: Any, ax: Any = None, max_lag: int | None = None) -> Any:
    r"""Autocorrelation of log_prob by lag, ρ_k = Σ_n x_n x_{n+k} / Σ_n x_n², chain by chain.

    run, ax: as for `energy`. max_lag: largest lag shown, in draws; a quarter of the draws, at most 200, unless given.
    """
    lp = _stat(run, "lp").astype(np.float64)
    most = max(lp.shape[1] - 1, 1)
    lags = min(as_size(max_lag, "max_lag", SaltusError), most) if max_lag is not None else max(min(lp.shape[1] // 4, 200), 1)
    ax = _axes(ax)
    ax.axhline(0, color=GREY, linewidth=0.8)
    for chain, series in enumerate(lp[:_MOST_CHAINS]):
        rho = autocorrelations(np, series)[: lags + 1]
        ax.plot(np.arange(len(rho)), rho, color=CHAINS[chain % len(CHAINS)], linewidth=1, label=f"chain {chain}")
    ax.set(xlabel="lag, in draws", ylabel="autocorrelation of log_prob", ylim=(min(-0.1, *ax.get_ylim()), 1.05))
    ax.set_title(_some("Autocorrelation", lp.shape[0], _MOST_CHAINS, "chains"), loc="left", fontsize=10)
    return ax


def marginals(run: Any, ax: Any = None, variable: str | None = None) -> Any:
    """How often each site has each value.

    Sites with two values get a bar, the probability of the larger value with two standard errors between chains; beyond 60
    sites they are sorted and drawn as a line. With more values there is one row of shading for each site, at most 400 of them.

    run, ax: as for `energy`. variable: which part of a product of spaces; "s" of any other run.
    """
    states = _states(run, variable)
    s = states.values.reshape(*states.shape[:2], -1)
    names = [str(n) for n in states[states.dims[-1]].values] if states.ndim == 3 else [str(i) for i in range(s.shape[2])]
    values = np.unique(s)
    ax = _axes(ax, height=3.2 if len(values) <= 2 else 4.2)
    if len(values) <= 2:
        return _inclusion(ax, (s == values[-1]).mean(axis=1), names, values[-1])
    return _shading(ax, s, names, values)


def _inclusion(ax: Any, share: np.ndarray, names: list[str], value: Any) -> Any:
    """share: (chains, sites) of one value."""
    mean = share.mean(axis=0)
    error = 2 * share.std(axis=0, ddof=1) / np.sqrt(len(share)) if len(share) > 1 else np.zeros_like(mean)
    ax.axhline(0.5, color=GREY, linewidth=0.8, linestyle="--", zorder=0)
    if len(mean) <= _MOST_BARS:
        ax.bar(range(len(mean)), mean, color=BLUE, width=0.7)
        ax.errorbar(range(len(mean)), mean, error, fmt="none", ecolor=INK, elinewidth=1)
        upright = len(mean) <= 12 and max(map(len, names)) <= 6
        ax.set_xticks(range(len(mean)), [_short(name) for name in names], rotation=0 if upright else 90, fontsize=8)
    else:
        order = np.argsort(-mean)
        ax.fill_between(range(len(mean)), (mean - error)[order], (mean + error)[order], color=BLUE, alpha=0.25, linewidth=0)
        ax.plot(range(len(mean)), mean[order], color=BLUE, linewidth=1)
        ax.set_xlabel(f"{len(mean)} sites, most frequent first")
    ax.set(ylim=(0, 1.02), ylabel=f"probability of {value}")
    ax.set_title("Marginals", loc="left", fontsize=10)
    return ax


def _shading(ax: Any, s: np.ndarray, names: list[str], values: np.ndarray) -> Any:
    rows = np.unique(np.linspace(0, s.shape[2] - 1, min(s.shape[2], _MOST_ROWS)).astype(int))
    flat = s.reshape(-1, s.shape[2])[:, rows]
    share = np.stack([(flat == value).mean(axis=0) for value in values], axis=1)
    image = ax.imshow(share, aspect="auto", cmap="Blues", vmin=0, interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label="share of draws")
    ticks = np.arange(0, len(values), -(-len(values) // 9))
    ax.set_xticks(ticks, [f"{values[i]:.3g}" if values.dtype.kind == "f" else str(values[i]) for i in ticks])
    if len(rows) <= 30:
        ax.set_yticks(range(len(rows)), [_short(names[i]) for i in rows], fontsize=8)
    ax.set(xlabel="value", ylabel="site")
    ax.set_title(_some("Marginals", s.shape[2], len(rows), "sites"), loc="left", fontsize=10)
    return ax


def images(states: Any, shape: tuple[int, int], num: int = 16, axes: Any = None) -> Any:
    """States as pictures, side by side: draws evenly spaced over chains and time, or the rows of an array.

    states: a run, or an array (num, rows x columns). shape: (rows, columns) of one picture. num: how many at most.
    axes: one matplotlib axes for all of them; new ones unless given. Returns the axes.
    """
    num, shape = as_size(num, "num", SaltusError), _picture_shape(shape)
    flat = _states(states).values if hasattr(states, "children") else np.asarray(states)
    flat = flat.reshape(-1, flat.shape[-1]) if flat.ndim > 1 else flat[None]
    if flat.shape[-1] != shape[0] * shape[1] or not len(flat) or flat.dtype.kind not in "biuf":
        raise SaltusError(
            "`shape` does not fit the states.", expected=f"rows x columns = {flat.shape[-1]}", found=f"{shape[0]} x {shape[1]}"
        )
    chosen = flat[np.linspace(0, len(flat) - 1, min(num, len(flat))).astype(int)]
    columns = int(np.ceil(np.sqrt(len(chosen))))
    ax = _axes(axes, width=1.3 * columns, height=1.3 * -(-len(chosen) // columns))
    ax.imshow(_mosaic(chosen.reshape(-1, *shape).astype(float), columns), cmap=_greys(), interpolation="nearest")
    ax.set_axis_off()
    return ax


def _greys() -> Any:
    """Black on white, with a pale frame."""
    from matplotlib import colormaps

    greys = colormaps["Greys"].copy()
    greys.set_bad("#CFE3F1")
    return greys


def _mosaic(pictures: np.ndarray, columns: int) -> np.ndarray:
    """One picture of all, a line of nothing between them."""
    num, height, width = pictures.shape
    rows = -(-num // columns)
    canvas = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1), np.nan)
    for i, picture in enumerate(pictures):
        top, left = (i // columns) * (height + 1), (i % columns) * (width + 1)
        canvas[top : top + height, left : left + width] = picture
    return canvas


def race(run: Any, ax: Any = None) -> Any:
    """Effective draws a second of every sampler that raced, the fastest first; the chosen one in another colour.

    run: of `saltus.sample(target)`, which is sampler="auto". ax: as for `energy`.
    """
    rows = sorted(race_of(run).rows, key=lambda row: -row.ess_per_second)
    ax = _axes(ax, height=1.0 + 0.4 * len(rows))
    rates = [row.ess_per_second for row in rows]
    bars = ax.barh(range(len(rows)), rates, height=0.6, color=[VERMILLION if row.chosen else GREY for row in rows])
    ax.bar_label(
        bars, [f"{rate:.3g}" + (", chosen" if row.chosen else "") for rate, row in zip(rates, rows, strict=True)], padding=4
    )
    ax.set_yticks(range(len(rows)), [row.sampler for row in rows])
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, 1.4 * max(*rates, 1e-9)), xlabel="effective draws a second")
    ax.set_title("Race", loc="left", fontsize=10)
    return ax


def tuning(tuned: Any, axes: Any = None) -> Any:
    """The jump against each setting that `saltus.tune` searched. tuned: what it returned. axes: one for each curve."""
    report = getattr(tuned, "report", tuned)
    if not hasattr(report, "curves") or not hasattr(report, "plot"):
        raise SaltusError("This is no tuning.", expected="what saltus.tune returned", found=type(tuned).__name__)
    return report.plot(axes)


def comparison(found: Any, axes: Any = None) -> Any:
    """Effective draws a second and an evaluation of every sampler, with their spread. found: what `saltus.compare` returned.

    axes: (targets, 2) of matplotlib axes; None for a new figure.
    """
    if not hasattr(found, "rows") or not hasattr(found, "targets"):
        raise SaltusError("This is no comparison.", expected="what saltus.compare returned", found=type(found).__name__)
    return found.plot(axes)


def ladder(run: Any, ax: Any = None) -> Any:
    """The share of swaps that were accepted between each two rungs of a tempered run, over their β; even bars are a good ladder.

    run: of `saltus.Tempered`, by name "tempered", or one that `sampler="auto"` tempered. ax: as for `energy`.
    """
    check_run(run)
    beta, rejected, trips = _rungs(run)
    ax = _axes(ax)
    ax.bar(range(len(rejected)), 1 - rejected, color=BLUE)
    some = np.unique(np.linspace(0, len(rejected) - 1, min(len(rejected), 12)).astype(int))
    ax.set_xticks(some, [f"{beta[i]:.2g} to {beta[i + 1]:.2g}" for i in some], rotation=30, ha="right")
    ax.set(ylim=(0, 1), xlabel="β of the two rungs", ylabel="share of swaps accepted")
    ax.set_title(f"Ladder: {len(beta)} rungs, {trips} round trips", loc="left", fontsize=10)
    return ax


def _rungs(run: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """(β, share of swaps refused between neighbours, round trips) of a run."""
    kernel = run.children.get("kernel")
    beta = np.ravel(kernel["ladder"].values) if kernel is not None and "ladder" in kernel.data_vars else np.zeros(0)
    rejected = np.ravel(run.attrs.get("swap_rejection", []))
    if len(beta) < 2 or len(rejected) != len(beta) - 1:
        expected, found = "a run of saltus.Tempered, which counts its swaps", f"a run of {run.attrs.get('sampler', 'no sampler')}"
        raise SaltusError("This run has no ladder.", expected=expected, found=found)
    return beta, rejected.astype(np.float64), int(run.attrs["round_trips"])


def _picture_shape(shape: Any) -> tuple[int, int]:
    try:
        rows, columns = shape
    except (TypeError, ValueError) as cause:
        raise SaltusError("`shape` is not a picture's.", expected="(rows, columns)", found=repr(shape)) from cause
    return as_size(rows, "shape", SaltusError), as_size(columns, "shape", SaltusError)


def _axes(ax: Any, width: float = 6.4, height: float = 3.2) -> Any:
    """Axes as given, or new ones; SaltusError for anything else, and where matplotlib is missing."""
    if ax is not None:
        if not hasattr(ax, "plot") or not hasattr(ax, "set_xlabel"):
            raise SaltusError("`ax` is not matplotlib axes.", expected="what plt.subplots() returns", found=type(ax).__name__)
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as cause:
        hint = "pip install 'saltus[plots]'"
        raise SaltusError("Pictures need matplotlib.", expected="matplotlib", found="not installed", hint=hint) from cause
    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _stat(run: Any, name: str) -> np.ndarray:
    """(chains, draws) of a statistic of the steps."""
    check_run(run)
    group = run.children.get("sample_stats")
    if group is None or name not in group.data_vars or not group[name].size:
        raise SaltusError("This run has no draws.", expected="a run with draws", found=", ".join(run.children) or "an empty run")
    return group[name].transpose("chain", "draw").values


def _states(run: Any, variable: str | None = None) -> Any:
    """The variable with the draws; a product of spaces has one for each part."""
    check_run(run)
    group = run.children.get("posterior")
    found = [str(name) for name in group.data_vars if group[name].size] if group is not None else []
    name = variable if variable is not None else found[0] if len(found) == 1 else "s"
    if group is None or name not in found:
        raise SaltusError(
            f"This run has no draws of {name!r}.",
            expected=f"variable= one of {', '.join(found)}" if found else 'saltus.sample(..., keep="draws")',
            found=", ".join(found) or "no posterior",
        )
    return group[name].transpose("chain", "draw", ...)


def _short(name: str, most: int = 18) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _some(title: str, num: int, shown: int, noun: str) -> str:
    return title if num <= shown else f"{title} ({shown} of {num} {noun})"
