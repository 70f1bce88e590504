"""How often 90 % intervals of log Z cover the exact one: python -m benchmarks.log_z_coverage [ladders|ais] [runs a case].

Lattices against Kaufman's formula, and random models of 16 sites against enumeration. One line a case, then all together.
"""

from __future__ import annotations

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


def lattices(sides: tuple[int, ...]) -> Iterator[tuple[str, Any, float]]:
    for side in sides:
        for K in COUPLINGS:
            yield f"{side} x {side}, K = {K}", targets.ising((side, side), K), targets.kaufman_log_z((side, side), K)


def random_models(num: int) -> Iterator[tuple[str, Any, float]]:
    """Couplings and fields of N(0, 0.5²) on a random graph of 16 sites, three neighbours a site on average."""
    for i in range(num):
        rng = np.random.default_rng(i)
        J = np.triu(rng.normal(size=(16, 16)) * 0.5 * (rng.random((16, 16)) < 0.2), 1)
        target = targets.ising(J, field=rng.normal(size=16) * 0.5)
        f = np.asarray(jax.lax.map(target.value, target.space.enumerate(), batch_size=2**12), np.float64)
        yield f"random model {i}", target, float(logsumexp(f))


def by_ladders(target: Any, seed: int) -> tuple[float, float, bool]:
    kernel = KERNELS.setdefault(id(target), None) or saltus.find_ladder(target, saltus.Gibbs("coloured"), 0).kernel
    KERNELS[id(target)] = kernel
    found = saltus.log_z(target, seed=1 + seed, kernel=kernel, num_steps=500)
    return *found.interval(LEVEL), "Too few" not in repr(found)


def by_annealing(target: Any, seed: int) -> tuple[float, float, bool]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = saltus.training.ais(target, num_temperatures=500, num_chains=500, seed=1 + seed)
    return found.log_z - Z * found.standard_error, found.log_z + Z * found.standard_error, found.trusted


KERNELS: dict[int, Any] = {}
WAYS: dict[str, Callable[[Any, int], tuple[float, float, bool]]] = {"ladders": by_ladders, "ais": by_annealing}


def main() -> None:
    way = WAYS[sys.argv[1] if len(sys.argv) > 1 else "ladders"]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    sides = tuple(map(int, sys.argv[3].split(","))) if len(sys.argv) > 3 else (12, 16, 24, 32)
    models = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    print(
        f"saltus {saltus.__version__}, jax {jax.__version__}: {way.__name__}, {runs} runs a case, nominal {LEVEL:.0%}", flush=True
    )
    everything, seconds = [], time.process_time()
    for name, target, exact in (*lattices(sides), *random_models(models)):
        found = [way(target, seed) for seed in range(runs)]
        covered = [low < exact < high for low, high, trusted in found if trusted]
        width = np.mean([high - low for low, high, trusted in found if trusted]) if covered else float("nan")
        everything += covered
        told = f"{sum(covered)} of {len(covered)} cover, {runs - len(covered)} warned, mean width {width:.3g}"
        print(f"{name}: exact {exact:.6f}, {told}", flush=True)
    share = np.mean(everything)
    spread = np.sqrt(share * (1 - share) / len(everything))
    print(f"all: {share:.1%} ± {spread:.1%} of {len(everything)} intervals cover; {time.process_time() - seconds:.0f} CPU seconds")


if __name__ == "__main__":
    main()
