"""Which columns matter? Inclusion probabilities of 60 columns, three of which made the response."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import saltus

rng = np.random.default_rng(4)
names = [f"x{i}" for i in range(60)]
columns = rng.normal(size=(150, 60))
columns[:, 7] = columns[:, 3] + 0.3 * rng.normal(size=150)  # x7 is nearly a copy of x3
X = pd.DataFrame(columns, columns=names)
truth = {"x3": 1.0, "x20": -0.6, "x41": 0.4}
y = sum(weight * X[name] for name, weight in truth.items()) + rng.normal(size=150)

found = saltus.variable_selection(X, y, expected_size=5, seed=0, progress=False)
print(found.summary())

table = found.to_frame().sort_values("inclusion", ascending=False).head(12)[::-1]
made = [name in truth for name in table.index]
figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True, layout="constrained")
axes[0].barh(
    table.index, table["inclusion"], xerr=2 * table["inclusion_error"], color=["#0072B2" if m else "#B4B4B4" for m in made]
)
axes[0].set(xlabel="probability of being in the model", xlim=(0, 1.05))
middle = (table["lower"] + table["upper"]) / 2
axes[1].errorbar(middle, table.index, xerr=table["upper"] - middle, fmt="none", color="grey", label="95 % interval")
axes[1].plot(table["mean"], table.index, "o", color="#0072B2", label="mean over all models")
axes[1].plot([truth.get(name, 0.0) for name in table.index], table.index, "x", color="#D55E00", label="truth")
axes[1].set_xlabel("coefficient")
axes[1].legend()
plt.show()
