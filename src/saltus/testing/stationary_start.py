"""Exact draws stay exact: after 1 and 3 steps, and on average over many, since small errors add up."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..target import Target
from .enumeration import widen
from .exact import Proof
from .power import chi_square, hidden, of_averages
from .protocol import takes_key
from .report import OBSERVED, Finding, p_value
from .running import Walk, walk

_FIRST = 2**13
MOST_CELLS = 1024  # beyond, only the last states of long walks are counted


def check_stationary(p: np.ndarray, short: Walk, long: Walk, stops: Sequence[int], meaning: str) -> tuple[list[Finding], float]:
    """(findings after 1 and 3 steps and over a long walk, the distance in total variation that the last may miss)."""
    findings = [_counted(p, short.states[i], f"{steps} step{'s'[: steps - 1]} on", meaning) for i, steps in enumerate((1, 3))]
    if len(p) > MOST_CELLS or len(stops) == 1:
        text = f"{stops[-1]} steps on"
        return [*findings, _counted(p, long.states[-1], text, meaning)], hidden(len(p), long.chains)
    value, unseen = of_averages(long.states.T, p)
    what = f"{long.chains} exact draws, on average over {stops[0]} to {stops[-1]} steps"
    observed = np.bincount(long.states.ravel(), minlength=len(p))
    found = p_value("stationary start", what, value, meaning, how=OBSERVED)
    return [*findings, _sized(found, observed, p, long.chains)], unseen


def _counted(p: np.ndarray, ends: np.ndarray, when: str, meaning: str) -> Finding:
    observed = np.bincount(ends, minlength=len(p))
    found = p_value(
        "stationary start", f"{len(ends)} exact draws, {when}", chi_square(observed, len(ends) * p), meaning, how=OBSERVED
    )
    return _sized(found, observed, p, len(ends))


def _sized(finding: Finding, observed: np.ndarray, p: np.ndarray, draws: int) -> Finding:
    """A failure, with how far off it is."""
    if not finding.failed:
        return finding
    noise = 0.5 * np.sum(np.sqrt(2 * p * (1 - p) / (np.pi * draws)))
    distance = max(0.5 * np.abs(observed / observed.sum() - p).sum() - noise, 0)
    return dataclasses.replace(finding, text=f"{finding.text}, about {100 * distance:.2g} % off in total variation")


def with_rounding(
    findings: list[Finding],
    kernel: Any,
    target: Target,
    states: np.ndarray,
    p: np.ndarray,
    walks: Sequence[Walk],
    key: jax.Array,
    stops: Any,
) -> list[Finding]:
    """Failed tests are repeated in float64, with as many chains: where all is well there, it is rounding that fails."""
    if not any(f.failed for f in findings) or jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        return findings
    again = jax.random.split(jax.random.fold_in(key, 7))
    with jax.enable_x64(True):
        wide = widen(kernel), widen(target)
        for most in (_FIRST, None):  # few chains refute most; only what passes needs them all
            starts = [states[w.start[:most]] for w in walks]
            short, long = (walk(*wide, *each) for each in zip(starts, again, ((1, 3), stops), strict=True))
            if min(short.states.min(), long.states.min()) < 0 or _fails(p, short, long, stops):
                return findings
    meaning = "a sum or difference that loses its digits in float32; in float64 the same steps are right"
    return [dataclasses.replace(f, status="FAILED (rounding)", meaning=meaning) if f.failed else f for f in findings]


def causes(kernel: Any, target: Target, proof: Proof, coherent: bool) -> str:
    """What may be wrong, of what is not excluded."""
    failed = {f.instrument for f in proof.findings if f.failed}
    likely = ["an error in the ratio, as invariance says"] if "invariance" in failed else []
    likely += [] if coherent else ["a stale or drifting cache, as coherence says"]
    if not proof.complete:
        likely += ["a reverse term that is missing or not whole", "a choice of moves, or a restart, that depends on the state"]
    if not likely:
        likely = ["the random shell: a key used twice, sites accepted one by one, or chains mixed"]
    elif not proof.complete:
        likely += ["a key used twice"]
    if target.space.num_values > 12:
        likely += [f"codes of {target.space.code_dtype} that wrap around in products or sums"]
    if takes_key(kernel):
        likely += ["what init draws with its key is not from its law given the codes"]
    return ", or ".join(likely)


def _fails(p: np.ndarray, short: Walk, long: Walk, stops: Sequence[int]) -> bool:
    return any(f.failed for f in check_stationary(p, short, long, stops, "")[0])
