"""A newcomer's walk: a NumPyro model with a discrete site, sampled unchanged. From the page NumPyro, PyMC, BlackJAX."""

import time

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import saltus

began = time.perf_counter()
counts = np.array([4, 5, 4, 1, 0, 4, 3, 4, 0, 6, 3, 3, 1, 1, 0, 2, 1, 0, 1, 1, 0, 1, 0, 0, 2, 1, 0, 0, 1, 0])


def step(what):
    print(f"{time.perf_counter() - began:6.1f} s  {what}", flush=True)


def disasters(counts):
    change = numpyro.sample("change", dist.DiscreteUniform(1, 28))
    early = numpyro.sample("early", dist.Exponential(0.5))
    late = numpyro.sample("late", dist.Exponential(0.5))
    rate = jnp.where(jnp.arange(30) < change, early, late)
    numpyro.sample("counts", dist.Poisson(rate), obs=counts)


run = saltus.bridges.numpyro.sample(disasters, counts, seed=0, num_draws=300, num_warmup=300, progress=False)
step(f"draws: {run.attrs['verdict']}")
print(run.posterior.dataset[["early", "late", "change"]].mean().to_pandas())
assert float(run.posterior["early"].mean()) > float(run.posterior["late"].mean())
print(saltus.summary(run))
step("read")
