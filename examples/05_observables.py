"""Observables with their Monte-Carlo errors: energy and magnetisation against temperature."""

import matplotlib.pyplot as plt
import numpy as np

import saltus

couplings = np.linspace(0.1, 0.7, 7)
rows = []
for coupling in couplings:
    target = saltus.targets.ising((12, 12), coupling=float(coupling))
    run = saltus.sample(target, saltus.SwendsenWang(), num_draws=300, num_warmup=50, thin=1, num_chains=2, seed=0, progress=False)
    rows.append(saltus.observables(run, {"|m|": lambda s: abs(s.mean())})["|m|"])
plt.figure(figsize=(5, 3.2), layout="constrained")
plt.errorbar(couplings, [r.mean for r in rows], [2 * r.error for r in rows], fmt="o-")
plt.gca().set(xlabel="coupling", ylabel="|magnetisation|", title="12 x 12 Ising lattice")
plt.show()
