"""A newcomer's walk: the posterior of a model of one's own, from README.md alone. `make release-check` runs it from the wheel."""

import subprocess
import sys
import time
from pathlib import Path

began = time.perf_counter()


def step(what):
    print(f"{time.perf_counter() - began:6.1f} s  {what}", flush=True)


# Twenty patients, five possible infections; which ones explain the fever? A prior, a likelihood, a sum of two logarithms.
Path("model.py").write_text(
    """
import jax.numpy as jnp
import numpy as np
import saltus

rng = np.random.default_rng(0)
exposed = jnp.asarray(rng.uniform(size=(20, 5)) < 0.4, jnp.float32)
fever = jnp.asarray(exposed[:, 1] + exposed[:, 3] > 0, jnp.float32)


def log_prob(s):
    chance = 0.05 + 0.9 * (1 - jnp.prod(1 - 0.9 * exposed * s, axis=1))
    return jnp.sum(fever * jnp.log(chance) + (1 - fever) * jnp.log(1 - chance)) - 1.5 * jnp.sum(s)


target = saltus.Target(log_prob, saltus.Binary(5), names=["a", "b", "c", "d", "e"])
"""
)
sys.path.insert(0, ".")
from model import target  # noqa: E402

import saltus  # noqa: E402

step("imported, target built")
run = saltus.sample(target, seed=0, progress=False)
step("draws: " + run.attrs["verdict"])
print(saltus.summary(run))
mean = run.posterior["s"].mean(("chain", "draw"))
exact = saltus.testing.exact_moments(target).means
assert abs(mean.values - exact).max() < 0.05, (mean.values, exact)
step(f"compared with all 32 states: {abs(mean.values - exact).max():.3f} apart")
print(saltus.observables(run, {"how many": lambda s: s.sum()}))
saltus.save(run, "run.nc")
saltus.report(run, "report.html")
assert Path("report.html").stat().st_size > 10_000
step("saved, report written")
import matplotlib  # noqa: E402

matplotlib.use("Agg")
saltus.plot.marginals(run).figure.savefig("marginals.png")
step("picture drawn")
shell = subprocess.run([str(Path(sys.executable).parent / "saltus"), "summary", "run.nc"], capture_output=True, text=True)
assert shell.returncode == 0, shell.stderr
step("read again from a shell")
