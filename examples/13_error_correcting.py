"""Decoding: a message with parity checks, through a noisy channel."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import saltus

rng = np.random.default_rng(0)
checks = np.array([rng.choice(24, 4, replace=False) for _ in range(12)])
received = 0.5 + 0.9 * rng.normal(size=24) + 0.5  # all-ones word plus noise, in spins
target = saltus.Target(
    lambda s: jnp.asarray(received) @ s + 2.0 * jnp.sum(jnp.prod(s[jnp.asarray(checks)], axis=1)), saltus.Spin(24)
)
print(target)  # the graph of the checks is found
run = saltus.sample(target, saltus.Gibbs("coloured"), num_draws=1000, thin=1, num_warmup=200, seed=0, progress=False)
bits = (run.posterior["s"] > 0).mean(("chain", "draw"))
plt.figure(figsize=(6.4, 3), layout="constrained")
plt.bar(np.arange(24) - 0.2, received > 0, width=0.4, label="received, hard decision")
plt.bar(np.arange(24) + 0.2, bits, width=0.4, label="posterior probability of +1")
plt.gca().set(xlabel="bit", ylim=(0, 1.25))
plt.legend(ncols=2)
plt.show()
