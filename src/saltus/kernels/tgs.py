"""TGS: Gibbs that turns first to the sites whose value is unlikely, and weighs its states for it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import Number, as_choice, as_positive, default_float, fill, record, static
from ..errors import KernelError
from ..target import Target
from .jumping import Jumping, Rated

WEIGHTINGS = ("even", "inclusion")


@record
class TGS(Jumping):
    r"""Tempered Gibbs sampler (Zanella & Roberts 2019): always moves; draws carry weights.

    $$ \text{rate}(i, v) = \frac{\eta_i}{(k_i - 1)\, p(s_i \mid \text{rest})}, \quad v \ne s_i, \qquad
       w(s) = 1 \Big/ \sum_{i, v} \text{rate}(i, v) $$

    From exact differences, on any space: a site moves at a rate that is large where its value is unlikely, to any other of its k_i
    values. Impossible values have rate 0. weighting: "even", η_i = 1; or "inclusion", for variable selection on two values,
    η_i = ½ (p(s_i = 1 | rest) + size / d). size: how many sites of d one expects to be 1. On two values keep an odd `thin`.
    """

    simplicity = 37
    cites = ("zanella2019",)

    weighting: str = static(default="even")
    size: Number = 5.0

    def __post_init__(self) -> None:
        fill(self, size=as_positive(self.size, "size"))
        as_choice(self.weighting, "weighting", WEIGHTINGS, KernelError)

    def log_rates(self, target: Target, codes: jax.Array, odds: jax.Array) -> jax.Array:
        every = jax.nn.logsumexp(odds, axis=1)  # -log p(s_i | rest)
        others = np.maximum(target.space.num_values_per_site - 1, 1)
        rate = self._log_eta(target, odds) + every - jnp.log(jnp.asarray(others, odds.dtype))
        return jnp.broadcast_to(rate[:, None], odds.shape)

    def _log_eta(self, target: Target, odds: jax.Array) -> jax.Array:
        if self.weighting == "even":
            return jnp.zeros(len(odds), odds.dtype)
        share = jnp.minimum(self.size / len(odds), 1)
        return jnp.log(0.5 * (jax.nn.sigmoid(odds[:, 1] - odds[:, 0]) + share))

    def log_definition(self, target: Target, x: Rated, codes: jax.Array, noise: Any = None) -> jax.Array:
        """η_i / p(s_i | rest), p(s_i | rest) by putting every value there."""
        site = jnp.argmax(codes != x.codes)
        values = jnp.arange(target.space.num_values, dtype=jnp.int32)
        own = jnp.asarray(target.space.num_values_per_site, jnp.int32)[site]
        f = jax.vmap(lambda v: target.value(x.codes.at[site].set(jnp.minimum(v, own - 1).astype(x.codes.dtype))))(values)
        p = jnp.where(values < own, jnp.exp(f - jnp.max(f)), 0)
        p = p / jnp.sum(p)
        eta = 1.0 if self.weighting == "even" else 0.5 * (p[1] + jnp.minimum(self.size / len(codes), 1))
        possible = (jnp.sum(codes != x.codes) == 1) & (p[codes[site]] > 0)
        return jnp.where(possible, jnp.log(eta / p[x.codes[site]] / (own - 1).astype(p.dtype)), -jnp.inf).astype(default_float())

    def check_settings(self, target: Target) -> None:
        self.single("size")
        if self.weighting == "inclusion" and not (target.space.num_values_per_site == 2).all():
            raise KernelError(
                "TGS weighs by inclusion on two values only.",
                expected="two values at every site",
                found=str(target.space),
                hint='TGS(weighting="even") works on any space',
            )
