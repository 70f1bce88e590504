"""A table as the paper prints it, beside what was measured: its numbers, and the order of its samplers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from ..samplers import look
from .verdict import DECIDED, FAILS, HOLDS, UNDECIDED, Estimate, Measured, Results, estimate

Verdict = Callable[[str, int, Estimate], str]  # sampler, column, what was found -> a word, or "" where there is none
MEANINGFUL = 0.003  # smaller differences of errors are not
ORDER = (
    "Neighbours in the paper's order whose printed errors are {apart:.0f} % or more apart. An order holds, or does not, where ours "
    "differ by more than 0.003 and two standard errors over seeds."
)


def found_error(measured: list[Measured]) -> Estimate:
    """Mean over seeds, with the standard error of their spread; 0 where there is one seed."""
    return estimate([cell["error"] for cell in measured], [0.0] * len(measured))


def orders(paper: dict[str, tuple[float, ...]], at: int, apart: float) -> Iterator[tuple[str, str]]:
    """(better, worse): neighbours in the paper's order of this column that are further apart than `apart`, relative."""
    ranked = sorted(paper, key=lambda sampler: paper[sampler][at])
    for better, worse in pairwise(ranked):
        a, b = paper[better][at], paper[worse][at]
        if b - a > max(MEANINGFUL, apart * a):
            yield better, worse


def order_verdict(better: Estimate, worse: Estimate) -> str:
    """By more than 0.003 and two standard errors of the difference, or not decided."""
    gap = worse.mean - better.mean
    if abs(gap) <= max(MEANINGFUL, DECIDED * (better.error**2 + worse.error**2) ** 0.5):
        return UNDECIDED
    return HOLDS if gap > 0 else FAILS


def order_rows(results: Results, paper: dict, columns: tuple[int, ...], apart: float) -> list[list[str]]:
    rows = []
    for column in columns:
        for pair in orders(paper, columns.index(column), apart):
            measured = [results.get((f"K{column}", sampler)) for sampler in pair]
            if all(measured):
                found = [found_error(cells) for cells in measured if cells]
                told = f"{look(pair[0]).label} better than {look(pair[1]).label}"
                rows.append([str(column), told, f"{order_verdict(*found)} ({found[0]} against {found[1]})"])
    return rows


def table_rows(results: Results, paper: dict, columns: tuple[int, ...], verdict: Verdict) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table beside the paper's."""
    present = [c for c in columns if any((f"K{c}", sampler) in results for sampler in paper)]
    rows = []
    for sampler, printed in paper.items():
        told = [_beside(results, sampler, c, printed[columns.index(c)], verdict) for c in present]
        rows.append([look(sampler).label, *told])
    return ["sampler", *(f"column K = {c}" for c in present)], rows


def _beside(results: Results, sampler: str, column: int, printed: float, verdict: Verdict) -> str:
    cells = results.get((f"K{column}", sampler))
    if not cells:
        return "not measured"
    found = found_error(cells)
    word = verdict(sampler, column, found)
    return (f"{word}: " if word else "") + f"{found} (paper {printed:.3f})"


def counts(told: list[str]) -> list[str]:
    """How many of these begin with each verdict."""
    return [str(sum(text.startswith(word) for text in told)) for word in (HOLDS, FAILS, UNDECIDED)]
