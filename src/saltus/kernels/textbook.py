"""Small pieces for `log_definition`: straight from the definitions, sharing nothing with `Moves`."""

from __future__ import annotations

import jax

from ..target import Target


def states(target: Target, *codes: jax.Array) -> tuple[jax.Array, ...]:
    """Ravelled real states."""
    return tuple(target.space.ravel(target.space.embed(c)) for c in codes)


def differences(target: Target, codes: jax.Array, new: jax.Array) -> jax.Array:
    """D(s -> s') = sum_i D_i(s'_i; s), the target's own local model evaluated the slow way."""
    return target.differences.by_hand(target, codes, new)
