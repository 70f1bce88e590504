"""Low temperature: a jump process never refuses, and weighs its draws instead."""

import matplotlib.pyplot as plt
import numpy as np

import saltus

target = saltus.targets.ising((5, 5), coupling=0.45)
truth = saltus.targets.ising((3, 3), coupling=0.45)
settings = dict(num_draws=2001, num_warmup=100, thin=1, num_chains=2, seed=0, progress=False)
jumps = saltus.sample(target, saltus.JumpProcess(), **settings)
metropolis = saltus.sample(target, saltus.UniformMH(1), **settings)
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, run in {"JumpProcess, resampled": jumps, "UniformMH": metropolis}.items():
    energies = run.sample_stats["lp"].values.ravel()
    ax.hist(energies, bins=np.linspace(-10, 25, 36), histtype="step", density=True, label=name)
ax.set(xlabel="log_prob", ylabel="density")
ax.legend(loc="upper left")
plt.show()
