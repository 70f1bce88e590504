"""The models of a regression as a `Target` with exact differences, for every kernel of saltus; the chain's step as one of them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .. import random
from .._record import default_float, record
from ..errors import KernelError
from ..kernels import Kernel
from ..kernels.declarations import VALUES
from ..kernels.metropolis import Info, describe
from ..local import ClosedForm
from ..spaces import Binary
from ..target import Point, Target
from .active import Fit, fit, flips
from .chain import UNIFORMS, Problem, flip_changes, law, log_posterior, step

LEAST = -1e4  # log odds of what is impossible, for kernels that reckon with them


def model_target(problem: Problem, most: int, names: Any = None) -> Target:
    """p(γ | y) on {0, 1}^p, f relative to p(y | no column). most: columns of a model; those with more are impossible."""
    log_prob = ModelLogProb(most)
    differences = ClosedForm(log_prob.odds, exact=True, both=log_prob.both, table=lambda problem, odds: odds)
    p = problem.log_odds.shape[0]
    start = jnp.zeros(p, jnp.int8)
    return Target(log_prob, Binary(p), problem, differences=differences, structure=None, names=names, initial=start, verify=False)


class ModelLogProb:
    """log p(γ | y) from nothing, one model at a time; and the log odds of every column given the rest."""

    def __init__(self, most: int):
        self.most = most

    def __call__(self, problem: Problem, s: jax.Array) -> jax.Array:
        return self._seen(problem, s > 0.5)[0]

    def both(self, problem: Problem, codes: jax.Array) -> tuple[jax.Array, jax.Array]:
        f, x = self._seen(problem, codes > 0)
        seen = flips(problem.columns, x)
        change = flip_changes(problem, x, seen)
        change = jnp.where(seen.possible & (seen.inside | (x.size < self.most)), change, -jnp.inf)
        odds = jnp.maximum(jnp.where(seen.inside, -change, change), LEAST)
        return f, jnp.where(f > -jnp.inf, odds, 0)

    def odds(self, problem: Problem, s: jax.Array, codes: jax.Array) -> jax.Array:
        return self.both(problem, codes)[1]

    def fit(self, problem: Problem, inside: jax.Array) -> Fit:
        """Of the columns where `inside`, the first `most` of them."""
        return fit(problem.columns, jnp.nonzero(inside, size=self.most, fill_value=len(inside))[0].astype(jnp.int32))

    def _seen(self, problem: Problem, inside: jax.Array) -> tuple[jax.Array, Fit]:
        x = self.fit(problem, inside)
        possible = (jnp.sum(inside) <= self.most) & jnp.isfinite(x.logdet)
        return jnp.where(possible, log_posterior(problem, x), -jnp.inf), x


@record
class Walked(Point):
    """A model with its fit, and the sum of the rates at which it is left."""

    fit: Any = None
    total: Any = None


@record
class ModelWalk(Kernel):
    """The step of `variable_selection`: one column flipped at the rates of weighted TGS, or replaced by a heat bath.

    On targets of `model_target` only. Runs of `variable_selection` make the same steps in a loop of their own, which adds up
    all p inclusion probabilities of every model it visits.
    """

    name = ""
    needs = VALUES
    rejects = False
    races = False
    cites = ("zanella2019",)

    def init(self, target: Target, codes: jax.Array, key: Any = None) -> Walked:
        codes, model = self.check(target, codes), target.log_prob
        return self._at(target, model.fit(target.params, codes > 0))  # type: ignore[attr-defined]

    def refresh(self, target: Target, state: Walked) -> Walked:
        return self._at(target, fit(target.params.columns, state.fit.slots))

    def _at(self, target: Target, x: Fit) -> Walked:
        now = law(target.params, x)
        f = now.log_prob.astype(default_float())
        return Walked(x.inside.astype(target.space.code_dtype), f, None, target.stamp, x, now.total)

    def step(self, key: jax.Array, target: Target, x: Walked) -> tuple[Walked, Info]:
        problem = target.params
        u = random.unit(key, (UNIFORMS,), x.fit.left.dtype)
        y = self._at(target, step(u, problem, x.fit, law(problem, x.fit)))
        return y, describe(target.space, x, y, jnp.asarray(True), jnp.ones((), default_float()), jnp.zeros((), jnp.int32))

    def log_weight(self, state: Walked) -> jax.Array:
        return -jnp.log(state.total).astype(default_float())

    def check_settings(self, target: Target) -> None:
        if not isinstance(target.params, Problem):
            raise KernelError(
                "ModelWalk steps through the models of a regression.", expected="a target of `model_target`", found=repr(target)
            )
