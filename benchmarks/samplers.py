"""All samplers on eight targets by `saltus.compare`: python -m benchmarks.samplers [targets ...]

A table for each target goes to benchmarks/results/samplers.txt; targets that are there are not run again (delete a table to repeat
it). 16 chains, every sampler tuned first; those of the package that apply, and "auto", the pick of the race.
"""

import pathlib
import sys
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import saltus
from benchmarks.momentum import correlated

KEPT = pathlib.Path(__file__).parent / "results" / "samplers.txt"
CRITICAL = float(np.log(1 + np.sqrt(2)) / 2)


def by_hand():
    """A function as a user types it: 50 binary sites, a small network and a soft constraint."""
    w = jnp.asarray(np.random.default_rng(0).normal(size=(50, 8)), jnp.float32)
    return saltus.Target(lambda s: jnp.sum(jnp.tanh(s @ w)) * 2 - 0.1 * (jnp.sum(s) - 20) ** 2, saltus.Binary(50))


TARGETS = {
    "ising": lambda: saltus.targets.ising((10, 10), 0.4),
    "critical": lambda: saltus.targets.ising((32, 32), CRITICAL),
    "potts": lambda: saltus.targets.potts((12, 12), 3, 0.8),
    "poly2": lambda: saltus.targets.polynomial_mixture(2, 20),
    "correlated": lambda: correlated()[0],
    "regression": saltus.targets.sparse_regression,
    "glass": lambda: saltus.targets.edwards_anderson((6, 6, 6), 0.5),
    "by hand": by_hand,
}
NAMES = ["gibbs", "block-gibbs", "swendsen-wang", "ncg", "avg", "pavg", "gwg", "pas", "uniform-mh", "tgs", "jump-process", "auto"]


def entries(target):
    """Names, and PAVG with a momentum found by effective draws."""
    named = {name: name for name in NAMES}
    named["pavg, momentum"] = saltus.tune(target, saltus.PAVG, adaptation="momentum").kernel
    if not target.differences.exact:
        named["ncg, exact"] = saltus.Informed(saltus.tune(target.replace(differences="exact"), saltus.NCG).kernel, "exact")
    return named


def main(names):
    warnings.simplefilter("ignore", saltus.ConvergenceWarning)
    text = KEPT.read_text() if KEPT.exists() else ""
    for name in names:
        if f"\n{name}:" in text:
            continue
        target, began = TARGETS[name](), time.monotonic()
        found = saltus.compare({name: target}, entries(target), num_warmup=300, repeats=3, seconds=0.2, progress=False)
        told = f"\n{name}: saltus {saltus.__version__}, jax {jax.__version__}, {time.monotonic() - began:.0f} s in all\n{found}\n"
        print(told, flush=True)
        with KEPT.open("a") as file:
            file.write(told)


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name in TARGETS] or list(TARGETS))
