"""When did it change? A posterior over one ordinal site, against the exact answer."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import saltus

rng = np.random.default_rng(3)
counts = np.concatenate([rng.poisson(3.0, 40), rng.poisson(1.5, 60)])
total = np.concatenate([[0], np.cumsum(counts)])
t = np.arange(1, 100)
before, after = total[t], total[-1] - total[t]
# Gamma(1, 1) priors on both rates, integrated out.
from scipy.special import gammaln  # noqa: E402

table = gammaln(before + 1) - (before + 1) * np.log(t + 1) + gammaln(after + 1) - (after + 1) * np.log(100 - t + 1)
lookup = jnp.asarray(table - table.max())
target = saltus.Target(lambda s: lookup[(s[0] - 1).astype(jnp.int32)], saltus.Ordinal(1, t.astype(float)), differences="exact")
run = saltus.sample(target, saltus.Gibbs(), num_draws=2000, thin=1, num_warmup=50, seed=0, progress=False)

exact = np.exp(table - table.max())
figure, axes = plt.subplots(2, 1, figsize=(6, 4.4), sharex=True, layout="constrained")
axes[0].bar(np.arange(100), counts, color="grey")
axes[0].set_ylabel("events")
axes[1].hist(run.posterior["s"].values.ravel(), bins=np.arange(0.5, 100.5), density=True, label="drawn")
axes[1].plot(t, exact / exact.sum(), "k-", linewidth=1, label="exact")
axes[1].set(xlabel="change after", ylabel="probability")
axes[1].legend()
plt.show()
