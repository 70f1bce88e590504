import jax
import jax.numpy as jnp
import saltus
from saltus.extending import Factorised, as_positive, fill, record


@record  # a frozen dataclass that is also a pytree: numbers are leaves
class Tempered(saltus.Kernel):
    r"""q(s' | s) ∝ prod_i exp(tanh(D_i(s'_i) / 2) - (s'_i - s_i)^2 / 2ε): no site is pushed harder than e."""

    step_size: jax.Array

    def __post_init__(self):  # runs when a person builds it, never inside jit
        fill(self, step_size=as_positive(self.step_size, "step_size"))

    def _scores(self, target, x):  # Moves: per-site scores over values, 0 at the current one
        moves = target.moves(x)
        return type(moves)(moves.codes, jnp.tanh(moves.scores / 2))

    def propose(self, target, x, noise=None):
        return Factorised(self._scores(target, x) - target.space.quadratic(x.codes, 1 / (2 * self.step_size)))

    def log_ratio(self, target, x, y, noise=None):
        back = self._scores(target, y).at(x.codes) - self._scores(target, x).at(y.codes)
        gap = self.propose(target, x).log_normaliser_minus(self.propose(target, y))
        return y.log_prob - x.log_prob + back + gap
