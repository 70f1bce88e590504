"""TGS and JumpProcess against today's best: error of inclusion probabilities at equal seconds of sampling.

    python -m benchmarks.weighted [seconds] [repeats] [targets ...]

Two posteriors whose inclusion probabilities are known: the paper's regression (100 sites) and UScrime (15 columns, Zellner's g = n,
all 32768 models enumerated; logarithms as usual, data through SALTUS_DATA). Every sampler makes as many steps as take so many
seconds, by a short run before; the error is the root mean square over columns and seeds. Those that weigh estimate by
`marginals`, whose seconds are added; the others by means of the draws. Lines go to benchmarks/results/weighted.txt too.
"""

import os
import pathlib
import sys
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import saltus

KEPT = pathlib.Path(__file__).parent / "results" / "weighted.txt"


def regression():
    target = saltus.targets.sparse_regression(differences="exact")
    return target, target.truth.marginals


def uscrime():
    """log p(y | γ) = ½ (n - 1 - |γ|) log(1 + g) - ½ (n - 1) log(1 + g (1 - R²)), all models alike."""
    path = pathlib.Path(os.environ.get("SALTUS_DATA", ".")) / "UScrime.csv"
    names = path.read_text().splitlines()[0].replace('"', "").split(",")
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    table = np.stack([c if name == "So" else np.log(c) for name, c in zip(names, table.T, strict=True)], axis=1)
    table = table - table.mean(axis=0)
    y, X = table[:, names.index("y")], np.delete(table, names.index("y"), axis=1)
    X, y, n = X / np.linalg.norm(X, axis=0), y / np.linalg.norm(y), len(y)
    params = {"G": jnp.asarray(X.T @ X, jnp.float32), "c": jnp.asarray(X.T @ y, jnp.float32)}

    def log_prob(params, s):
        G = params["G"] * s[:, None] * s + jnp.diag(1 - s)
        c = params["c"] * s
        R2 = c @ jnp.linalg.solve(G, c)
        return 0.5 * (n - 1 - jnp.sum(s)) * jnp.log(1.0 + n) - 0.5 * (n - 1) * jnp.log(1 + n * (1 - R2))

    target = saltus.Target(log_prob, saltus.Binary(15), params, differences="exact")
    states = target.space.enumerate()
    f = np.asarray(jax.lax.map(target.value, states, batch_size=2**10), np.float64)
    p = np.exp(f - f.max())
    return target, (p / p.sum()) @ np.asarray(states)


TARGETS = {"regression": regression, "uscrime": uscrime}


def samplers(target):
    """{name: kernel}, tuned; "auto" is what the race picks."""
    found = {f"auto ({k.__class__.__name__})": k for k in [saltus.kernel_of(saltus.sample(target, num_draws=50, progress=False))]}
    for kind in (saltus.NCG, saltus.AVG, saltus.PAVG, saltus.GWG, saltus.PAS):
        found[kind.__name__] = saltus.tune(target, kind).kernel
    found["Gibbs(systematic)"] = saltus.Gibbs("systematic")
    return found | {
        "TGS": saltus.TGS(),
        "TGS(inclusion)": saltus.TGS("inclusion"),
        "JumpProcess(sqrt)": saltus.JumpProcess(),
        "JumpProcess(min)": saltus.JumpProcess("min"),
    }


def estimate(target, kernel, steps, seed, exact):
    """(mean squared error of inclusion probabilities, seconds)."""
    thin = 1 if kernel.weighted else max(steps // 2000, 1)
    run = saltus.sample(target, kernel, num_draws=max(steps // thin, 4), num_warmup=200, thin=thin, seed=seed, progress=False)
    seconds = float(run.attrs["sampling_seconds"])
    if kernel.weighted:
        raw, began = run["weighted_posterior"], time.perf_counter()
        inclusion = kernel.marginals(target, raw["s"].values, raw["log_weight"].values)[:, 1]
        seconds += time.perf_counter() - began
    else:
        inclusion = run.posterior["s"].values.mean(axis=(0, 1))
    return float(np.mean((inclusion - exact) ** 2)), seconds


def steps_for(target, kernel, seconds, exact):
    """So many that sampling takes about so long: by runs that grow until they take a fifth of it."""
    steps = 100
    while True:
        _, taken = estimate(target, kernel, steps, 1000, exact)
        _, taken = estimate(target, kernel, steps, 1001, exact)  # compiled
        if taken > seconds / 5 or steps > 10**6:
            return max(int(steps * seconds / taken), 4)
        steps = int(steps * max(min(seconds / 3 / taken, 10), 2))


def main(seconds, repeats, names):
    warnings.simplefilter("ignore")
    for name in names:
        target, exact = TARGETS[name]()
        for told, kernel in samplers(target).items():
            steps = steps_for(target, kernel, seconds, exact)
            found = np.array([estimate(target, kernel, steps, seed, exact) for seed in range(repeats)])
            error = np.sqrt(found[:, 0].mean())
            line = f"{name:11s} {told:22s} error {error:.5f} in {np.median(found[:, 1]):.2f} s"
            line += f" ({steps} steps of 4 chains, {repeats} seeds)"
            print(line, flush=True)
            with KEPT.open("a") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    numbers = [float(a) for a in sys.argv[1:] if a.replace(".", "").isdigit()]
    main(
        numbers[0] if numbers else 2.0,
        int(numbers[1]) if len(numbers) > 1 else 5,
        [a for a in sys.argv[1:] if a in TARGETS] or list(TARGETS),
    )
