"""PAVG with momentum and over-relaxation against PAVG: effective draws per step of Σ s_i and of f.

    python -m benchmarks.momentum [steps] [chains] [targets ...]

correlated: a discrete Gaussian of 8 sites and 21 levels, every two correlated by 0.8; Σ = -precision and step size 1 for all,
so that every move is accepted. The others: PAVG as `saltus.tune` leaves it, and the same kernel with momentum. "as tuned" is what
`saltus.tune(target, saltus.PAVG, adaptation="momentum")` finds. Effective draws are those of saltus.diagnostics.ess per 1000 steps
of one chain, with their standard error over chains. Lines go to benchmarks/results/momentum.txt too.
"""

import pathlib
import sys
import warnings

import jax.numpy as jnp
import numpy as np

import saltus
from saltus.diagnostics import ess

KEPT = pathlib.Path(__file__).parent / "results" / "momentum.txt"
SITES, CORRELATION = 8, 0.8
PRECISION = np.linalg.inv((1 - CORRELATION) * np.eye(SITES) + CORRELATION)
WAYS = {
    "PAVG": {},
    "momentum 0.9": dict(momentum=0.9),
    "over-relaxed, momentum 0.5": dict(momentum=0.5, over_relaxed=True),
    "over-relaxed, momentum 0.9": dict(momentum=0.9, over_relaxed=True),
}


def correlated():
    space = saltus.Ordinal(SITES, np.linspace(-3, 3, 21))
    target = saltus.Target(lambda params, s: -0.5 * s @ params @ s, space, jnp.asarray(PRECISION, jnp.float32))
    return target, saltus.PAVG(1.0, -PRECISION)


def tuned(target):
    return target, saltus.tune(target, saltus.PAVG).kernel


TARGETS = {
    "correlated": correlated,
    "poly2": lambda: tuned(saltus.targets.polynomial_mixture(2, 20)),
    "poly4": lambda: tuned(saltus.targets.polynomial_mixture(4, 20)),
    "regression": lambda: tuned(saltus.targets.sparse_regression()),
}


def with_options(kernel, options):
    return saltus.PAVG(kernel.step_size, kernel.preconditioner, kernel.scale, **options)


def measure(target, kernel, steps, chains):
    """{statistic: (effective draws per 1000 steps, standard error)}, and the acceptance."""
    keep = {"sum": jnp.sum, "energy": lambda s: target.log_prob_of(s)}
    run = saltus.sample(target, kernel, num_draws=steps, num_chains=chains, num_warmup=500, thin=1, keep=keep, progress=False)
    each = {n: 1000 / steps * np.asarray(ess(run.posterior[n].values)) for n in keep}
    return {n: (e.mean(), e.std() / np.sqrt(chains)) for n, e in each.items()}, float(run.sample_stats["acceptance_rate"].mean())


def main(steps, chains, names):
    warnings.simplefilter("ignore", saltus.ConvergenceWarning)
    print(f"{chains} chains x {steps} steps; effective draws per 1000 steps of a chain, and their ratio to PAVG's")
    for name in names:
        target, kernel = TARGETS[name]()
        base = None
        ways = {way: with_options(kernel, options) for way, options in WAYS.items()}
        ways["as tuned"] = saltus.tune(target, saltus.PAVG, adaptation="momentum").kernel
        for way, kernel in ways.items():
            found, accepted = measure(target, kernel, steps, chains)
            base = base or found
            told = [
                f"{n} {m:.1f} (x {m / base[n][0]:.2f} ± {m / base[n][0] * np.hypot(e / m, base[n][1] / base[n][0]):.2f})"
                for n, (m, e) in found.items()
            ]
            own = f" ({kernel.momentum}, over-relaxed {kernel.over_relaxed})" if way == "as tuned" else ""
            line = f"{name:11s} {way + own:27s} {', '.join(told)}; acceptance {accepted:.2f}; {chains} chains x {steps} steps"
            print(line, flush=True)
            with KEPT.open("a") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    numbers = [int(a) for a in sys.argv[1:3]]
    main(*(numbers if len(numbers) == 2 else (4000, 20)), sys.argv[3:] or list(TARGETS))
