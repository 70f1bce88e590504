"""A gradient that is zero: found out, and replaced by true differences."""

import jax.numpy as jnp
import matplotlib.pyplot as plt

import saltus

target = saltus.Target(lambda s: -2.0 * jnp.abs(jnp.sum(s.astype(jnp.int32)) - 5.0), saltus.Binary(20))
print(saltus.check(target))
counts = {}
for name, seen in {"gradient": target, "exact differences": target.replace(differences="exact")}.items():
    run = saltus.sample(seen, saltus.NCG(1.0), num_draws=1000, thin=1, num_warmup=100, num_chains=2, seed=0, progress=False)
    counts[name] = float(run.sample_stats["acceptance_rate"].mean())
plt.figure(figsize=(4.5, 3), layout="constrained")
plt.bar(list(counts), list(counts.values()))
plt.ylabel("acceptance of NCG(1.0)")
plt.show()
