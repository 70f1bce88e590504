r"""Possible states where random ones are not: impossible terms are made dear, a few Gibbs sweeps avoid them.

$$ \tilde f(s) = \sum_t \max(F_t(s), -c) $$

over the terms F_t that log_prob sums at its end: a state that breaks fewer constraints is better, where f says -inf of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from ..engine.keys import START, chain_keys, wrapped
from ..kernels import Gibbs, begin
from ..structure.reading import terms_of
from ..target import Target
from .joint import at

_COST, _SWEEPS = 1e4, 10
_REPAIR = 2**22  # in phase START: beyond every attempt at a first state


@dataclass(frozen=True)
class Loosened:
    """A log_prob whose impossible terms cost much; equal for equal functions."""

    log_prob: Callable

    def __call__(self, params: Any, s: Any) -> jax.Array:
        terms = terms_of(self.log_prob, params, s, True)
        return jnp.sum(jnp.where(jnp.isfinite(terms), jnp.maximum(terms, -_COST), -_COST))


def repaired(target: Target, codes: Any, theta: Any, seed: int) -> np.ndarray:
    """(chains, d) codes that break few constraints, from others. theta: (chains, n); None where f has no continuous variables."""
    loose = Target(Loosened(target.log_prob), target.space, target.params, differences="exact", structure=None, verify=False)
    kernel = Gibbs.first(loose)
    sites = target.space.num_sites if kernel.scan == "random" else 1  # steps of a sweep

    def one(words: Any, c: jax.Array, t: Any) -> jax.Array:
        here, key = loose if theta is None else at(loose, t), wrapped(words)
        step = lambda i, x: kernel.step(random.fold_in(key, i), here, x)[0]  # noqa: E731
        return jax.lax.fori_loop(0, _SWEEPS * sites, step, begin(kernel, here, c, key)).codes

    words = random.folded(chain_keys(seed, START, np.arange(len(codes))), [_REPAIR])
    given = jnp.asarray(codes, target.space.code_dtype)
    return np.asarray(jax.jit(jax.vmap(one, in_axes=(0, 0, None if theta is None else 0)))(jnp.asarray(words), given, theta))
