"""Six samplers of somebody who has only read the documentation: nothing here imports more than the public names."""

from typing import Any

import jax
import jax.numpy as jnp

import saltus
from saltus.extending import (
    LOCAL_MODEL,
    VALUES,
    Decades,
    Factorised,
    Needs,
    as_positive,
    changed,
    describe,
    fill,
    metropolis,
    record,
)


@record
class Hopper(saltus.Kernel):
    """`step` alone: a random site takes another value; proposals are made in int32."""

    needs = VALUES

    def step(self, key: jax.Array, target: saltus.Target, x: Any) -> Any:
        where, what, accept = jax.random.split(key, 3)
        num_values = target.space.num_values
        site = jax.random.randint(where, (), 0, target.space.num_sites)
        codes = x.codes.astype(jnp.int32)
        codes = codes.at[site].set((codes[site] + jax.random.randint(what, (), 1, num_values)) % num_values)
        y = self.init(target, codes)
        return metropolis(accept, target.space, x, y, y.log_prob - x.log_prob)


@record
class Directed(saltus.Point):
    """A state with a direction, +1 or -1, for every site."""

    direction: Any = None


@record
class GuidedWalk(saltus.Kernel):
    """A momentum: a site goes on in its direction, and turns round where it is refused (Gustafson 1998)."""

    needs = VALUES

    def init(self, target: saltus.Target, codes: jax.Array, key: Any = None) -> Directed:
        x, d = saltus.Kernel.init(self, target, codes), target.space.num_sites
        signs = jnp.ones(d, bool) if key is None else jax.random.bernoulli(key, 0.5, (d,))
        return Directed(x.codes, x.log_prob, None, x.stamp, jnp.where(signs, 1, -1).astype(jnp.int8))

    def refresh(self, target: saltus.Target, state: Directed) -> Directed:
        return changed(self.init(target, state.codes), direction=state.direction)

    def step(self, key: jax.Array, target: saltus.Target, x: Directed) -> Any:
        where, accept = jax.random.split(key)
        site = jax.random.randint(where, (), 0, target.space.num_sites)
        wanted = x.codes[site].astype(jnp.int32) + x.direction[site]
        inside = (wanted >= 0) & (wanted < target.space.num_values)
        codes = x.codes.at[site].set(jnp.where(inside, wanted, x.codes[site]).astype(x.codes.dtype))
        turned = x.direction.at[site].multiply(-1)
        y = changed(self.init(target, codes), direction=turned)
        ratio = jnp.where(inside, y.log_prob - x.log_prob, -jnp.inf)
        y, info = metropolis(accept, target.space, x, y, ratio)
        return changed(y, direction=y.direction.at[site].multiply(-1)), info


@record
class Pair:
    """Two replicas: codes (2, d), the cold one first; log_prob of the cold one."""

    codes: jax.Array
    log_prob: jax.Array
    hot: jax.Array  # log_prob of the other


@record
class TwoReplicas(saltus.Kernel):
    """A cold replica and one that is drawn afresh at every step; they change places by Metropolis' rule."""

    needs = VALUES
    rejects = False

    def init(self, target: saltus.Target, codes: jax.Array, key: Any = None) -> Pair:
        cold = self.check(target, codes)
        hot = (cold if key is None else target.space.random(key)).astype(cold.dtype)
        return Pair(jnp.stack([cold, hot]), target.value(cold), target.value(hot))

    def refresh(self, target: saltus.Target, state: Pair) -> Pair:
        return changed(state, log_prob=target.value(state.codes[0]), hot=target.value(state.codes[1]))

    def draw(self, state: Pair) -> jax.Array:
        return state.codes[0]

    def step(self, key: jax.Array, target: saltus.Target, x: Pair) -> Any:
        draw_key, walk_key, swap_key = jax.random.split(key, 3)
        cold, info = Hopper().step(walk_key, target, saltus.Point(x.codes[0], x.log_prob))
        hot = target.space.random(draw_key).astype(x.codes.dtype)
        f = target.value(hot)
        swaps = jnp.log(jax.random.uniform(swap_key)) < f - cold.log_prob
        pair = jnp.stack([cold.codes, hot])
        y = Pair(jnp.where(swaps, pair[::-1], pair), jnp.where(swaps, f, cold.log_prob), jnp.where(swaps, cold.log_prob, f))
        both = (saltus.Point(x.codes[0], x.log_prob), saltus.Point(y.codes[0], y.log_prob))
        always = jnp.ones((), x.log_prob.dtype)  # two updates in one: there is no single proposal to be refused
        return y, describe(target.space, *both, jnp.ones((), bool), always, info.undefined)


