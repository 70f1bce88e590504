"""python -m benchmarks.gallery_of_models [names...]: a line for each model, kept; those that have one are not run again."""

from __future__ import annotations

import pathlib
import sys
import time
import warnings
from collections.abc import Iterator

import numpy as np

import saltus

from .compare import Case, gaps

OUTPUT = pathlib.Path(__file__).parents[2] / "tests/full_output/models.txt"
HEAD = (
    "standard errors are at least 0.002 for a discrete site that leaves its usual value in fewer than 100 draws\n"
    "model | source | outcome | numbers compared | largest gap and limit, standard errors | smallest ESS a draw | "
    "seconds, those of the reference\n"
)


def cases() -> Iterator[Case]:
    from . import numpyro_models

    yield from numpyro_models.CASES
    try:
        from . import pymc_models
    except ImportError as cause:
        print(f"PyMC's models are left out: {cause}")
        return
    yield from pymc_models.CASES


def sampled(case: Case):
    asked = {"num_draws": 4000, "num_warmup": 1000, "progress": False, **case.settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.tool == "numpyro":
            return saltus.bridges.numpyro.sample(case.model, *case.args, **asked)
        return saltus.bridges.pymc.sample(case.model(), **asked)


def line(case: Case) -> str:
    began = time.perf_counter()
    try:
        run = sampled(case)
    except saltus.SaltusError as cause:
        told = " ".join(str(cause).split())
        as_expected = bool(case.refused) and case.refused in told
        return f"{case.name} | {case.source} | {'refused, as it should be' if as_expected else 'REFUSED'}: {told}"
    seconds = time.perf_counter() - began
    if case.refused:
        return f"{case.name} | {case.source} | SAMPLED, though an error was expected"
    draws = {name: np.asarray(x) for name, x in run.posterior.data_vars.items()}
    began = time.perf_counter()
    assert case.reference is not None
    reference = case.reference()
    referred = time.perf_counter() - began
    gap, limit, number, ess = gaps(case.seen(draws) if case.seen else draws, reference)
    outcome = "agrees" if gap <= limit else "DIFFERS"
    return (
        f"{case.name} | {case.source} | {outcome} | {number} | {gap:.2f} of {limit:.2f} | {ess:.3f} | {seconds:.1f}, {referred:.1f}"
    )


def kept_line(case: Case) -> str:
    """Its line in the table, made now where there is none."""
    if not OUTPUT.exists():
        OUTPUT.parent.mkdir(exist_ok=True)
        OUTPUT.write_text("python -m benchmarks.gallery_of_models\n" + HEAD)
    kept = {row.split(" | ")[0]: row for row in OUTPUT.read_text().splitlines()}
    if case.name not in kept:
        kept[case.name] = line(case)
        with OUTPUT.open("a") as file:
            file.write(kept[case.name] + "\n")
    return kept[case.name]


def main(wanted: list[str]) -> None:
    for case in cases():
        if not wanted or case.name in wanted:
            print(kept_line(case), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
