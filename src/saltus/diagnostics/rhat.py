r"""Split R-hat: do the chains, and the two halves of each, agree?"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .ess import FEWEST_DRAWS, as_draws, module_of, relative, scaled


def split_rhat(x: Any) -> Any:
    r"""Split R-hat (BDA3, Eqs. 11.3-11.4): x (chains, ..., draws) -> (...), chains first, draws last, the rest kept.

    $$ \hat R = \sqrt{\frac{\frac{n-1}{n} W + \frac{1}{n} B}{W}} $$

    over the halves of all chains, n draws each (the middle draw of an odd number is dropped): W is the mean of their
    variances, B/n the variance of their means. Near 1 when they agree; one chain will do, since it has two halves.
    0 marks a constant: every half sits at one and the same value, which says nothing. Infinite where each half is constant
    but not at the same value, and where agreement cannot be seen: fewer than 4 draws, a NaN or an infinity among them.
    """
    x = as_draws(x, "(chains, ..., draws)", least_axes=2)
    xp, x = module_of(x), relative(x, x[:1, ..., :1])
    if x.shape[-1] < FEWEST_DRAWS:
        return xp.full(x.shape[1:-1], xp.inf, x.dtype)
    return _rhat_of_halves(np, x) if xp is np else _compiled_rhat(x)


def _rhat_of_halves(xp: Any, x: Any) -> Any:
    n = x.shape[-1] // 2
    halves = xp.concatenate([x[..., :n], x[..., -n:]], axis=0)
    unit, usable = scaled(xp, halves, axis=(0, -1))
    constant = xp.all(halves == 0, axis=(0, -1))  # x is relative to a draw of the first half
    # Around the first draw of each half: the variance of a constant half is then exactly 0.
    within = unit - unit[..., :1]
    means = unit[..., 0] + xp.mean(within, axis=-1)
    W = xp.mean(xp.var(within, axis=-1, ddof=1), axis=0)
    ratio = (n - 1) / n + xp.var(means, axis=0, ddof=1) / xp.where(W > 0, W, 1)
    seen = usable[0, ..., 0] & (W > 0)
    return xp.where(constant, 0, xp.where(seen, xp.sqrt(ratio), xp.inf))


_compiled_rhat = jax.jit(partial(_rhat_of_halves, jnp))
