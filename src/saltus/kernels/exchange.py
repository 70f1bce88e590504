"""Exchange: two sites swap their values, so that sums stay as they are."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import default_float, record
from ..errors import KernelError
from ..target import Point, Target
from .base import Kernel
from .declarations import LOCAL_MODEL
from .textbook import differences


@record
class Swap:
    """Two sites with values u < v swap them, in proportion to exp(score_i(v) + score_j(u)); where no two differ, nothing moves.

    Scores add up, so all pairs are summed by their values: with A(u, v) the sum of exp(score_i(v)) over the sites at u, the pair of
    values has weight A(u, v) A(v, u).
    """

    codes: jax.Array
    scores: jax.Array  # (d, k)

    def _ways(self) -> tuple[jax.Array, jax.Array]:
        """(log A (k, k), log A(u, v) A(v, u) for u < v, -inf elsewhere)."""
        k = self.scores.shape[1]
        top = jnp.full((k, k), -jnp.inf, self.scores.dtype).at[self.codes].max(self.scores)
        safe = jnp.where(jnp.isfinite(top), top, 0)
        mass = jnp.zeros((k, k), self.scores.dtype).at[self.codes].add(jnp.exp(self.scores - safe[self.codes]))
        A = safe + jnp.log(mass)
        return A, jnp.where(np.triu(np.ones((k, k), bool), 1), A + A.T, -jnp.inf)

    def log_normaliser(self) -> jax.Array:
        """log of the sum over all pairs of sites that differ."""
        return jax.nn.logsumexp(self._ways()[1])

    def sample(self, key: jax.Array) -> jax.Array:
        pair_key, first_key, second_key = random.split(key, 3)
        k = self.scores.shape[1]
        pair = random.categorical(pair_key, _weights(self._ways()[1].ravel()))
        u, v = pair // k, pair % k
        codes = self.codes.astype(jnp.int32)
        i = random.categorical(first_key, _weights(jnp.where(codes == u, self.scores[:, v], -jnp.inf)))
        j = random.categorical(second_key, _weights(jnp.where(codes == v, self.scores[:, u], -jnp.inf)))
        swapped = self.codes.at[i].set(self.codes[j]).at[j].set(self.codes[i])
        return jnp.where(jnp.isfinite(self.log_normaliser()), swapped, self.codes)

    def score(self, codes: jax.Array) -> jax.Array:
        """Of the move to `codes`."""
        each = jnp.take_along_axis(self.scores, codes[:, None].astype(jnp.int32), axis=1)[:, 0]
        return jnp.sum(jnp.where(codes != self.codes, each, 0))

    def log_prob(self, codes: jax.Array) -> jax.Array:
        every = self.log_normaliser()
        move = jnp.where(is_swap(self.codes, codes), self.score(codes) - every, -jnp.inf)
        stay = jnp.where(jnp.all(codes == self.codes), 0.0, -jnp.inf)
        return jnp.where(jnp.isfinite(every), move, stay).astype(default_float())


@record
class Exchange(Kernel):
    r"""Two sites that differ swap their values; how many sites have each value, and so every sum over sites, stays the same.

    $$ q(i, j) \propto \exp \tfrac12 [D_i(s_j) + D_j(s_i)] \text{ over pairs with } s_i \ne s_j, \qquad
       \log\alpha = f' - f + \tfrac12 [D'(s' \to s) - D(s \to s')] + L(s) - L(s') $$

    L is the logarithm of the sum over all such pairs, at s and at s'. Guided by the target's local model; d k numbers, not d².
    Kawasaki dynamics, exactly k of n, or, in a Cycle, the swap move of variable selection. Alone it samples the states that can be
    reached from where it starts: `initial=` must be given.
    """

    needs = LOCAL_MODEL
    simplicity = 38
    cites = ("kawasaki1966",)
    races = False

    def propose(self, target: Target, x: Point, noise: None = None) -> Swap:
        return Swap(x.codes, 0.5 * target.moves(x).table())

    def log_ratio(self, target: Target, x: Point, y: Point, noise: None = None, forward: Any = None) -> jax.Array:
        there, back = forward or self.propose(target, x), self.propose(target, y)
        gap = there.log_normaliser() - back.log_normaliser()
        moves = y.log_prob - x.log_prob + back.score(x.codes) - there.score(y.codes) + gap
        return jnp.where(jnp.all(x.codes == y.codes), 0, moves).astype(default_float())

    def log_definition(self, target: Target, x: Point, codes: jax.Array, noise: Any = None) -> jax.Array:
        """½ D on swaps, -inf elsewhere; where all sites have one value, staying."""
        score = jnp.where(is_swap(x.codes, codes), 0.5 * differences(target, x.codes, codes), -jnp.inf)
        stay = jnp.where(jnp.all(codes == x.codes), 0.0, -jnp.inf)
        return jnp.where(jnp.all(x.codes == x.codes[0]), stay, score)

    def check_start(self, target: Target, codes: Any) -> None:
        if codes is None:
            raise KernelError(
                "Exchange keeps how many sites have each value, so it must be told where to begin.",
                expected="initial=, a state that satisfies the constraint",
                found="random starts, each with a sum of its own",
                hint="saltus.Cycle([saltus.Exchange(), saltus.Gibbs()]) moves between sums as well",
            )
        alike = np.asarray(codes).min(axis=-1) == np.asarray(codes).max(axis=-1)
        if alike.any():
            raise KernelError(
                "Exchange has nothing to swap.",
                expected="`initial` with two values at least",
                found=f"one value at all sites of chain {int(np.argmax(alike))}",
            )

    def check_settings(self, target: Target) -> None:
        if not hasattr(target.space, "values"):
            raise KernelError(
                "Exchange swaps values that mean the same at both sites.",
                expected="a space whose sites all have the same values",
                found=str(target.space),
            )
        if target.space.num_sites < 2:
            raise KernelError("Exchange needs two sites.", expected="two sites or more", found=str(target.space))


def is_swap(a: jax.Array, b: jax.Array) -> jax.Array:
    """Whether two states differ by an exchange of two sites."""
    differs = a != b
    i = jnp.argmax(differs)
    j = len(a) - 1 - jnp.argmax(differs[::-1])
    return (jnp.sum(differs) == 2) & (a[i] == b[j]) & (a[j] == b[i])


def _weights(scores: jax.Array) -> jax.Array:
    """exp of the scores, the largest 1; 0 where all are -inf."""
    top = jnp.max(scores)
    return jnp.where(jnp.isfinite(top), jnp.exp(scores - top), 0)
