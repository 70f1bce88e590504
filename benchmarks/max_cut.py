"""Maximum cuts of Gset graphs by `saltus.optimise`, beside the best known: python -m benchmarks.max_cut [60|1500steps] [graphs]."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import saltus

BEST = {"G1": 11624, "G11": 564, "G14": 3064, "G22": 13359, "G43": 6660}


def max_cut(graph: str) -> tuple[Any, np.ndarray]:
    """(a target whose f is the cut less half the total weight, edges (m, 3)): the cut is Σ w (1 - x_i x_j) / 2."""
    path = Path(os.environ.get("SALTUS_DATA", "data")) / "gset" / f"{graph}.txt"
    edges = np.loadtxt(path, skiprows=1)
    return saltus.targets.ising((edges[:, :2] - 1).astype(int), -edges[:, 2] / 2), edges


def cut_value(edges: np.ndarray, x: Any) -> float:
    i, j = (edges[:, :2] - 1).astype(int).T
    x = np.asarray(x)
    return float(np.sum(edges[:, 2] * (x[i] != x[j])))


def main() -> None:
    budget = sys.argv[1] if len(sys.argv) > 1 else "60"
    limit = {"steps": int(budget[:-5])} if budget.endswith("steps") else {"seconds": float(budget)}
    for graph in sys.argv[2:] or BEST:
        target, edges = max_cut(graph)
        began = time.process_time()
        found = saltus.optimise(target, **limit, seed=0)
        cut = cut_value(edges, found.state)
        told = (
            f"{graph}: cut {cut:.0f}, best known {BEST[graph]} ({cut / BEST[graph]:.2%}), {time.process_time() - began:.0f} CPU s"
        )
        print(f"{told}. {found!r}", flush=True)


if __name__ == "__main__":
    main()
