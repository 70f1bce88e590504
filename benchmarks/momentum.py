"""PAVG with momentum and over-relaxation against PAVG: effective draws per step on the correlated ordinal target.

    python -m benchmarks.momentum [steps] [chains]

A discrete Gaussian of 8 sites and 21 levels, every two correlated by 0.8; Σ = -precision, so that all moves are accepted.
Every kernel has the same step size. Effective draws of Σ s_i and of f (saltus.diagnostics.ess) per 1000 steps of one chain.
"""

import sys

import jax.numpy as jnp
import numpy as np

import saltus
from saltus.diagnostics import ess

SITES, CORRELATION = 8, 0.8
PRECISION = np.linalg.inv((1 - CORRELATION) * np.eye(SITES) + CORRELATION)


def main(steps, chains):
    space = saltus.Ordinal(SITES, np.linspace(-3, 3, 21))
    target = saltus.Target(lambda params, s: -0.5 * s @ params @ s, space, jnp.asarray(PRECISION, jnp.float32))
    ways = {"PAVG": {}, "momentum 0.9": dict(momentum=0.9), "over-relaxed": dict(over_relaxed=True)}
    ways["both"] = dict(momentum=0.9, over_relaxed=True)
    base = None
    for name, options in ways.items():
        kernel = saltus.PAVG(1.0, -PRECISION, **options)
        keep = {"sum": jnp.sum, "energy": lambda s: target.log_prob_of(s)}
        run = saltus.sample(target, kernel, num_draws=steps, num_chains=chains, thin=1, keep=keep, progress=False)
        each = {n: 1000 / steps * np.asarray(ess(run.posterior[n].values)) for n in keep}
        base = base or each
        ratios = [f"{n} {np.mean(e):.1f} (x {np.mean(e) / np.mean(base[n]):.2f})" for n, e in each.items()]
        print(f"{name:14s} effective draws per 1000 steps: {', '.join(ratios)}; spread over chains {np.std(each['sum']):.1f}")


if __name__ == "__main__":
    main(*([int(n) for n in sys.argv[1:]] or [4000, 20]))
