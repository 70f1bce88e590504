"""python -m benchmarks.bridges [rows...]: each against an exact answer, or NumPyro's DiscreteHMCGibbs in the same process.

Needs numpyro, blackjax and pymc (`.venv-bridges` of `make test-bridges`). Rows that benchmarks/results/bridges.txt has are not run
again.
"""

from __future__ import annotations

import pathlib
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.contrib.control_flow import scan
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS, DiscreteHMCGibbs

import saltus
from benchmarks.gallery_of_models.compare import Moments, gaps, moments, nuts
from saltus.bridges import numpyro as bridge

OUTPUT = pathlib.Path(__file__).parent / "results/bridges.txt"
Draws = dict[str, np.ndarray]


def ours(model: Callable, *args: Any, times: int = 2, **asked: Any) -> tuple[Draws, float, float]:
    """(draws, seconds of sampling, seconds of the first call with compiling), of the last of `times` calls."""
    seconds, first = 0.0, 0.0
    asked = {"num_draws": 2000, "num_warmup": 1000, "seed": 1, "log_likelihood": False, "progress": False, **asked}
    for _ in range(times):
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = bridge.sample(model, *args, **asked)
        first = first or time.perf_counter() - began
        seconds = float(run.attrs["sampling_seconds"])
    return {name: np.asarray(x) for name, x in run.posterior.data_vars.items()}, seconds, first


def timed(mcmc: MCMC, *args: Any) -> float:
    """Seconds of a second run, that goes on where the first ended and compiles nothing."""
    mcmc.run(jax.random.key(1), *args)
    mcmc.post_warmup_state = mcmc.last_state
    began = time.perf_counter()
    mcmc.run(jax.random.key(2), *args)
    jax.block_until_ready(mcmc.get_samples())
    return time.perf_counter() - began


def theirs(model: Callable, *args: Any, num_draws: int = 1000, num_warmup: int = 1000) -> tuple[Draws, float]:
    """DiscreteHMCGibbs: (draws, seconds of sampling), of 4 chains at once or one after the other, whichever is faster."""

    def made(draws: int, warmup: int, **chains: Any) -> MCMC:
        kernel = DiscreteHMCGibbs(NUTS(model), modified=True)
        return MCMC(kernel, num_warmup=warmup, num_samples=draws, progress_bar=False, **chains)

    together = made(num_draws, num_warmup, num_chains=4, chain_method=jax.vmap)
    seconds = timed(together, *args)
    in_turn = timed(made(50, 50), *args) * 4 * num_draws / 50
    draws = together.get_samples(group_by_chain=True)
    return {name: np.asarray(x) for name, x in draws.items()}, min(seconds, in_turn)


def smallest_ess(draws: Draws, names: tuple[str, ...]) -> float:
    found = [np.ravel(np.asarray(effective_sample_size(np.asarray(draws[name], float)))) for name in names]
    return float(np.nanmin(np.concatenate(found)))


def against(
    model: Callable, args: tuple, names: tuple[str, ...], reference: Moments | None = None, goal: float = 10, **asked: Any
) -> str:
    """Effective draws a second of the slowest of `names`; whether our means agree with the reference, else theirs."""
    own, seconds, first = ours(model, *args, **asked.pop("own", {}))
    other, spent = theirs(model, *args, **asked)
    rates = smallest_ess(own, names) / seconds, smallest_ess(other, names) / spent
    reference = reference or moments({name: other[name] for name in names})
    gap, limit, number, _ = gaps(own, reference)
    return (
        f"effective draws a second of the slowest of {', '.join(names)}: {rates[0]:.0f}, DiscreteHMCGibbs {rates[1]:.1f}, "
        f"ratio {rates[0] / rates[1]:.1f} (goal {goal:g}); {len(own[names[0]])} chains, "
        f"{1e3 * seconds / own[names[0]].shape[1]:.2f} and {1e3 * spent / other[names[0]].shape[1]:.2f} ms a draw; "
        f"first call with compiling {first:.1f} s; "
        f"largest gap of {number} means from the reference {gap:.2f} standard errors of {limit:.2f}"
    )


def die():
    z = numpyro.sample("z", dist.DiscreteUniform(1, 3))
    numpyro.sample("y", dist.Normal(1.0 * z, 1.0), obs=2.5)


def die_row() -> str:
    draws, seconds, _ = ours(die, times=1, num_draws=10000)
    p = np.exp(-0.5 * (2.5 - np.arange(1, 4)) ** 2)
    seen = np.bincount(draws["z"].ravel(), minlength=4)[1:] / draws["z"].size
    return f"largest error of a probability {np.abs(seen - p / p.sum()).max():.4f}; values {np.unique(draws['z'])}; {seconds:.1f} s"


