"""Ordered values that vary together: momentum keeps its direction."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import saltus

d, rho = 8, 0.8
precision = np.linalg.inv((1 - rho) * np.eye(d) + rho) / 9.0
target = saltus.Target(lambda s: -0.5 * s @ jnp.asarray(precision) @ s, saltus.Ordinal(d, np.arange(-10.0, 11.0)))
start = np.zeros((1, d))
kernels = {
    "NCG": saltus.NCG(4.0),
    "PAVG": saltus.PAVG(4.0, saltus.Dense(-precision)),
    "PAVG, momentum 0.9, over-relaxed": saltus.PAVG(4.0, saltus.Dense(-precision), momentum=0.9, over_relaxed=True),
}
figure, axes = plt.subplots(3, 1, figsize=(6.4, 5), sharex=True, layout="constrained")
for ax, (name, kernel) in zip(axes, kernels.items(), strict=True):
    run = saltus.sample(target, kernel, num_draws=600, num_warmup=0, thin=1, num_chains=1, initial=start, seed=0, progress=False)
    total = run.posterior["s"].sum("site").values[0]
    ax.plot(total, linewidth=0.8)
    ax.set(title=name, ylabel="Σ s", ylim=(-80, 80))
axes[-1].set_xlabel("step")
plt.show()
