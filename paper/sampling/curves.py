"""One sampler on one problem: errors against exact truth as the chains go on, by iterations, evaluations and seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import saltus
from saltus.diagnostics import DistanceSeries, Tally, mean_and_error

from ..settings import Length
from .chains import BLOCK, blocks

_POINTS = 25  # of a curve
_FIRST = 10  # kept draws at its first point
Metrics = Callable[[Tally], dict[str, Any]]


def checkpoints(kept: int) -> np.ndarray:
    """Numbers of kept draws, evenly spaced on a logarithmic axis."""
    return np.unique(np.geomspace(min(_FIRST, kept), kept, _POINTS).round().astype(int))


def measure(
    kernel: saltus.Kernel,
    target: saltus.Target,
    codes: np.ndarray,
    seed: int,
    length: Length,
    metrics: Metrics,
    watched: saltus.Space,
) -> dict[str, Any]:
    """Burn in, then tally every state; the errors of each chain at every checkpoint, mean and standard error over chains.

    watched: the space of the first sites, those that enter the distance |s - s0|_1 behind the ESS; s0 is where chain 0 began.
    Seconds are the median of all blocks', so that what else the machine did for a moment does not count.
    """
    tally, due = Tally.empty(target.space, length.chains), checkpoints(length.kept)
    series = DistanceSeries(watched, codes[0, : watched.num_sites])
    kept, curve, seen = 0, list[dict[str, Any]](), []
    for number, block in enumerate(blocks(kernel, target, codes, seed, length.burn_in + length.kept)):
        if number * BLOCK < length.burn_in:
            continue
        size = block.codes.shape[1]
        stops = due[(kept < due) & (due <= kept + size)] - kept
        for part in np.split(block.codes, stops, axis=1):
            tally = tally.add(part) if part.shape[1] else tally
            if tally.num_draws in due and len(curve) < np.searchsorted(due, tally.num_draws, "right"):
                curve.append(metrics(tally))
        series = series.add(block.codes[..., : watched.num_sites])
        seen.append((block.seconds_per_step, block.acceptance.mean(), block.jump.mean()))
        kept += size
    (_, acceptance, jump), pace = np.mean(seen, axis=0), float(np.median([each[0] for each in seen]))
    return {
        "iterations": due.tolist(),
        "evaluations": (due * kernel.evaluations(target)).tolist(),
        "seconds": (due * pace).tolist(),
        "metrics": _as_curves(curve),
        "ess": series.ess().tolist(),
        "acceptance": float(acceptance),
        "jump": float(jump),
        "kernel": " ".join(repr(kernel).split()),
    }


def _as_curves(curve: list[dict[str, Any]]) -> dict[str, Any]:
    found = {}
    for name in curve[0]:
        pairs = [mean_and_error(errors[name]) for errors in curve]
        found[name] = {"mean": [float(m) for m, _ in pairs], "error": [float(e) for _, e in pairs]}
    return found
