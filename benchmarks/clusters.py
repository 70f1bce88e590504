"""Swendsen-Wang against coloured Gibbs at the critical point: effective draws a second of m².

    python -m benchmarks.clusters [sides ...]

Both are sampled in turn, in one process. Effective draws are those of saltus.diagnostics.ess, summed over chains; seconds
are those of sampling, without compiling.
"""

import sys
import time
import warnings

import jax.numpy as jnp
import numpy as np

import saltus
from saltus.diagnostics import ess

CHAINS = 8
CRITICAL = float(np.log(1 + np.sqrt(2)) / 2)


def squared_magnetisation(s):
    return jnp.mean(s) ** 2


def measure(target, kernel, num_draws, num_chains=CHAINS):
    """Of m²: (effective draws a second, effective draws a step of one chain, seconds a step of all chains, effective draws)."""
    settings = dict(num_chains=num_chains, keep={"m2": squared_magnetisation}, thin=1, progress=False, seed=0)
    start = np.ones(target.space.num_sites)  # ordered: nothing has to coarsen
    saltus.sample(target, kernel, num_draws=8, num_warmup=0, initial=start, **settings)  # compiles
    began = time.perf_counter()
    run = saltus.sample(target, kernel, num_draws=num_draws, num_warmup=num_draws // 5, initial=start, **settings)
    seconds = (time.perf_counter() - began) * num_draws / (num_draws + num_draws // 5)
    effective = float(np.sum(ess(run.posterior["m2"].values)))
    return effective / seconds, effective / (num_draws * num_chains), seconds / num_draws, effective


def main(sides):
    warnings.simplefilter("ignore", saltus.ConvergenceWarning)  # of the runs that compile, and of sweeps: effective draws are told
    print(f"Ising at K = {CRITICAL:.5f}; effective draws of m^2")
    for side in sides:
        target = saltus.targets.ising((side, side), CRITICAL)
        clusters = measure(target, saltus.SwendsenWang(), 400)
        sweeps = measure(target, saltus.Gibbs("coloured"), max(4000, 10 * side**2 // 8))
        print(
            f"{side}x{side}: Swendsen-Wang / coloured Gibbs {clusters[0] / sweeps[0]:.2f} a second, "
            f"{clusters[1] / sweeps[1]:.0f} a step; a step costs {clusters[2] / sweeps[2]:.0f} sweeps "
            f"({1000 * clusters[2]:.2f} and {1000 * sweeps[2]:.3f} ms for {CHAINS} chains; "
            f"effective draws {clusters[3]:.0f} and {sweeps[3]:.0f})",
            flush=True,
        )


if __name__ == "__main__":
    main([int(side) for side in sys.argv[1:]] or [32, 64])
