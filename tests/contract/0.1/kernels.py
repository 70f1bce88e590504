"""Kernels as people wrote them for 0.1: one with its own `init` and `step`, one with noise. Never to be edited."""

import jax
import jax.numpy as jnp

import saltus
from saltus.extending import Factorised, as_positive, fill, metropolis, record, static


@record
class OneSite(saltus.Kernel):
    """A random site takes a random value, `tries` times a step; log α = f' - f."""

    uses_local_model = False

    tries: int = static(default=2)

    def init(self, target, codes):
        codes = self.check(target, codes)
        return saltus.Point(codes, target.value(codes))

    def step(self, key, target, x):
        for key_of_try in saltus.random.split(key, self.tries):
            site_key, value_key, accept_key = saltus.random.split(key_of_try, 3)
            site = jax.random.randint(site_key, (), 0, target.space.num_sites)
            value = jax.random.randint(value_key, (), 0, target.space.num_values)
            y = self.init(target, x.codes.at[site].set(value.astype(x.codes.dtype)))
            x, info = metropolis(accept_key, target.space, x, y, y.log_prob - x.log_prob)
        return x, info

    def evaluations(self, target):
        return self.tries


@record
class HalfAVG(saltus.Kernel):
    r"""u ~ N(0, 2/ε); q(s' | s, u) ∝ prod_i exp(½ D_i(s'_i) + u_i (s'_i - s_i) - (s'_i - s_i)² / ε).

    log α = f' - f - ½ D(s -> s') + Φ_s(½D, u) - Φ_s(½D', u), both centred at s.
    """

    step_size: jax.Array

    def __post_init__(self):
        fill(self, step_size=as_positive(self.step_size, "step_size"))

    def noise(self, key, target):
        return jnp.sqrt(2 / self.step_size) * saltus.random.normal(key, (target.space.size,))

    def _pull(self, target, x, u):
        return target.space.linear(x.codes, u) - target.space.quadratic(x.codes, 1 / self.step_size)

    def propose(self, target, x, noise):
        return Factorised(target.moves(x) * 0.5 + self._pull(target, x, noise))

    def log_ratio(self, target, x, y, noise):
        reverse = Factorised(target.moves(y).recentre(x.codes) * 0.5 + self._pull(target, x, noise))
        gap = self.propose(target, x, noise).log_normaliser_minus(reverse)
        return y.log_prob - x.log_prob - 0.5 * target.moves(x).at(y.codes) + gap

    def condition(self, target, z, x):
        return z - 2 / self.step_size * target.space.ravel(target.space.embed(x.codes))

    def log_definition(self, target, x, codes, noise):
        s, s_new = target.space.embed(x.codes), target.space.embed(codes)
        half = 0.5 * jax.grad(target.log_prob_of)(s)
        return jnp.sum((half + noise) * (s_new - s) - (s_new - s) ** 2 / self.step_size)
