"""Why the code is written as it is: what each of these choices gains on this machine, no goals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from saltus import random

from ..internals import lattice, total
from .clock import ratio, seconds_per_step
from .lines import Line
from .loops import Loop

_CHAINS = 100


def choices() -> list[Line]:
    normals = _draws(lambda key: random.normal(key, (100,))), _draws(lambda key: random.gauss(key, (100,)))
    uniforms = _draws(lambda key: random.uniform(key, (100,))), _draws(lambda key: random.unit(key, (100,)))
    library = _draws(lambda key: jax.random.uniform(key, (100,))), _draws(lambda key: random.uniform(key, (100,)))
    return [
        _line("uniforms: jax.random / rounds written out", *library),
        _line("uniforms: one word of each counter / both", *uniforms),
        _line("normals: inverse error function / Box-Muller", *normals),
        _line("neighbours, 30x30 lattice: jnp.roll / slices", _neighbours(_rolls), _neighbours(lattice((30, 30)).pull)),
        _line("sums over 100 sites: jnp.sum / ones . x", _sums(jnp.sum), _sums(total)),
        _line("sums over 900 sites: jnp.sum / ones . x", _sums(jnp.sum, 900), _sums(total, 900)),
        _line("exp, 100 sites, 5 values: sites first / last", _exp((100, 5)), _exp((5, 100))),
        _line("exp, 20 sites, 50 values: sites first / last", _exp((20, 50)), _exp((50, 20))),
    ]


def _line(what: str, before: Loop, after: Loop) -> Line:
    times = seconds_per_step({"before": before, "after": after}, repeats=5)
    return Line(what, ratio(times["before"], times["after"]))


def _draws(draw: Callable[[jax.Array], jax.Array]) -> Loop:
    def body(_: Any, t: jax.Array, state: Any) -> Any:
        keys, total = state
        return keys, total + jax.vmap(lambda key: draw(random.fold_in(key, t)))(keys)

    return Loop(body, (random.split(jax.random.key(0), _CHAINS), jnp.zeros((_CHAINS, 100))))


def _rolls(coupling: jax.Array, x: jax.Array) -> jax.Array:
    grid = x.reshape(30, 30)
    both = [jnp.roll(grid, 1, axis) + jnp.roll(grid, -1, axis) for axis in (0, 1)]
    return coupling * (both[0] + both[1]).ravel()


def _neighbours(pull: Callable[[jax.Array, jax.Array], jax.Array]) -> Loop:
    """Spins that go where their neighbours pull."""

    def body(_: Any, t: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.where(jax.vmap(lambda x: pull(jnp.float32(0.4), x))(x) > 0.1, 1.0, -1.0) * x

    return Loop(body, jnp.where(jax.random.bernoulli(jax.random.key(0), 0.5, (_CHAINS, 900)), 1.0, -1.0))


def _sums(add: Callable[[jax.Array], jax.Array], d: int = 100) -> Loop:
    """How many sites differ from those of the step before."""

    def body(_: Any, t: jax.Array, state: Any) -> Any:
        codes, count = state
        new = codes ^ (t + jnp.arange(d, dtype=jnp.int32)) & 1
        return new, count + jax.vmap(lambda a, b: add((a != b).astype(jnp.float32)))(new, codes)

    return Loop(body, (jnp.zeros((_CHAINS, d), jnp.int32), jnp.zeros(_CHAINS)))


def _exp(shape: tuple[int, int]) -> Loop:
    return Loop(lambda _, t, x: jnp.exp(-x) * 0.5, jax.random.normal(jax.random.key(0), (_CHAINS, *shape)))
