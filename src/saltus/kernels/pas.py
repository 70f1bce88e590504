"""PAS: several sites a step, along a path that the local model chooses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import Number, as_radius, changed, default_float, fill, is_concrete, record
from ..errors import KernelError
from ..spaces import Space
from ..target import Point, Target
from .base import Kernel
from .declarations import LOCAL_MODEL, Radii


@record
class Path:
    """An ordered list of `length` different sites, each with a new value: the next one in proportion to exp(score)."""

    codes: jax.Array
    scores: jax.Array  # (d, k) of every value of every site, -inf at the current one
    length: jax.Array
    order: Any = None  # (d,) sites as they were taken; those beyond `length` did not move
    values: Any = None  # (d,) the value that each site would take

    def draw(self, key: jax.Array) -> tuple[jax.Array, Path]:
        """Gumbel noise on every move: the best of a site is a draw of its value, and sites in order are a draw of the list."""
        noisy = self.scores - jnp.log(-jnp.log(random.unit(key, self.scores.shape, self.scores.dtype)))
        order = jnp.argsort(-jnp.max(noisy, axis=1)).astype(jnp.int32)
        path = changed(self, order=order, values=jnp.argmax(noisy, axis=1).astype(self.codes.dtype))
        return path.end(), path

    def _taken(self) -> jax.Array:
        return jnp.arange(len(self.order), dtype=jnp.int32) < self.length

    def end(self) -> jax.Array:
        """Codes at the end of the path."""
        moves = jnp.zeros(self.codes.shape, bool).at[self.order].set(self._taken())
        return jnp.where(moves, self.values, self.codes)

    def reversed(self, start: Path) -> Path:
        """The way back: the same sites in the opposite order to their old values. start: the proposal where it begins."""
        steps = jnp.arange(len(self.order), dtype=jnp.int32)
        order = self.order[jnp.where(steps < self.length, self.length - 1 - steps, steps)]
        return changed(start, order=order, values=self.codes)

    def log_prob(self) -> jax.Array:
        """log of the probability of this list; of what is left at each step nothing is subtracted, it is added up from the end."""
        chosen = jnp.take_along_axis(self.scores, self.values[:, None].astype(jnp.int32), axis=1)[:, 0][self.order]
        left = jax.lax.cumlogsumexp(jax.nn.logsumexp(self.scores, axis=1)[self.order], reverse=True)
        return jnp.sum(jnp.where(self._taken(), chosen - left, 0))


@record
class PAS(Kernel):
    r"""Path-auxiliary sampler (Sun et al. 2022): an ordered path of R sites, guided by the local model; one evaluation a step.

    $$ P_s\big((i_1, v_1), \dots, (i_R, v_R)\big) = \prod_r \frac{\exp \tfrac12 D_{i_r}(v_r)}
       {\sum_{j \notin \{i_1, \dots, i_{r-1}\}} \sum_{v \ne s_j} \exp \tfrac12 D_j(v)} $$
    $$ \log\alpha = f' - f + \log P_{s'}\big((i_R, s_{i_R}), \dots, (i_1, s_{i_1})\big)
       - \log P_s\big((i_1, v_1), \dots, (i_R, v_R)\big) $$

    radius: the mean of R, a whole number up to the number of sites d. R is drawn anew at each step, whatever the state, uniformly
    from 1, ..., min(2 radius - 1, d): a fixed even R would keep the parity of the number of ones. With radius 1 it is GWG.
    """

    needs = LOCAL_MODEL
    tunes = {"radius": Radii()}  # noqa: RUF012
    simplicity = 35
    cites = ("sun2022",)
    races = False

    radius: Number = 3

    def __post_init__(self) -> None:
        fill(self, radius=as_radius(self.radius))

    @classmethod
    def first(cls, target: Target, states: Any = None) -> PAS:
        return cls(min(3, target.space.num_sites))

    def noise(self, key: jax.Array, target: Target) -> jax.Array:
        """R, the length of the path."""
        most = jnp.minimum(2 * self.radius - 1, target.space.num_sites)
        return jax.random.randint(key, (), 1, most + 1, jnp.int32)

    def propose(self, target: Target, x: Point, noise: jax.Array) -> Path:
        scores = 0.5 * target.moves(x).table()
        here = x.codes[:, None] == jnp.arange(scores.shape[1], dtype=x.codes.dtype)
        return Path(x.codes, jnp.where(here, -jnp.inf, scores), noise)

    def log_ratio(self, target: Target, x: Point, y: Point, noise: jax.Array, forward: Any = None) -> jax.Array:
        there = forward.log_prob()
        back = forward.reversed(self.propose(target, y, noise)).log_prob()
        # Where fewer sites can move than the path is long, it was completed by moves that are never proposed: refused.
        return jnp.where(there == -jnp.inf, -jnp.inf, y.log_prob - x.log_prob + back - there).astype(default_float())

    def largest_radius(self, space: Space) -> int:
        """All sites."""
        return space.num_sites

    def keeps_parity(self, space: Space) -> bool:
        return space.num_values == 2 and is_concrete(self.radius) and int(np.asarray(self.radius)) == 1

    def check_settings(self, target: Target) -> None:
        self.single("radius")
        d = target.space.num_sites
        if is_concrete(self.radius) and int(np.asarray(self.radius)) > d:
            raise KernelError(
                f"`radius` is larger than {target.space} allows.",
                expected=f"at most {d}, the number of sites",
                found=str(int(self.radius)),
                hint="a path visits no site twice",
            )
