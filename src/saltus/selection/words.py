"""A `Selection` as a page of text."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from .._words import WIDTH, aligned, counted, escaped, significant
from .by_kernel import MOST


def summary(found: Any, most: int) -> str:
    """The question, the columns by inclusion, the best models, what to doubt."""
    lines = [*_question(found), "", *_columns(found, most), "", *_models(found), "", *_doubts(found)]
    return escaped("\n".join(lines))


def _question(found: Any) -> list[str]:
    told, data = found.told, found._data
    lines = [
        f"Which of {counted(data.p, 'column')} explain {data.response_name}? {counted(data.n, 'row')}",
        f"  coefficients  {told['prior']}",
        f"  models        {told['model_prior']}",
        f"  method        {_method(found)}",
    ]
    for note in told["notes"]:
        lines += textwrap.wrap(note, WIDTH - 16, initial_indent="  note          ", subsequent_indent=" " * 16)
    return lines


def _method(found: Any) -> str:
    told = found.told
    if told["method"] == "enumerate":
        return f"all {2**found._data.p} models enumerated: exact"
    again = f", reweighted (worth {told['effective']:.0f} visits)" if told.get("reweighted") else ""
    by = f" of {told['kernel']}" if told["kernel"] else ""
    what = "draws" if by else "steps"
    return f"{told['num_chains']} chains x {told['steps']} {what}{by}, {significant(told['seconds'])} s, seed {told['seed']}{again}"


def _columns(found: Any, most: int) -> list[str]:
    table = found.to_frame()
    order = np.argsort(-table["inclusion"].to_numpy(), kind="stable")
    rows = []
    for name, row in table.iloc[order[:most]].iterrows():
        sign = {1.0: "+", -1.0: "-"}.get(row["sign"], "")
        rows.append(
            [
                _short(str(name)),
                f"{row['inclusion']:.3f}",
                _error(row["inclusion_error"], found),
                _number(row["mean"]),
                f"[{_number(row['lower'])}, {_number(row['upper'])}]",
                _number(row["mean_if_in"]),
                f"{sign} {row['sign_probability']:.3f}" if sign else "",
            ]
        )
    head = ["column", "inclusion", "error", "coefficient", "95 % interval", "if in", "sign"]
    more = len(table) - len(rows)
    rest = table["inclusion"].to_numpy()[order[most:]]
    tail = [f"  ... {counted(more, 'more column')}, the largest inclusion of which is {rest.max():.3f}"] if more > 0 else []
    return [*aligned(head, rows), *tail]


def _error(error: float, found: Any) -> str:
    return "exact" if found._answer.exact else f"{error:.4f}"


def _short(name: str, most: int = 30) -> str:
    return name if len(name) <= most else name[: most - 3] + "..."


def _number(x: float) -> str:
    return "" if np.isnan(x) else significant(float(x))


def _models(found: Any) -> list[str]:
    models = found.models.head(5)
    rows = []
    for _, row in models.iterrows():
        names = ", ".join(row["columns"]) or "(no column)"
        rows.append([f"{row['probability']:.3f}", str(row["size"]), f"{row['r2']:.3f}", _short(names, 70)])
    lines = ["Models by probability"]
    lines += [f"  {'probability':>11}  {'size':>4}  {'R²':>5}  columns"]
    lines += [f"  {a:>11}  {b:>4}  {c:>5}  {d}" for a, b, c, d in rows]
    sizes = found.size["posterior"].to_numpy()
    mean = float(sizes @ np.arange(len(sizes)))
    error = found.log_marginal_likelihood_error
    beside = "" if found._answer.exact else f" ± {error:.2g}"
    lines.append(
        f"  size {mean:.2f} on average; log marginal likelihood {found.log_marginal_likelihood:.3f}{beside} (against no column)"
    )
    return lines


def doubts(found: Any) -> list[str]:
    """Sentences; none where nothing is to be doubted."""
    if found._answer.exact:
        return []
    told, lines = found.told, []
    error, rhat = float(found.inclusion_error.max()), found.rhat[found.inclusion_error >= told["goal"] / 10]
    if error > told["goal"]:
        name = found.inclusion_error.idxmax()
        why = {"steps": "the steps were used up", "time": "the time limit was reached"}.get(told["ended"], "it was reweighted")
        lines.append(
            f"The error of {name} is {error:.4f}, above the goal of {told['goal']:g}: {why}. Allow more: max_steps=, time_limit=."
        )
    if rhat.max() >= 1.01:
        other = "" if found._data.p > MOST else ', or several temperatures, method="tempered"'
        lines.append(
            f"Chains disagree about {rhat.idxmax()}: R-hat {rhat.max():.3f}, above 1.01. Allow more steps, max_steps= or "
            f"time_limit={other}."
        )
    return lines


def _doubts(found: Any) -> list[str]:
    told = doubts(found)
    if not told:
        return [
            "Nothing to doubt." if found._answer.exact else "Nothing to doubt: every error is within its goal, and chains agree."
        ]
    return [line for text in told for line in textwrap.wrap(text, WIDTH, initial_indent="To doubt: ", subsequent_indent="  ")]
