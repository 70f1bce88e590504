"""Seconds per step of several loops, measured in turn, so that a busy machine slows all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from ..internals import steps_of_a_chunk

REPEATS, SECONDS = 7, 0.2


def steps_within(loop: Callable[[int], None], seconds: float) -> int:
    """As many steps as take about so long, once the loop is compiled; of slow loops as many as a run makes at a time."""
    loop(1)
    steps = 1
    while True:
        began = time.perf_counter()
        loop(steps)
        spent = time.perf_counter() - began
        if spent >= seconds / 4 or steps >= 10**7:
            return max(int(steps * seconds / max(spent, 1e-9)), steps_of_a_chunk(spent / steps), 1)
        steps *= 4


def seconds_per_step(
    loops: Mapping[str, Callable[[int], None]], repeats: int = REPEATS, seconds: float = SECONDS
) -> dict[str, np.ndarray]:
    """(repeats,) for each loop; every repeat times all loops, one after the other."""
    steps = {name: steps_within(loop, seconds) for name, loop in loops.items()}
    measured: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(repeats):
        for name, loop in loops.items():
            began = time.perf_counter()
            loop(steps[name])
            measured[name].append((time.perf_counter() - began) / steps[name])
    return {name: np.array(each) for name, each in measured.items()}


def ratio(above: np.ndarray, below: np.ndarray) -> tuple[float, ...]:
    """Repeat by repeat."""
    return tuple(float(x) for x in above / below)