def wheel(y):
    with numpyro.plate("spins", len(y)):
        k = numpyro.sample("k", dist.Categorical(logits=jnp.linspace(-2, 2, 50)))
        numpyro.sample("y", dist.Normal(k / 10.0, 1.0), obs=y)


def wheel_row() -> str:
    y = np.array([0.5, 2.0, 4.5], np.float32)
    draws, seconds, _ = ours(wheel, y, times=1, num_draws=10000)
    log_p = np.linspace(-2, 2, 50) - 0.5 * (y[:, None] - np.arange(50) / 10) ** 2
    p = np.exp(log_p) / np.exp(log_p).sum(1, keepdims=True)
    seen = np.stack([np.bincount(draws["k"][..., i].ravel(), minlength=50) / draws["k"][..., i].size for i in range(3)])
    return f"largest error of a probability {np.abs(seen - p).max():.4f}; {seconds:.1f} s"


def mixture(y, k):
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(k)))
    locs = numpyro.sample("locs", dist.TransformedDistribution(dist.Normal(0, 5).expand([k]), dist.transforms.OrderedTransform()))
    scales = numpyro.sample("scales", dist.Gamma(4.0, 4.0).expand([k]))
    with numpyro.plate("data", len(y)):
        z = numpyro.sample("z", dist.Categorical(weights))
        numpyro.sample("y", dist.Normal(locs[z], scales[z]), obs=y)


def mixture_summed(y, k):
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(k)))
    locs = numpyro.sample("locs", dist.TransformedDistribution(dist.Normal(0, 5).expand([k]), dist.transforms.OrderedTransform()))
    scales = numpyro.sample("scales", dist.Gamma(4.0, 4.0).expand([k]))
    numpyro.sample("y", dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(locs, scales)).expand([len(y)]), obs=y)


def mixture_row(k: int) -> str:
    rng = np.random.default_rng(k)
    z = rng.integers(k, size=500)
    y = rng.normal(np.array([-2.0, 1.5, 5.0])[z], np.array([1.0, 0.7, 1.2])[z]).astype(np.float32)
    names = ("weights", "locs", "scales")
    return against(mixture, (y, k), names, nuts(mixture_summed, y, k, names=names), num_draws=200, num_warmup=200)


def spikes(X, y):
    with numpyro.plate("columns", X.shape[1]):
        z = numpyro.sample("z", dist.Bernoulli(0.2))
        b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    numpyro.deterministic("beta", z * b)
    numpyro.sample("y", dist.Normal(X @ (z * b), 1.0), obs=y)


