"""Samplers of a third party, in a file of their own: what each declares is all that saltus knows of it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import saltus
from saltus.extending import (
    VALUES,
    Decades,
    Factorised,
    Info,
    Radii,
    as_positive,
    as_radius,
    describe,
    fill,
    metropolis,
    record,
    static,
)


@record
class Clipped(saltus.Kernel):
    r"""q(s' | s) ∝ prod_i exp(tanh(D_i(s'_i) / 2) - (s'_i - s_i)^2 / 2ε): no site is pushed harder than e."""

    tunes = {"step_size": Decades()}  # noqa: RUF012
    simplicity = 25

    step_size: Any

    def __post_init__(self):
        fill(self, step_size=as_positive(self.step_size, "step_size"))

    @classmethod
    def first(cls, target, states=None):
        return cls(target.space.unit)

    def _scores(self, target, x):
        moves = target.moves(x)
        return type(moves)(moves.codes, jnp.tanh(moves.scores / 2))

    def propose(self, target, x, noise=None):
        return Factorised(self._scores(target, x) - target.space.quadratic(x.codes, 1 / (2 * self.step_size)))

    def log_ratio(self, target, x, y, noise=None):
        back = self._scores(target, y).at(x.codes) - self._scores(target, x).at(y.codes)
        return y.log_prob - x.log_prob + back + self.propose(target, x).log_normaliser_minus(self.propose(target, y))


@record
class Place(saltus.Point):
    """A state that knows which site is next."""

    site: Any = None


@record
class InTurn(saltus.Kernel):
    """Metropolis, `tries` times a step: the sites take turns to take a random value; the first in turn is drawn from init's key."""

    name = "taking-turns"
    needs = VALUES
    tunes = {"tries": Radii()}  # noqa: RUF012
    simplicity = 26

    tries: Any = 1

    def __post_init__(self):
        fill(self, tries=as_radius(self.tries))

    def largest_radius(self, space):
        return 4

    def init(self, target, codes, key=None):
        codes = self.check(target, codes)
        site = jnp.zeros((), jnp.int32) if key is None else jax.random.randint(key, (), 0, target.space.num_sites, jnp.int32)
        return Place(codes, target.value(codes), None, target.stamp, site)

    def refresh(self, target, state):
        return Place(state.codes, target.value(state.codes), None, target.stamp, state.site)

    def step(self, key, target, x):
        def once(t, x):
            value_key, accept_key = saltus.random.split(saltus.random.fold_in(key, t))
            value = jax.random.randint(value_key, (), 0, target.space.num_values, jnp.int32)
            codes = x.codes.at[x.site].set(value.astype(x.codes.dtype))
            y = Place(codes, target.value(codes), None, x.stamp, x.site)
            moved, _ = metropolis(accept_key, target.space, x, y, y.log_prob - x.log_prob)
            return Place(moved.codes, moved.log_prob, None, x.stamp, (x.site + 1) % target.space.num_sites)

        y = jax.lax.fori_loop(0, self.tries, once, x)
        always = jnp.ones((), jnp.float32)
        return y, describe(target.space, x, y, jnp.ones((), bool), always, jnp.zeros((), jnp.int32))


@record
class Undeclared(saltus.Kernel):
    """Has an argument, and does not say what to begin with."""

    uses_local_model = False

    tries: int = static()


@record
class Widening(saltus.Kernel):
    """A step alone, that proposes int32 codes."""

    needs = VALUES

    def step(self, key, target, x):
        y = saltus.Point(x.codes.astype(jnp.int32), x.log_prob, None, x.stamp)
        one, no = jnp.ones((), jnp.float32), jnp.zeros((), bool)
        return y, Info(no, one, no, one, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


@record
class Telling(Widening):
    """Tells something else than an Info."""

    def step(self, key, target, x):
        return x, {"accepted": True}


@record
class Holding(InTurn):
    """Holds a function, which is not data."""

    name = "holding"

    function: Any = static(default=len)


class Unmarked(saltus.Kernel):
    """Not a record."""

    def step(self, key, target, x):
        return x, None


as_it_is = Clipped(0.7)
