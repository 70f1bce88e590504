"""All cores: the same run on all of them, and bound to one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from .clock import ratio
from .lines import Line

_ROOT = Path(__file__).parents[2]
_REPEATS = 5
# workload, chains, goal
_ASKED = (
    ("W1", 100, 1.6),
    ("W2", 100, 1.4),
    ("W3", 100, 1.7),
    ("W4", 100, 1.7),
    ("W5", 50, 1.7),
    ("W6", 100, 1.7),
    ("W1", 4, 0.97),
)

_RUN = """
import json, os, sys
os.sched_setaffinity(0, json.loads(sys.argv[1]))
import warnings; warnings.simplefilter("ignore")
import saltus
from benchmarks.speed.workloads import WORKLOADS, samplers
name, chains, repeats = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
target = WORKLOADS[name]()
kernel = samplers(name, target)["NCG"]
asked = dict(num_chains=chains, num_warmup=20, thin=1, keep="mean", progress=False)
first = saltus.sample(target, kernel, num_draws=50, **asked)
draws = int(min(max(0.5 * 50 / first.attrs["sampling_time"], 50), 20000))
for _ in range(repeats):
    input()
    run = saltus.sample(target, kernel, num_draws=draws, **asked)
    print(json.dumps(draws * chains / run.attrs["sampling_time"]), flush=True)
"""


def cores() -> list[Line]:
    """Draws a second on all cores over those on one, in turn, both processes alive: no environment variable is set."""
    return [_line(*asked) for asked in _ASKED]


def _line(name: str, chains: int, goal: float) -> Line:
    every = sorted(os.sched_getaffinity(0))
    sides = [_started(own, name, chains) for own in (every, every[:1])]
    rates: list[list[float]] = [[], []]
    for _ in range(_REPEATS):
        for side, found in zip(sides, rates, strict=True):
            found.append(_next(side))
    for side in sides:
        side.wait()
    values = ratio(np.array(rates[0]), np.array(rates[1]))
    return Line(f"{len(every)} cores / one: {name}, {chains} chains", values, goal, False)


def _started(own: list[int], name: str, chains: int) -> subprocess.Popen:
    words = [sys.executable, "-c", _RUN, json.dumps(own), name, str(chains), str(_REPEATS)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT)


def _next(side: subprocess.Popen) -> float:
    assert side.stdin
    assert side.stdout
    side.stdin.write("\n")
    side.stdin.flush()
    return float(json.loads(side.stdout.readline()))
