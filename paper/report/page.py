"""The page of results: what every claim says, what was measured, and the verdict."""

from __future__ import annotations

from pathlib import Path

from ..experiments import EXPERIMENTS, GROUPS
from ..files import write_whole
from ..settings import SCALES, Scale
from .claims import Judged, judge
from .markup import Page
from .tables import METRICS
from .verdict import ALIKE, AXES, DECIDED, FAILS, HOLDS, UNDECIDED, Results

Found = dict[str, Results]  # by experiment
_RULES = (
    "{number} comparisons: two samplers of which the paper says which is better, and a measure of error. They are judged at the "
    "largest budget that both have spent. A claim **holds** where the errors differ by {decided:g} standard errors or more in the "
    "direction of the paper, **does not hold** where they do in the other, and else is not decided. Samplers said to be as good "
    "as each other are so where the ratio of their errors, with {decided:g} standard errors to either side, is within "
    "{alike:.0f} % of 1. Standard errors are those over chains or over seeds, whichever is larger. No sampler was tuned to make a "
    "claim fit. The paper's rankings are by wall-clock on a GPU, where every step costs about the same; that is the ranking by "
    "iterations here. Seconds are those of this machine, of all seeds at the pace of the one that was least disturbed."
)
_MARKS = {HOLDS: "good", FAILS: "bad", UNDECIDED: "open"}


def write_page(path: Path, scale: str, made_with: str, found: Found) -> Path:
    """results.md and results.html in the folder `path`, beside the figures; the path of the latter."""
    page = build(scale, made_with, found)
    write_whole(path / "results.md", page.markdown())
    write_whole(path / "results.html", page.html())
    return path / "results.html"


def build(scale: str, made_with: str, found: Found) -> Page:
    page = Page("The paper's experiments, re-run by saltus", _MARKS)
    page.say(
        "Rhodes and Gutmann, **Enhanced gradient-based MCMC in discrete spaces** (2022): what the paper says, held against what "
        f"was measured. Made by {' and '.join(_commands(scale, found))} with {made_with}."
    )
    sampling = {name: found[name] for name in GROUPS["sampling"] if name in found}
    if sampling:
        judged = [each for name, results in sampling.items() for each in judge(results, EXPERIMENTS[name].rankings)]
        _summary(page, scale, {key: cells for each in sampling.values() for key, cells in each.items()}, judged)
    rows = [row for name, results in found.items() for row in EXPERIMENTS[name].in_short(results)]
    if rows:
        page.heading("Training, in short")
        page.table(["", HOLDS, FAILS, UNDECIDED], rows)
    for name, results in found.items():
        EXPERIMENTS[name].section(page, results, scale)
    return page


def _commands(scale: str, found: Found) -> list[str]:
    """Those that made these results."""
    commands = []
    for group in ("sampling", "training"):
        there = [name for name in GROUPS[group] if name in found]
        seeds = {len(measured) for name in there for measured in found[name].values() if measured[0]["sampler"]}
        rest = f"--scale {scale}" + (f" --seeds {max(seeds)}" if seeds else "")
        rest += _part({name: found[name] for name in there}, SCALES[scale])
        commands += [f"`python -m paper {name} {rest}`" for name in ([group] if len(there) == len(GROUPS[group]) else there)]
    return commands


def _part(found: Found, scale: Scale) -> str:
    """What of the printed tables was asked for, where that is not all that the scale has."""
    tables = [EXPERIMENTS[name] for name in found if EXPERIMENTS[name].printed]
    measured = {key for each in tables for key in found[each.name] if key[0] not in each.first}
    samplers, columns = {sampler for _, sampler in measured}, sorted({int(problem[1:]) for problem, _ in measured})
    told = ""
    if any(not samplers.issuperset(each.printed) for each in tables):
        told += f" --samplers {','.join(sorted(samplers))}"
    if columns and columns != sorted({column for each in tables for column in each.columns_of(scale)}):
        told += f" --k {','.join(map(str, columns))}"
    return told


def _summary(page: Page, scale: str, cells: Results, judged: list[Judged]) -> None:
    settings = SCALES[scale]
    seeds = sorted({len(measured) for measured in cells.values() if measured[0]["sampler"]})
    counted = " to ".join(map(str, sorted({seeds[0], seeds[-1]}))) if seeds else "no"
    lengths = "; ".join(
        f"{name} {x.chains} chains x {x.kept} iterations after {x.burn_in} of burn-in"
        for name, x in {
            "ordinal": settings.ordinal,
            "regression": settings.regression,
            "third-order": settings.third_order,
        }.items()
    )
    page.say(f"Sampling, scale {scale}: {lengths}; {counted} seed(s).")
    if judged:
        page.heading("Sampling, in short")
        words = (HOLDS, FAILS, UNDECIDED)
        rows = [[axis, *(str(sum(j.verdicts[axis] == word for j in judged)) for word in words)] for axis in AXES]
        page.table(["at equal numbers of", *words], rows)
        for word in (FAILS, UNDECIDED):
            claims = [f"{j.claim} ({j.claim.problem}, {METRICS[j.metric]})" for j in judged if j.verdicts["iterations"] == word]
            page.say(f"**By iterations, {word}:** {'; '.join(claims) or 'none'}.")
        page.say(_RULES.format(number=len(judged), decided=DECIDED, alike=100 * ALIKE))
