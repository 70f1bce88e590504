"""The normalising constant, with its error, beside Kaufman's exact answer."""

import matplotlib.pyplot as plt
import numpy as np

import saltus

couplings = [0.2, 0.3, 0.4]
found, exact = [], []
for k in couplings:
    target = saltus.targets.ising((8, 8), coupling=k)
    found.append(saltus.training.ais(target, saltus.Gibbs("coloured"), num_temperatures=200, num_chains=200, seed=0))
    exact.append(saltus.targets.kaufman_log_z((8, 8), k))
    print(k, found[-1], "exact", round(exact[-1], 3))

off = np.array([e.log_z for e in found]) - exact
plt.figure(figsize=(5, 3), layout="constrained")
plt.axhline(0, color="grey", linewidth=0.8)
plt.errorbar(couplings, off, [2 * e.standard_error for e in found], fmt="o", capsize=3)
plt.gca().set(xlabel="coupling", ylabel="estimate less exact log Z", title="annealed importance sampling, ± two standard errors")
plt.show()
