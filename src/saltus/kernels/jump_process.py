"""JumpProcess: always moves, and weighs its states by how long they would have been held."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .._record import as_choice, record, static
from ..errors import KernelError
from ..target import Target
from .jumping import Jumping, Rated

BALANCE = {
    "sqrt": lambda r: r / 2,
    "min": lambda r: jnp.minimum(r, 0),
    "barker": lambda r: -jax.nn.softplus(-r),
    "max": lambda r: jnp.maximum(r, 0),
    "sum": jax.nn.softplus,
}  # log b(t) of r = log t


@record
class JumpProcess(Jumping):
    r"""Locally balanced jump process (Power & Goldman 2019); with balance "min" the n-fold way (Bortz, Kalos & Lebowitz 1975).

    $$ \text{rate}(s \to s') = b\big(\pi(s') / \pi(s)\big), \qquad b(t) = t\, b(1/t), \qquad
       w(s) = 1 \Big/ \sum_{s'} \text{rate}(s \to s') $$

    Over all changes of one site, from exact differences: no gradient, no rejection. The chain is stationary for π / w, so draws
    carry the weight w. Impossible states have rate 0, whatever b. balance: "sqrt", "min" min(1, t), "barker" t / (1 + t),
    "max" max(1, t), or "sum" 1 + t, which on two values is TGS. Every step changes one site: on two values keep an odd `thin`.
    """

    simplicity = 36
    cites = ("power2019", "bortz1975")

    balance: str = static(default="sqrt")

    def __post_init__(self) -> None:
        as_choice(self.balance, "balance", BALANCE, KernelError)

    def log_rates(self, target: Target, codes: jax.Array, odds: jax.Array) -> jax.Array:
        return BALANCE[self.balance](odds)

    def log_definition(self, target: Target, x: Rated, codes: jax.Array, noise: Any = None) -> jax.Array:
        """The rate of the one change, straight from b and two values of f."""
        t = jnp.exp(target.value(codes) - target.value(x.codes))
        by_hand = {"sqrt": t**0.5, "min": jnp.minimum(t, 1), "barker": t / (1 + t), "max": jnp.maximum(t, 1), "sum": 1 + t}
        one_site = jnp.sum(codes != x.codes) == 1
        return jnp.where(one_site & (t > 0), jnp.log(by_hand[self.balance]), -jnp.inf)
