"""Variable selection on real and simulated data, row by row: python -m benchmarks.selection [ROW ...]

Outputs are kept in benchmarks/results/selection (delete one to repeat it). Data through SALTUS_DATA. Rows: uscrime, collinear, fls
(with BMS where Rscript has it: apt-get install r-cran-bms), kernels, diabetes64, riboflavin, wide (n = p = 10^4), widest (p = 10^5,
n = 500).
"""

import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
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


def collinear():
    """Columns of correlation 0.98, a copy, a constant and a forced one, beside enumeration."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(50, 12)), columns=list("abcdefghijkl"))
    X["b"] = X["a"] + 0.2 * X["b"]
    X["copy"], X["constant"] = -2 * X["c"], 1.0
    y = X["a"] + 0.4 * X["c"] + 0.3 * X["d"] + rng.normal(size=50)
    for prior in ("g", "independent", "hyper-g/n"):
        asked = dict(prior=prior, model_prior="uniform", forced=["e"])
        exact = saltus.variable_selection(X, y, **asked)
        found, line = timed(X, y, error=0.004, **asked)
        off = (found.inclusion - exact.inclusion).abs() / np.maximum(found.inclusion_error, 1e-9)
        yield f"{prior}: at most {off.max():.2f} Monte-Carlo errors from enumeration; {line}"
        right, ours = (each.inclusion[["c", "copy"]].round(4).tolist() for each in (exact, found))
        yield f"original and copy {right}, sampled {ours}"


BMS = """suppressMessages(library(BMS)); a <- commandArgs(TRUE); d <- read.csv(a[1]); ref <- read.csv(a[2])
for (n in c(10000, 30000, 100000)) for (s in 1:3) { set.seed(s); t <- proc.time()[3]
f <- bms(d, burn = n / 10, iter = n, g = "BRIC", mprior = "uniform", mcmc = "bd", user.int = FALSE); t <- proc.time()[3] - t
pip <- coef(f, order.by.pip = FALSE, exact = FALSE)[, "PIP"]
cat(sprintf("%d %.3f %.5f\n", n, t, max(abs(pip - ref$inclusion)))) }"""


def fls():
    """Largest error of an inclusion probability against time: ours and BMS', each the mean of three seeds."""
    X, y = read("datafls.csv")
    reference, line = timed(X, y, "bric", "uniform", error=0.0012, seed=9)
    yield f"reference: {line}"
    found, line = timed(X, y, "bric", "uniform", error=0.005, seed=5)
    yield f"error 0.005: {(found.inclusion - reference.inclusion).abs().max():.4f} from the reference; {line}"
    ours = {}
    for steps in (2048, 4096, 8192, 16384, 32768, 65536):
        runs = [timed(X, y, "bric", "uniform", error=1e-9, max_steps=steps, seed=seed)[0] for seed in range(4)][1:]
        off = np.mean([(run.inclusion - reference.inclusion).abs().max() for run in runs])
        ours[steps] = np.mean([run.told["seconds"] for run in runs]), off
        yield f"saltus, 8 x {steps} steps: {ours[steps][0]:.2f} s, off by {off:.4f}"
    theirs = bms(reference)
    for num, (seconds, off) in theirs.items():
        yield f"BMS, {num} iterations: {seconds:.2f} s, off by {off:.4f}"
    if theirs:
        mine, peer = time_to(0.01, ours), time_to(0.01, theirs)
        yield f"seconds to an error of 0.01: saltus {mine:.2f}, BMS {peer:.2f}, ratio {mine / peer:.3f}"
    yield reference.inclusion.round(4).to_string()


def bms(reference):
    """{iterations: (seconds, largest error)} of R's BMS, run now; nothing without it."""
    if not shutil.which("Rscript"):
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "reference.csv"
        reference.inclusion.to_csv(path)
        printed = subprocess.run(["Rscript", "-e", BMS, DATA / "datafls.csv", path], capture_output=True, text=True)
    table = pd.DataFrame([line.split() for line in printed.stdout.splitlines()], dtype=float)
    return {int(num): tuple(rows.mean()[[1, 2]]) for num, rows in table.groupby(0)} if len(table) else {}


def time_to(error, seen):
    """Seconds to this error, by the line log error = c - log(seconds) / 2 through what was seen."""
    return float(np.exp(np.mean([np.log(seconds) + 2 * np.log(off / error) for seconds, off in seen.values()])))


def kernels():
    """Other kernels on the same models, beside enumeration."""
    X, y = read("UScrime.csv")
    X = X.assign(**{c: np.log(X[c]) for c in X if c != "So"})
    exact = saltus.variable_selection(X, np.log(y))
    for method in ("sample", "ncg", "pavg", "gwg", "tempered"):
        began = time.monotonic()
        found = saltus.variable_selection(X, np.log(y), method=method, progress=False)
        off = (found.inclusion - exact.inclusion).abs() / found.inclusion_error
        yield (
            f"{method}: {time.monotonic() - began:.1f} s, at most {off.max():.2f} Monte-Carlo errors from enumeration, "
            f"largest error {found.inclusion_error.max():.4f}, R-hat {found.rhat.max():.4f}"
        )


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


ROWS = {row.__name__: row for row in (uscrime, collinear, fls, kernels, diabetes64, riboflavin, wide, widest)}


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
