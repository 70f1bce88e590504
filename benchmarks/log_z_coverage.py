"""How often 90 % intervals of log Z cover the exact one: python -m benchmarks.log_z_coverage [ladders|ais] [runs a case] [sides].

Lattices (25 runs each unless told otherwise) against Kaufman's formula, and 20 random models of 16 sites against enumeration
(10 runs each). Lines go to benchmarks/results/log_z_coverage.txt; cases that are there are not run again. Every case has its own
ladder, found once, its number of rungs rounded up to a multiple of eight so that cases share programs; runs differ in their seed.
"""

from __future__ import annotations

import pathlib
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from scipy.special import logsumexp

import saltus
from saltus import targets

COUPLINGS = (0.2, 0.4, 0.4407, 0.6)
LEVEL, Z = 0.9, 1.6449
KEPT = pathlib.Path(__file__).parent / "results" / "log_z_coverage.txt"


def lattices(sides: tuple[int, ...]) -> Iterator[tuple[str, Any, float]]:
    for side in sides:
        for K in COUPLINGS:
            yield f"{side} x {side}, K = {K}", targets.ising((side, side), K), targets.kaufman_log_z((side, side), K)


def random_models(num: int) -> Iterator[tuple[str, Any, float]]:
    """Couplings and fields of N(0, 0.5²) on one random graph of 16 sites, three neighbours a site on average."""
    edges = np.argwhere(np.triu(np.random.default_rng(0).random((16, 16)) < 0.2, 1))
    for i in range(num):
        rng = np.random.default_rng(i)
        target = targets.ising(saltus.Graph.from_edges(edges, 16), rng.normal(size=len(edges)) * 0.5, rng.normal(size=16) * 0.5)
        f = np.asarray(jax.lax.map(target.value, target.space.enumerate(), batch_size=2**12), np.float64)
        yield f"random model {i}", target, float(logsumexp(f))


def by_ladders(target: Any, seed: int) -> tuple[float, float, bool]:
    if id(target) not in KERNELS:
        found = saltus.find_ladder(target, saltus.Gibbs("coloured"), 0)
        rungs = 8 * -(-len(found.ladder) // 8)
        between = np.interp(np.linspace(0, 1, rungs), np.linspace(0, 1, len(found.ladder)), found.ladder)
        KERNELS[id(target)] = saltus.Tempered(saltus.Gibbs("coloured"), between)
    found = saltus.log_z(target, seed=1 + seed, kernel=KERNELS[id(target)], num_steps=1000)
    return *found.interval(LEVEL), "Too few" not in repr(found)


def by_annealing(target: Any, seed: int) -> tuple[float, float, bool]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = saltus.training.ais(target, num_temperatures=500, num_chains=500, seed=1 + seed)
    return found.log_z - Z * found.standard_error, found.log_z + Z * found.standard_error, found.trusted


KERNELS: dict[int, Any] = {}
WAYS: dict[str, Callable[[Any, int], tuple[float, float, bool]]] = {"ladders": by_ladders, "ais": by_annealing}


def run_case(way: Callable[[Any, int], tuple[float, float, bool]], target: Any, exact: float, runs: int) -> str:
    began = time.process_time()
    found = [way(target, seed) for seed in range(runs)]
    covered = [low < exact < high for low, high, trusted in found if trusted]
    width = np.mean([high - low for low, high, trusted in found if trusted]) if covered else float("nan")
    told = f"{sum(covered)} of {len(covered)} cover, {runs - len(covered)} warned, mean width {width:.3g}"
    return f"exact {exact:.6f}, {told}, {time.process_time() - began:.0f} CPU seconds"


def main() -> None:
    way = sys.argv[1] if len(sys.argv) > 1 else "ladders"
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 25
    sides = tuple(map(int, sys.argv[3].split(","))) if len(sys.argv) > 3 else (12, 16, 24, 32)
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    cases = [*((case, max(runs * 2 // 5, 1)) for case in random_models(20)), *((case, runs) for case in lattices(sides))]
    for (name, target, exact), num in cases:
        if any(line.startswith(f"{way}, {name}:") for line in lines):
            continue
        lines.append(f"{way}, {name}: {run_case(WAYS[way], target, exact, num)}")
        print(lines[-1], flush=True)
        with KEPT.open("a") as file:
            file.write(lines[-1] + "\n")
    counted = [tuple(map(int, re.search(r"(\d+) of (\d+) cover", line).groups())) for line in lines if line.startswith(way)]
    covered, everything = map(sum, zip(*counted, strict=True))
    share = covered / everything
    worst = min(c / n for c, n in counted if n)
    spread = np.sqrt(share * (1 - share) / everything)
    print(
        f"{way}, all: {share:.1%} ± {spread:.1%} of {everything} intervals cover (nominal {LEVEL:.0%}), the worst case {worst:.0%}"
    )


if __name__ == "__main__":
    main()
