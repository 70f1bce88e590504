"""A sampler of your own in twenty lines, certified and compared with ours."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt

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


print(saltus.testing.check_kernel(Tanh(0.5), saltus.Binary(3), battery=False))
target = saltus.targets.ising((6, 6), coupling=0.3)
for kernel in (Tanh(2.0), saltus.NCG(2.0)):
    run = saltus.sample(target, kernel, num_draws=1000, thin=1, seed=0, progress=False)
    x = run.sample_stats["lp"].values[0]
    x = x - x.mean()
    rho = [float((x[: len(x) - k] * x[k:]).mean() / (x * x).mean()) for k in range(60)]
    plt.plot(rho, label=type(kernel).__name__)
plt.gca().set(xlabel="lag", ylabel="autocorrelation of the energy")
plt.legend()
plt.show()
