"""A sampler of your own in twenty lines, certified, and beside NCG."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import saltus
from saltus.extending import Factorised, as_positive, fill, record


@record
class Tanh(saltus.Kernel):
    """q(s' | s) ∝ prod_i exp(tanh(D_i(s'_i) / 2) - (s'_i - s_i)² / 2ε)."""

    step_size: jax.Array

    def __post_init__(self):
        fill(self, step_size=as_positive(self.step_size, "step_size"))

    def propose(self, target, x, noise=None):
        return Factorised(self.scores(target, x) - target.space.quadratic(x.codes, 1 / (2 * self.step_size)))

    def scores(self, target, x):
        return target.moves(x).map(lambda d: jnp.tanh(d / 2))

    def log_ratio(self, target, x, y, noise=None):
        back = self.scores(target, y).at(x.codes) - self.scores(target, x).at(y.codes)
        return y.log_prob - x.log_prob + back + self.propose(target, x).log_normaliser_minus(self.propose(target, y))


print(saltus.testing.check_kernel(Tanh(0.5), saltus.Binary(2), num_chains=4096, battery=False))
target = saltus.targets.ising((2, 3), coupling=0.5)  # 64 states
p = saltus.testing.stationary(target)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for kernel in (Tanh(2.0), saltus.NCG(2.0)):
    matrix = saltus.testing.transition_matrix(kernel, target)
    print(kernel, "leaves its target invariant to", abs(p @ matrix - p).max())
    law, distances = np.eye(64)[21], []  # from a chequered state, the least likely
    for _ in range(30):
        distances.append(abs(law - p).sum() / 2)
        law = law @ matrix
    axes[1].semilogy(distances, label=type(kernel).__name__)
    if isinstance(kernel, Tanh):
        axes[0].imshow(matrix**0.25, cmap="Blues")
axes[0].set(title="transition matrix of Tanh", xlabel="to", ylabel="from")
axes[1].set(title="distance from the target", xlabel="step", ylabel="total variation")
axes[1].legend()
plt.show()
