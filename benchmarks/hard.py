"""Hard landscapes by the default call, `saltus.sample(target, seed=seed)`: converged, right, and within two minutes?

    python -m benchmarks.hard [seeds] [cases ...]      seeds: 3 makes 0, 1, 2 of every case; default 20

One line for each (case, seed) goes to benchmarks/results/hard.txt, and those that are there are not run again (delete a line to
repeat it). converged: the verdict is "ok". right: every statistic is within 4 of its standard errors of the truth. Seconds are
of the whole call, by the clock and of the processor; those of the processor count, since other work may run beside. The first of a
session includes compiling. The glass has no exact answer: its truth is a long run of a
ladder with its own error (`python -m benchmarks.hard reference`, benchmarks/results/hard_glass.json).
"""

import json
import pathlib
import sys
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import saltus
from saltus.diagnostics import ess_of_chains

KEPT = pathlib.Path(__file__).parent / "results" / "hard.txt"
GLASS = KEPT.with_name("hard_glass.json")
LIMIT, FAR = 120, 4.0  # seconds; standard errors


def mean_and_error(x):
    """(mean, standard error) of draws (chains, draws)."""
    return float(np.mean(x)), float(np.std(x) / np.sqrt(max(ess_of_chains(x), 1)))


# ---- the cases: (target, {statistic: (function of run -> (chains, draws), exact value, its error)}) -----------------------


def ordered_ising():
    """Ising 16 x 16 at K = 0.6: nearly all up or nearly all down. Every chain has to show both signs."""
    target = saltus.targets.ising((16, 16), 0.6)
    edges = 2 * 256 * saltus.targets.kaufman_edge_correlation((16, 16), 0.6) * 0.6
    statistics = {
        "energy": (lambda run: run.sample_stats.lp.values, edges, 0.0),
        "m": (lambda run: run.posterior.s.values.mean(axis=-1), 0.0, 0.0),
        "one sign": (lambda run: (np.ptp(np.sign(run.posterior.s.values.mean(axis=-1)), axis=1) == 0)[:, None], 0.0, 0.0),
    }
    return target, statistics


CENTRES = np.stack([np.random.default_rng(site).permutation(8) for site in range(5)], axis=1) * 3 + 1
SHARES, WIDTH = np.arange(1.0, 9.0) / 36, 0.4


def narrow_modes():
    """Eight modes in five ordinal sites of 24 values, three apart at every site, of shares 1/36 to 8/36."""
    values = np.arange(24.0)
    each = np.exp(-((values - CENTRES[..., None]) ** 2) / (2 * WIDTH**2)).sum(axis=-1)  # (modes, sites)
    log_share = jnp.asarray(np.log(SHARES) - np.log(each).sum(axis=1), jnp.float32)
    centres = jnp.asarray(CENTRES, jnp.float32)

    def log_prob(s):
        return jax.nn.logsumexp(log_share - jnp.sum((s - centres) ** 2, axis=1) / (2 * WIDTH**2))

    def in_mode(mode):
        def here(run):
            s = run.posterior.s.values
            return (np.abs(s[..., None, :] - CENTRES).sum(axis=-1).argmin(axis=-1) == mode).astype(float)

        return here

    statistics = {f"mode {k}": (in_mode(k), float(SHARES[k]), 0.0) for k in range(8)}
    return saltus.Target(log_prob, saltus.Ordinal(5, values)), statistics


def poly4():
    """The paper's mixture of 50 bumps along the diagonal of 20 sites, wider apart."""
    target = saltus.targets.polynomial_mixture(4, 20)
    truth = target.truth
    statistics = {
        "mean": (lambda run: run.posterior.s.values.mean(axis=-1), float(truth.mean.mean()), 0.0),
        "square": (
            lambda run: (run.posterior.s.values**2).mean(axis=-1),
            float((truth.mean**2).mean() + np.diag(truth.covariance).mean()),
            0.0,
        ),
        "square of the mean": (
            lambda run: run.posterior.s.values.mean(axis=-1) ** 2,
            float(truth.mean.mean() ** 2 + truth.covariance.mean()),
            0.0,
        ),
    }
    return target, statistics