def columns(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two collinear columns (correlation 0.9), five effects."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 1] = 0.9 * X[:, 0] + np.sqrt(1 - 0.81) * X[:, 1]
    beta = np.zeros(d)
    beta[[0, 4, 7, 11, 15]] = [0.6, -0.5, 0.4, 0.3, -0.25]
    return X.astype(np.float32), (X @ beta + rng.normal(size=n)).astype(np.float32)


def enumerated_inclusion(X: np.ndarray, y: np.ndarray, prior: float = 0.2) -> np.ndarray:
    """P(z_i = 1 | y), slab and noise of variance 1: 2^d Cholesky factors of I + X_z' X_z."""
    d, G, c = X.shape[1], X.T.astype(float) @ X, X.T.astype(float) @ y
    log_p, states = [], (np.arange(2**d)[:, None] >> np.arange(d)) & 1
    for z in np.array_split(states, 256):
        L = np.linalg.cholesky(np.eye(d) + G * (z[:, :, None] * z[:, None, :]))
        half = np.linalg.solve(L, (z * c)[..., None])[..., 0]
        log_det = np.log(np.diagonal(L, axis1=1, axis2=2)).sum(1)
        log_p.append(0.5 * (half**2).sum(1) - log_det + z.sum(1) * np.log(prior / (1 - prior)))
    joined = np.concatenate(log_p)
    p = np.exp(joined - joined.max())
    return (p / p.sum()) @ states


def collinear_row() -> str:
    X, y = columns(60, 20, 0)
    exact = enumerated_inclusion(X, y)
    began = time.perf_counter()
    draws, _, _ = ours(spikes, X, y, times=1, num_draws=40000)
    seconds = time.perf_counter() - began
    error = np.abs(draws["z"].mean((0, 1)) - exact)
    ess = np.asarray(effective_sample_size(draws["z"].astype(float)))
    return (
        f"largest error of 20 inclusion probabilities {error.max():.4f} (goal 0.01), of the collinear pair {error[:2].max():.4f}; "
        f"{seconds:.0f} s with compiling (goal 300); 4 x 40000 draws, smallest ESS {np.nanmin(ess):.0f}"
    )


def wide_row() -> str:
    X, y = columns(200, 100, 1)
    return against(spikes, (X, y), ("beta",), goal=5, num_draws=1000, num_warmup=500)


TRANSITIONS, LEVELS = np.array([[0.9, 0.08, 0.02], [0.05, 0.9, 0.05], [0.02, 0.08, 0.9]]), np.array([-1.0, 0.0, 1.2])


def chain(y):
    def step(before, now):
        x = numpyro.sample("x", dist.Categorical(jnp.asarray(TRANSITIONS)[before]), infer={"enumerate": "parallel"})
        numpyro.sample("y", dist.Normal(jnp.asarray(LEVELS)[x], 0.8), obs=now)
        return x, None

    scan(step, jnp.array(0), y)


def chain_exact(y: np.ndarray) -> np.ndarray:
    """(T, 3) smoothed probabilities: forward and backward."""
    like = np.exp(-0.5 * ((y[:, None] - LEVELS) / 0.8) ** 2)
    ahead, back = [np.eye(3)[0]], [np.ones(3)]
    for t in range(len(y)):
        a = ahead[-1] @ TRANSITIONS * like[t]
        ahead.append(a / a.sum())
    for t in range(len(y) - 1, 0, -1):
        b = TRANSITIONS @ (like[t] * back[-1])
        back.append(b / b.sum())
    p = np.array(ahead[1:]) * np.array(back[::-1])
    return p / p.sum(1, keepdims=True)


def chain_row() -> str:
    rng, x = np.random.default_rng(2), [0]
    for _ in range(500):
        x.append(rng.choice(3, p=TRANSITIONS[x[-1]]))
    y = rng.normal(LEVELS[x[1:]], 0.8).astype(np.float32)
    draws, seconds, first = ours(chain, y, times=1, num_draws=20000, num_warmup=1000, sampler=saltus.Gibbs("coloured"))
    p = chain_exact(y.astype(float))
    each = {f"p{k}": (draws["x"] == k).astype(float) for k in range(3)}
    zero = np.zeros(500)
    gap, limit, _, _ = gaps(each, {f"p{k}": (p[:, k], zero) for k in range(3)})
    error = np.abs(np.stack([each[f"p{k}"].mean((0, 1)) for k in range(3)], 1) - p).max()
    return (
        f"largest error of 1500 smoothed probabilities {error:.3f}, largest gap {gap:.2f} standard errors of {limit:.2f}; "
        f"{first:.0f} s in all, {seconds:.1f} s sampling; {' '.join(str(bridge.target(chain, y)).split())}"
    )


def blocks(edges, i, j, num):
    within, between = numpyro.sample("within", dist.Beta(2, 2)), numpyro.sample("between", dist.Beta(2, 2))
    with numpyro.plate("nodes", num):
        z = numpyro.sample("z", dist.Bernoulli(0.5))
    numpyro.sample("edges", dist.Bernoulli(jnp.where(z[i] == z[j], within, between)), obs=edges)


def blocks_row() -> str:
    rng, (i, j) = np.random.default_rng(3), np.triu_indices(60, 1)
    z = rng.integers(2, size=60)
    edges = (rng.uniform(size=len(i)) < np.where(z[i] == z[j], 0.3, 0.12)).astype(np.int32)
    return against(blocks, (edges, i, j, 60), ("within", "between"), goal=1, num_draws=500, num_warmup=500)


def gallery_row(name: str) -> str:
    from benchmarks.gallery_of_models.__main__ import cases, kept_line

    return kept_line(next(case for case in cases() if case.name == name))


ROWS: dict[str, Callable[[], str]] = {
    "DiscreteUniform(1, 3)": die_row,
    "Categorical with 50 categories": wheel_row,
    "mixture of 2, 500 points": lambda: mixture_row(2),
    "mixture of 3, 500 points": lambda: mixture_row(3),
    "collinear d = 20": collinear_row,
    "spike and slab d = 100": wide_row,
    "hidden Markov model of 500 states": chain_row,
    "stochastic block model of 60 nodes": blocks_row,
    "changepoint": lambda: gallery_row("changepoint of counts"),
    "item responses with missing answers": lambda: gallery_row("item responses with missing answers"),
    "truncated count": lambda: gallery_row("truncated count"),
}


def main(wanted: list[str]) -> None:
    done = {row.split(": ")[0] for row in OUTPUT.read_text().splitlines()} if OUTPUT.exists() else set()
    for name, row in ROWS.items():
        if name in done or (wanted and name not in wanted):
            continue
        told = f"{name}: {row()}"
        print(told, flush=True)
        with OUTPUT.open("a") as kept:
            kept.write(told + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
