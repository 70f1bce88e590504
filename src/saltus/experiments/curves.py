"""One sampler on one problem: errors against exact truth as the chains go on, by iterations, evaluations and seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import saltus
from saltus.diagnostics import DistanceSeries, Tally, mean_and_error

from .chains import BLOCK, blocks
from .settings import Length

_POINTS = 25  # of a curve
_FIRST = 10  # kept draws at its first point
Metrics = Callable[[Tally], dict[str, Any]]


def checkpoints(kept: int) -> np.ndarray:
    """Numbers of kept draws, evenly spaced on a logarithmic axis."""
    return np.unique(np.geomspace(min(_FIRST, kept), kept, _POINTS).round().astype(int))


def measure(
    kernel: saltus.Kernel, target: saltus.Target, codes: np.ndarray, seed: int, length: Length, metrics: Metrics, watched: saltus.Space
) -> dict[str, Any]:
    """Burn in, then tally every state; the errors of each chain at every checkpoint, mean and standard error over chains.

    watched: the space of the first sites, those that enter the distance |s - s0|_1 behind the ESS; s0 is where chain 0 began.
    """
    tally, due = Tally.empty(target.space, length.chains), checkpoints(length.kept)
    series = DistanceSeries(watched, codes[0, : watched.num_sites])
    seconds, kept, curve, moved = 0.0, 0, [], []
    for number, block in enumerate(blocks(kernel, target, codes, seed, length.burn_in + length.kept)):
        if number * BLOCK < length.burn_in:
            continue
        size = block.codes.shape[1]
        ends = [*(due[(kept < due) & (due <= kept + size)] - kept), size]
        for start, end in zip([0, *ends], ends, strict=False):
            tally = tally.add(block.codes[:, start:end]) if end > start else tally
            if kept + end in due and (not curve or curve[-1][0] < kept + end):
                curve.append((kept + end, seconds + block.seconds * end / size, metrics(tally)))
        series = series.add(block.codes[..., : watched.num_sites])
        moved.append((block.acceptance, block.jump))
        seconds, kept = seconds + block.seconds, kept + size
    acceptance, jump = np.mean(moved, axis=(0, 2))
    return {
        **_as_curves(curve),
        "evaluations": [int(n) * kernel.evaluations(target) for n, _, _ in curve],
        "ess": series.ess().tolist(),
        "acceptance": float(acceptance),
        "jump": float(jump),
        "kernel": " ".join(repr(kernel).split()),
    }


def _as_curves(curve: list[tuple[int, float, dict[str, Any]]]) -> dict[str, Any]:
    found: dict[str, Any] = {"iterations": [int(n) for n, _, _ in curve], "seconds": [spent for _, spent, _ in curve], "metrics": {}}
    for name in curve[0][2]:
        pairs = [mean_and_error(errors[name]) for _, _, errors in curve]
        found["metrics"][name] = {"mean": [float(m) for m, _ in pairs], "error": [float(e) for _, e in pairs]}
    return found