@record
class Jumps(saltus.Kernel):
    r"""Weights: site i flips at rate min(1, π(s with i flipped) / π(s)), and a state counts 1 / Σ rates.

    The n-fold way (Bortz, Kalos & Lebowitz 1975), for two values.
    """

    needs = Needs(two_values=True)
    rejects = False

    def _rates(self, target: saltus.Target, x: Any) -> jax.Array:
        """log of the rate of every site."""
        sites = jnp.arange(target.space.num_sites, dtype=jnp.int32)
        rows = target.exact_rows(x, sites)[0]
        now = jnp.take_along_axis(rows, x.codes[:, None].astype(jnp.int32), axis=1)[:, 0]
        return jnp.minimum(rows.sum(axis=1) - 2 * now, 0)

    def init(self, target: saltus.Target, codes: jax.Array, key: Any = None) -> Any:
        x = saltus.Kernel.init(self, target, codes)
        return changed(x, local=self._rates(target, x))

    def log_weight(self, state: Any) -> jax.Array:
        return -jax.nn.logsumexp(state.local)

    def step(self, key: jax.Array, target: saltus.Target, x: Any) -> Any:
        site = jax.random.categorical(key, x.local)
        y = self.init(target, x.codes.at[site].set(1 - x.codes[site]))
        always = jnp.ones((), x.log_prob.dtype)
        return y, describe(target.space, x, y, jnp.ones((), bool), always, jnp.zeros((), jnp.int32))

    def keeps_parity(self, space: saltus.Space) -> bool:
        return True


@record
class Path:
    """An ordered list of `length` different sites, drawn one after the other in proportion to exp(score)."""

    codes: jax.Array
    scores: jax.Array
    length: jax.Array
    sites: Any = None  # of the path that was taken, in order; those beyond `length` do not count

    def draw(self, key: jax.Array) -> tuple[jax.Array, Any]:
        sites = jnp.argsort(-(self.scores + jax.random.gumbel(key, self.scores.shape)))
        taken = jnp.zeros(self.codes.shape, bool).at[sites].set(jnp.arange(len(sites)) < self.length)
        return jnp.where(taken, 1 - self.codes, self.codes), changed(self, sites=sites)

    def log_prob_of(self, sites: jax.Array) -> jax.Array:
        scores = self.scores[sites]
        left = jax.lax.associative_scan(jnp.logaddexp, scores, reverse=True)  # over those not yet used
        return jnp.sum(jnp.where(jnp.arange(len(sites)) < self.length, scores - left, 0))


@record
class ShortPaths(saltus.Kernel):
    """An auxiliary path: one to `most` sites flip in an order, guided by half the predicted changes (PAS, Sun et al. 2022)."""

    needs = Needs(local_model=True, two_values=True)

    most: Any = 3

    def __post_init__(self) -> None:
        fill(self, most=jnp.asarray(self.most, jnp.int32))

    def noise(self, key: jax.Array, target: saltus.Target) -> jax.Array:
        return jax.random.randint(key, (), 1, jnp.minimum(self.most, target.space.num_sites) + 1)

    def propose(self, target: saltus.Target, x: Any, noise: jax.Array) -> Path:
        return Path(x.codes, 0.5 * target.moves(x).departures(), noise)

    def log_ratio(self, target: saltus.Target, x: Any, y: Any, noise: jax.Array, forward: Any = None) -> jax.Array:
        steps = jnp.arange(len(forward.sites))
        reverse = jnp.where(steps < noise, forward.sites[jnp.clip(noise - 1 - steps, 0)], forward.sites)
        back = self.propose(target, y, noise).log_prob_of(reverse)
        return y.log_prob - x.log_prob + back - forward.log_prob_of(forward.sites)


@record
class Undeclared(saltus.Kernel):
    """Declares nothing: NCG in its shortest form, with a setting that nobody can guess."""

    width: Any

    def __post_init__(self) -> None:
        fill(self, width=as_positive(self.width, "width"))

    def propose(self, target: saltus.Target, x: Any, noise: Any = None) -> Factorised:
        return Factorised(0.5 * target.moves(x) - target.space.quadratic(x.codes, 1 / (2 * self.width)))

    def log_ratio(self, target: saltus.Target, x: Any, y: Any, noise: Any = None) -> jax.Array:
        forward, backward = self.propose(target, x), self.propose(target, y)
        return y.log_prob - x.log_prob + backward.log_prob(x.codes) - forward.log_prob(y.codes)


@record
class Declared(Undeclared):
    """The same, declared: tuned, raced and listed like a built-in sampler."""

    needs = LOCAL_MODEL
    tunes = {"width": Decades()}  # noqa: RUF012
    simplicity = 25

    @classmethod
    def first(cls, target: saltus.Target, states: Any = None) -> Any:
        return cls(target.space.unit)
