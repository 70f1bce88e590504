"""A newcomer's walk: a kernel of one's own, certified; a planted bug is caught. From the pages Exactness and Contributing."""

import time

import jax
import jax.numpy as jnp

import saltus
from saltus.extending import LOCAL_MODEL, Decades, Factorised, as_positive, fill, record

began = time.perf_counter()


def step(what):
    print(f"{time.perf_counter() - began:6.1f} s  {what}", flush=True)


@record
class Barker(saltus.Kernel):
    r"""q(s' | s) ∝ prod_i exp(-log(1 + exp(-D_i(s'_i))) - (s'_i - s_i)² / 2ε): Barker's balancing function on every site."""

    needs = LOCAL_MODEL
    tunes = {"step_size": Decades()}  # noqa: RUF012

    step_size: jax.Array

    def __post_init__(self):
        fill(self, step_size=as_positive(self.step_size, "step_size"))

    @classmethod
    def first(cls, target, states=None):
        return cls(target.space.unit)

    def scores(self, target, x):
        return target.moves(x).map(lambda d: jax.nn.log_sigmoid(d) + jnp.log(2.0))  # 0 at the current value, as scores must be

    def propose(self, target, x, noise=None):
        return Factorised(self.scores(target, x) - target.space.quadratic(x.codes, 1 / (2 * self.step_size)))

    def log_ratio(self, target, x, y, noise=None):
        back = self.scores(target, y).at(x.codes) - self.scores(target, x).at(y.codes)
        return y.log_prob - x.log_prob + back + self.propose(target, x).log_normaliser_minus(self.propose(target, y))


print(saltus.testing.check_kernel(Barker(0.5), saltus.Binary(3), battery=False))
step("certified on two values")


@record
class Forgetful(Barker):
    def log_ratio(self, target, x, y, noise=None):
        return y.log_prob - x.log_prob  # the reverse proposal is left out


try:
    saltus.testing.check_kernel(Forgetful(0.5), saltus.Binary(3), battery=False)
except saltus.CheckError as error:
    step("the planted bug is caught" + (", by invariance" if "invariance" in str(error) else f": {error}"))
else:
    raise AssertionError("the planted bug was not caught")
run = saltus.sample(saltus.targets.ising((4, 4), coupling=0.2), Barker, num_draws=500, seed=0, progress=False)
step(f"tuned and run: {saltus.kernel_of(run)}, {run.attrs['verdict']}")
