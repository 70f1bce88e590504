"""An Ising lattice at its critical point: whole clusters flip."""

import matplotlib.pyplot as plt
import numpy as np

import saltus

critical = 0.5 * np.log(1 + np.sqrt(2))
target = saltus.targets.ising((32, 32), coupling=critical)
figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
for ax, kernel in zip(axes, (saltus.Gibbs("coloured"), saltus.SwendsenWang()), strict=True):
    run = saltus.sample(target, kernel, num_draws=300, num_warmup=100, thin=1, num_chains=1, seed=0, progress=False)
    ax.plot(run.posterior["s"].mean("site").values[0], linewidth=0.8)
    ax.set(title=type(kernel).__name__, xlabel="step", ylabel="magnetisation", ylim=(-1, 1))
plt.show()
