"""python -m benchmarks.calibration [models...]: simulation-based calibration of three mixed models; kept lines are not run again.

Parameters from the prior, data from the parameters, draws given the data: the rank of the true value among thinned draws is uniform
(Talts et al. 2018), for continuous parameters and, ties broken at random, for discrete ones. Data are arguments, so that the 200
replications compile once. A last row has a wrong scale in its model: its ranks must not be uniform.
"""

from __future__ import annotations

import functools
import pathlib
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy.stats import chisquare

import saltus

from .internals import draw

OUTPUT = pathlib.Path(__file__).parents[1] / "tests/full_output/calibration.txt"
REPLICATIONS, KEPT, BINS = 200, 99, 10
ASKED = {"num_chains": 2, "num_warmup": 400, "num_draws": 50, "thin": 10, "progress": False}


def clusters(s, x, y, scale=1.0):
    """Two clusters: z_i ~ Bernoulli(w), y_i ~ N(m z_i, scale), m ~ N(0, 2), w ~ Beta(2, 2)."""
    z, m, w = s, x["m"], x["w"]
    prior = -(m**2) / 8 + jnp.log(w) + jnp.log1p(-w)
    return prior + jnp.sum(z * jnp.log(w) + (1 - z) * jnp.log1p(-w)) - 0.5 * jnp.sum(((y - m * z) / scale) ** 2)


def clusters_given(rng: np.random.Generator) -> tuple[dict[str, Any], tuple]:
    m, w = 2 * rng.normal(), rng.beta(2, 2)
    z = rng.uniform(size=8) < w
    return {"m": m, "w": w, "s": z}, ((m * z + rng.normal(size=8)).astype(np.float32),)


def clusters_run(seed: int, data: tuple, model: Callable = clusters) -> Any:
    return saltus.mixed(model, saltus.Binary(8), {"m": (), "w": ()}, data, transforms={"w": "unit"}, seed=seed, **ASKED)


too_narrow = functools.partial(clusters, scale=0.7)


def spikes(X, y):
    with numpyro.plate("columns", 4):
        z = numpyro.sample("z", dist.Bernoulli(0.4))
        b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    sd = numpyro.sample("sd", dist.LogNormal(0.0, 0.3))
    numpyro.sample("y", dist.Normal(X @ (z * b), sd), obs=y)


def spikes_given(rng: np.random.Generator) -> tuple[dict[str, Any], tuple]:
    X, z, b, sd = rng.normal(size=(12, 4)), rng.uniform(size=4) < 0.4, rng.normal(size=4), np.exp(0.3 * rng.normal())
    X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    y = X @ (z * b) + sd * rng.normal(size=12)
    return {"z": z, "b": b, "sd": sd}, (X.astype(np.float32), y.astype(np.float32))


def changepoint(y):
    tau = numpyro.sample("tau", dist.DiscreteUniform(1, 14))
    level = numpyro.sample("level", dist.Normal(0, 1.5).expand([2]))
    k = numpyro.sample("k", dist.Categorical(logits=jnp.zeros(3)))  # which of three scales
    numpyro.sample("y", dist.Normal(jnp.where(jnp.arange(15) < tau, level[0], level[1]), jnp.array([0.5, 1.0, 2.0])[k]), obs=y)


def changepoint_given(rng: np.random.Generator) -> tuple[dict[str, Any], tuple]:
    tau, level, k = rng.integers(1, 15), 1.5 * rng.normal(size=2), rng.integers(3)
    y = np.where(np.arange(15) < tau, level[0], level[1]) + np.array([0.5, 1.0, 2.0])[k] * rng.normal(size=15)
    return {"tau": tau, "level": level, "k": k}, (y.astype(np.float32),)


def bridged(model: Callable) -> Callable:
    return lambda seed, data: saltus.bridges.numpyro.sample(model, *data, seed=seed, log_likelihood=False, **ASKED)


MODELS: dict[str, tuple[Callable, Callable, bool]] = {
    "clusters by saltus.mixed": (clusters_given, clusters_run, True),
    "spike and slab by bridges.numpyro": (spikes_given, bridged(spikes), True),
    "changepoint by bridges.numpyro": (changepoint_given, bridged(changepoint), True),
    "clusters, scale 0.7 for 1 (planted)": (clusters_given, functools.partial(clusters_run, model=too_narrow), False),
}


def ranks(given: Callable, run: Callable, replications: int) -> dict[str, np.ndarray]:
    """{name: (replications,) number of thinned draws below the true value}."""
    found: dict[str, list[float]] = {}
    for seed in range(replications):
        rng = np.random.default_rng([2026, seed])
        truth, data = given(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = run(seed, data).posterior
        for name, value in truth.items():
            draws = posterior[name].values.astype(float)
            draws = draws.reshape(-1, *draws.shape[2:])[:KEPT].reshape(KEPT, -1)
            for i, x in enumerate(np.ravel(value).astype(float)):
                below, ties = (draws[:, i] < x).sum(), (draws[:, i] == x).sum()
                found.setdefault(f"{name}[{i}]" if np.ndim(value) else name, []).append(below + rng.integers(0, ties + 1))
    return {name: np.array(each) for name, each in found.items()}


def line(name: str, replications: int) -> str:
    given, run, right = MODELS[name]
    began, before = time.process_time(), draw._cache_size()
    found = ranks(given, run, replications)
    p = {k: chisquare(np.bincount(r.astype(int) * BINS // (KEPT + 1), minlength=BINS)).pvalue for k, r in found.items()}
    worst = min(p, key=lambda k: p[k])
    uniform = len(p) * p[worst] > 0.01
    told = "uniform" if uniform else "NOT uniform"
    return (
        f"{name}: {told}{'' if uniform == right else ' (UNEXPECTED)'}; {replications} replications, "
        f"ranks of {len(p)} parameters among {KEPT} draws, "
        f"smallest p {p[worst]:.2g} ({worst}) of {', '.join(f'{x:.2f}' for x in p.values())}; "
        f"{draw._cache_size() - before} programs, {time.process_time() - began:.0f} CPU s"
    )


def main(wanted: list[str]) -> None:
    done = {row.split(":")[0] for row in OUTPUT.read_text().splitlines()} if OUTPUT.exists() else set()
    for name in MODELS:
        if name in done or (wanted and name not in wanted):
            continue
        told = line(name, REPLICATIONS)
        print(told, flush=True)
        with OUTPUT.open("a") as kept:
            kept.write(told + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
