"""The training experiments' part of the page."""

from __future__ import annotations

from typing import Any

from . import buffers, couplings, stepsize_sensitivity, table1, table2
from .cells import Folder
from .ising_pcd import COLUMNS
from .markup import Page
from .settings import Scale
from .training_claims import (
    data_rows,
    goal_rows,
    order_rows,
    retuned_rows,
    table1_verdict,
    table2_verdict,
    table_rows,
)
from .verdict import ALIKE, FAILS, HOLDS, UNDECIDED

Found = dict[str, dict[tuple[str, str], list[dict[str, Any]]]]
_APART_1, _APART_2 = 0.03, ALIKE  # how far apart neighbours of a printed table must be for their order to be a claim
_ORDER = (
    "Neighbours in the paper's order whose printed errors are {apart:.0f} % or more apart. An order holds, or does not, where ours "
    "differ by more than 0.003 and two standard errors over seeds."
)


def in_short(page: Page, found: Found) -> None:
    """How many cells of the tables and how many orders hold."""
    rows = []
    if "table1" in found:
        _, table = table_rows(found["table1"], table1.PAPER, COLUMNS, table1_verdict)
        rows.append(["Table 1, numbers", *_counts([cell for row in table for cell in row])])
        orders = order_rows(found["table1"], table1.PAPER, COLUMNS, _APART_1)
        rows.append(["Table 1, order of samplers", *_counts([row[2] for row in orders])])
    if "table2" in found:
        orders = order_rows(found["table2"], table2.PAPER, table2.COLUMNS, _APART_2)
        rows.append(["Table 2, order of samplers", *_counts([row[2] for row in orders])])
    if rows:
        page.heading("Training, in short")
        page.table(["", HOLDS, FAILS, UNDECIDED], rows)


def options(found: Found, scale: Scale) -> str:
    """What of the two tables was asked for, where that is not all that the scale has."""
    asked = {"table1": (table1, scale.training.columns), "table2": (table2, scale.training.network.columns)}
    tables = {name: table2.learned(cells) for name, cells in found.items() if name in asked}
    samplers = {sampler for cells in tables.values() for _, sampler in cells}
    columns = sorted({int(problem[1:]) for cells in tables.values() for problem, _ in cells})
    told = ""
    if any(not samplers.issuperset(asked[name][0].PAPER) for name in tables):
        told += f" --samplers {','.join(sorted(samplers))}"
    if columns and columns != sorted({column for name in tables for column in asked[name][1]}):
        told += f" --k {','.join(map(str, columns))}"
    return told


def _counts(told: list[str]) -> list[str]:
    return [str(sum(text.startswith(word) for text in told)) for word in (HOLDS, FAILS, UNDECIDED)]


def sections(page: Page, folder: Folder, found: Found) -> None:
    write = {"table1": _table1, "stepsize-sensitivity": _sensitivity, "lattice": _lattice, "table2": _table2, "buffers": _buffers}
    for name, section in write.items():
        if name in found:
            section(page, found[name], folder)


def _table1(page: Page, results: Any, folder: Folder) -> None:
    page.heading(table1.TITLE)
    page.figure("table1", table1.ABOUT)
    page.say(
        "A number holds within 5 % or 0.003 of the paper's (NCG, K = 1: 20 %), and in the column K = 5 within 0.005 (Gibbs 0.05, "
        "AVG 0.1) of those of an independent implementation: NCG 0.115, GWG 0.164, Gibbs 0.79, AVG 5.48, others as printed. "
        "The column is headed by K of AVG and PAVG; those of the others are the paper's."
    )
    page.table(*table_rows(results, table1.PAPER, COLUMNS, table1_verdict))
    page.heading("The order of samplers", 3)
    page.say(_ORDER.format(apart=100 * _APART_1))
    page.table(["column", "claim", "verdict"], order_rows(results, table1.PAPER, COLUMNS, _APART_1))
    page.heading("Retuned while the model trains", 3)
    page.table(["goal", "verdict"], goal_rows(results))
    page.say(
        "The last but one column compares the seconds of cells that may have run beside other work; it shows what retuning costs "
        "only where the machine was quiet."
    )
    head = ["sampler", "K", "error", "error at the paper's settings", "time, more than those", "at the end"]
    page.table(head, retuned_rows(results))
    page.heading("The data", 3)
    page.say("Mean product of neighbours over the samples that training was given, beside Kaufman's exact value.")
    page.table(["seed", "measured", "exact", "verdict"], data_rows(results))


def _sensitivity(page: Page, results: Any, folder: Folder) -> None:
    page.heading(stepsize_sensitivity.TITLE)
    page.figure("stepsize-sensitivity", stepsize_sensitivity.ABOUT)
    page.table(*stepsize_sensitivity.rows(results))


def _lattice(page: Page, results: Any, folder: Folder) -> None:
    page.heading(couplings.TITLE)
    page.figure("lattice", couplings.ABOUT)


def _table2(page: Page, results: Any, folder: Folder) -> None:
    page.heading(table2.TITLE)
    page.figure("table2", table2.ABOUT)
    network = folder.settings.training.network
    models = [cell for (problem, _), cells in results.items() if problem in table2.FIRST for cell in cells]
    head = ["seed", "data", "acceptance of NCG, about 0.8", "||J*|| / 16, about 0.2", "seconds"]
    rows = [[cell["data"], f"{cell['acceptance']:.3f}", f"{cell['norm']:.3f}", f"{cell['train_seconds']:.0f}"] for cell in models]
    page.say(
        f"The model: {network.width} channels at first, {network.first_updates} updates of {network.num_steps} steps of "
        f"{network.sampler.upper()}; J again: {network.updates} updates. A first stage that has diverged is not gone on from."
    )
    page.table(head, [[str(cell["seed"]), *row] for cell, row in zip(models, rows, strict=True)])
    same = network.width == 16
    page.table(*table_rows(results, table2.PAPER, table2.COLUMNS, table2_verdict if same else lambda *_: ""))
    page.say(_ORDER.format(apart=100 * _APART_2))
    page.table(["column", "claim", "verdict"], order_rows(results, table2.PAPER, table2.COLUMNS, _APART_2))


def _buffers(page: Page, results: Any, folder: Folder) -> None:
    page.heading(buffers.TITLE)
    page.figure("buffers", buffers.ABOUT)
