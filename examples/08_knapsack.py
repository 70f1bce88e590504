"""A knapsack: exactly k of n, by swaps that keep the sum."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import saltus

rng = np.random.default_rng(1)
value, weight = jnp.asarray(rng.uniform(1, 3, 40)), jnp.asarray(rng.uniform(1, 3, 40))
target = saltus.Target(lambda s: 6 * value @ s - 5 * weight @ s, saltus.Binary(40))
start = np.repeat([1, 0], [15, 25])  # 15 items, and 15 they stay
run = saltus.sample(target, saltus.Exchange(), initial=start, num_draws=1000, num_warmup=200, thin=1, seed=0, progress=False)
assert (run.posterior["s"].sum("site") == 15).all()

share = run.posterior["s"].mean(("chain", "draw"))
plt.figure(figsize=(5, 3.2), layout="constrained")
plt.scatter(weight, value, c=share, cmap="viridis")
plt.colorbar(label="probability of being packed")
plt.gca().set(xlabel="weight", ylabel="value")
plt.show()
