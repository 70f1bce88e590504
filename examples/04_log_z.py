"""The normalising constant, with an honest error, beside Kaufman's exact answer."""

import matplotlib.pyplot as plt
import numpy as np

import saltus

couplings = [0.2, 0.4, 0.6]
found = [saltus.log_z(saltus.targets.ising((6, 6), coupling=k), num_steps=300, seed=0) for k in couplings]
exact = [saltus.targets.kaufman_log_z((6, 6), k) for k in couplings]
for k, estimate, truth in zip(couplings, found, exact, strict=True):
    print(k, estimate, "exact", round(truth, 3))

errors = np.array([e.error for e in found])
off = np.array([e.log_z for e in found]) - exact
plt.figure(figsize=(5, 3), layout="constrained")
plt.axhline(0, color="grey", linewidth=0.8)
plt.errorbar(couplings, off, 2 * errors, fmt="o")
plt.gca().set(xlabel="coupling", ylabel="estimate less exact log Z", title="two standard errors")
plt.show()
