"""A function of your own: sampled without naming a sampler."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import saltus

taste = jnp.asarray(np.random.default_rng(0).normal(size=30))
target = saltus.Target(lambda s: jnp.sum(taste * s) + 0.7 * jnp.sum(s[1:] * s[:-1]), saltus.Binary(30))
print(target)  # what was found in the function

run = saltus.sample(target, seed=0, progress=False)
print(saltus.summary(run))

saltus.plot.marginals(run)
plt.show()
