"""Variable selection on real and simulated data, row by row: python -m benchmarks.selection [ROW ...]

Outputs are kept in benchmarks/results/selection (delete one to repeat it). Data through SALTUS_DATA. Rows: uscrime, fls,
diabetes64, riboflavin, wide (n = p = 10^4), widest (p = 10^5, n = 500). The peer of fls is R:
BMS::bms(datafls, g = "BRIC", mprior = "uniform", iter = 1e6).
"""

import os
import pathlib
import resource
import sys
import time

import numpy as np
import pandas as pd

import saltus

DATA = pathlib.Path(os.environ.get("SALTUS_DATA", "."))
KEPT = pathlib.Path(__file__).parent / "results" / "selection"


def timed(*args, **options):
    """(selection, line of figures)."""
    began, cpu = time.monotonic(), time.process_time()
    found = saltus.variable_selection(*args, method="sample", progress=False, **options)
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    told = found.told
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return found, (
        f"{seconds:.1f} s ({cpu:.1f} s of CPU, {told['first_seconds']:.1f} s to the end of the first batch), "
        f"{told['num_chains']} x {told['steps']} steps, "
        f"ended by {told['ended']}, largest error {found.inclusion_error.max():.4f}, R-hat {found.rhat.max():.4f}, "
        f"load {os.getloadavg()[0]:.0f}, peak memory {memory:.2f} GB"
    )


def read(name):
    table = pd.read_csv(DATA / name)
    return table.drop(columns="y"), table["y"]


def seeds(X, y, **options):
    """Three seeds: figures of each, and how far inclusion probabilities are apart."""
    found = []
    for seed in range(3):
        one, line = timed(X, y, seed=seed, **options)
        found.append(one.inclusion)
        yield f"seed {seed}: {line}"
    apart = pd.concat(found, axis=1).max(axis=1) - pd.concat(found, axis=1).min(axis=1)
    yield f"inclusion differs by at most {apart.max():.4f}, at {apart.idxmax()}"
    yield found[0].sort_values(ascending=False).head(8).round(3).to_string()


def uscrime():
    X, y = read("UScrime.csv")
    X = X.assign(**{c: np.log(X[c]) for c in X if c != "So"})
    for prior in ("g", "hyper-g", "hyper-g/n", "zellner-siow", "independent"):
        exact = saltus.variable_selection(X, np.log(y), prior=prior)
        found, line = timed(X, np.log(y), prior=prior, error=0.004)
        off = ((found.inclusion - exact.inclusion).abs() / found.inclusion_error).max()
        yield f"{prior}: at most {off:.2f} Monte-Carlo errors from enumeration; {line}"


def fls():
    X, y = read("datafls.csv")
    reference, line = timed(X, y, "bric", "uniform", error=0.0015, seed=9)
    yield f"reference: {line}"
    for error in (0.01, 0.003):
        found, line = timed(X, y, "bric", "uniform", error=error, seed=0)
        yield f"error {error}: {(found.inclusion - reference.inclusion).abs().max():.4f} from the reference; {line}"
    yield reference.inclusion.round(4).to_string()


def diabetes64():
    yield from seeds(*read("diabetes64.csv"), model_prior="bernoulli", expected_size=8)


def riboflavin():
    z = np.load(DATA / "riboflavin.npz")
    yield from seeds(z["x"], z["y"], names=z["names"].tolist(), model_prior="bernoulli", expected_size=10)


def simulated(n, p):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, X[:, :10] @ rng.choice([-1.0, 1.0], 10) + 2 * rng.normal(size=n)


def wide(n=10_000, p=10_000):
    found, line = timed(*simulated(n, p), model_prior="bernoulli", expected_size=10)
    yield line
    yield f"signals {found.inclusion[:10].round(3).tolist()}, largest of the others {found.inclusion[10:].max():.3f}"


def widest():
    yield from wide(500, 100_000)


ROWS = {row.__name__: row for row in (uscrime, fls, diabetes64, riboflavin, wide, widest)}


def main(names):
    KEPT.mkdir(parents=True, exist_ok=True)
    for name in names or ROWS:
        kept = KEPT / f"{name}.txt"
        if kept.exists():
            continue
        lines = []
        for line in ROWS[name]():
            print(f"{name}  {line}", flush=True)
            lines.append(line)
        kept.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