def collinear():
    """Regression of 100 rows on 20 columns; columns 0 and 1 are nearly the same (correlation 0.9999), and one of them is needed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 20))
    X[:, 1] = X[:, 0] + 0.01 * rng.normal(size=100)
    y = X[:, 0] + 0.7 * X[:, 5] + 0.3 * X[:, 9] + 0.5 * rng.normal(size=100)
    target = saltus.targets.sparse_regression(X, y, g=1e4, inclusion=(1.0, 20.0))
    states = np.asarray(target.space.enumerate())
    f = np.asarray(jax.lax.map(target.value, jnp.asarray(states), batch_size=2**12), np.float64)
    p = np.exp(f - f.max())
    exact = (p / p.sum()) @ states
    likely = np.flatnonzero((exact > 0.01) & (exact < 0.99))
    some = lambda sites: lambda run: run.posterior.s.values[..., sites].sum(axis=-1).astype(float)  # noqa: E731
    statistics = {f"column {i}": (some([i]), float(exact[i]), 0.0) for i in likely}
    rare = np.delete(np.arange(20), likely)  # one by one they have a handful of draws, and no normal law
    return target, statistics | {"the others": (some(rare), float(exact[rare].sum()), 0.0)}


def glass():
    """A 6^3 Edwards-Anderson glass at β = 1.2: the energy, and the squared overlap with the best state known."""
    told = json.loads(GLASS.read_text())
    ground = np.array([1 if bit == "+" else -1 for bit in told["ground"]])
    return saltus.targets.edwards_anderson((6, 6, 6), 1.2), {
        "energy": (lambda run: run.sample_stats.lp.values, *told["energy"]),
        "q2": (lambda run: (run.posterior.s.values @ ground / 216.0) ** 2, *told["q2"]),
        "m": (lambda run: run.posterior.s.values.mean(axis=-1), 0.0, 0.0),
    }


CASES = {"ising": ordered_ising, "modes": narrow_modes, "poly4": poly4, "collinear": collinear, "glass": glass}


def reference():
    """A long run of 16 ladders on the glass; kept with its errors."""
    target = saltus.targets.edwards_anderson((6, 6, 6), 1.2)
    best = saltus.optimise(target, steps=4000, seed=1)
    ground = np.asarray(best.state)
    found = saltus.find_ladder(target, saltus.Gibbs("coloured"), seed=1)
    keep = {"q2": lambda s: (s @ jnp.asarray(ground, s.dtype) / 216) ** 2}
    run = saltus.sample(
        target, found.kernel, num_draws=2000, num_warmup=4000, num_chains=16, thin=10, seed=1, keep=keep, progress=False
    )
    told = {"energy": mean_and_error(run.sample_stats.lp.values), "q2": mean_and_error(run.posterior["q2"].values)}
    told |= {"ladder": repr(found), "round trips": int(run.attrs["round_trips"]), "best": best.value}
    told |= {"ground": "".join("+" if x > 0 else "-" for x in ground)}
    GLASS.write_text(json.dumps(told, indent=1) + "\n")
    print({name: value for name, value in told.items() if name != "ground"})


# ---- one call ---------------------------------------------------------------------------------------------------------------


def measure(target, statistics, seed):
    """One line: the verdict, how far the worst statistic is from the truth, and how long the call took."""
    began, cpu = time.monotonic(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", saltus.ConvergenceWarning)
        run = saltus.sample(target, seed=seed, progress=False)
    seconds, cpu, far = time.monotonic() - began, time.process_time() - cpu, {}
    for name, (of, exact, exact_error) in statistics.items():
        mean, error = mean_and_error(of(run))
        far[name] = abs(mean - exact) / max(np.hypot(error, exact_error), 1e-9)
        if error == 0 and abs(mean - exact) < 0.005:  # a value that is hardly ever there need not be among the draws
            far[name] = 0.0
    worst, verdict = max(far, key=far.get), str(run.attrs["verdict"])
    passed = verdict == "ok" and far[worst] < FAR and min(seconds, cpu) < LIMIT
    wrong = verdict == "ok" and far[worst] >= FAR
    told = "pass" if passed else "WRONG" if wrong else "declined" if verdict != "ok" else "slow"
    ess = min(ess_of_chains(run.sample_stats.lp.values), ess_of_chains(np.asarray(run.posterior.s.values).mean(axis=-1)))
    return (
        f"{told}: verdict {verdict}, worst {worst} {far[worst]:.1f} standard errors, {seconds:.0f} s ({cpu:.0f} of the processor), "
        f"{run.attrs['sampler']}, thin {run.attrs['thin']}, ESS {ess:.0f}",
        saltus.summary(run),
    )


def main(seeds, names):
    done = {tuple(line.split()[:2]) for line in KEPT.read_text().splitlines()} if KEPT.exists() else set()
    for name in names:
        left = [seed for seed in range(seeds) if (name, str(seed)) not in done]
        target, statistics = CASES[name]() if left else (None, None)
        for seed in left:
            line, summary = measure(target, statistics, seed)
            print(f"{name} {seed} {line}", flush=True)
            if not line.startswith("pass"):
                print(summary, flush=True)
            with KEPT.open("a") as file:
                file.write(f"{name} {seed} {line}\n")
    lines = [line.split()[:3] for line in KEPT.read_text().splitlines()]
    for name in CASES:
        told = [word for case, _, word in lines if case == name]
        print(f"{name}: {told.count('pass:')} of {len(told)} pass, {told.count('WRONG:')} wrong without saying so")


if __name__ == "__main__":
    words = sys.argv[1:]
    if words == ["reference"]:
        reference()
    else:
        main(int(words[0]) if words and words[0].isdigit() else 20, [w for w in words if w in CASES] or list(CASES))
