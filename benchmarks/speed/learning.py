"""What retuning costs a training: the lattice of Table 1, K = 5."""

from __future__ import annotations

from dataclasses import replace

from paper.learning.ising_pcd import learn
from paper.settings import SCALES

from .lines import Line

_UPDATES, _REPEATS, _NUM_STEPS = 1000, 5, 5


def retuning() -> list[Line]:
    """Seconds of updates with step size (and scale) retuned, over those at the paper's settings; compiled before."""
    settings = replace(SCALES["quick"].training, updates=_UPDATES)
    seconds = lambda sampler: learn(sampler, _NUM_STEPS, 0, settings).seconds  # noqa: E731
    lines = []
    for sampler in ("pavg", "avg", "ncg"):
        values = tuple(seconds(f"{sampler} retuned") / seconds(sampler) for _ in range(_REPEATS))
        lines.append(Line(f"training, retuned / fixed: {sampler.upper()}, K = {_NUM_STEPS}", values, 1.1))
    return lines
