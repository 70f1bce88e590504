"""Chains as a run steps them: small codes, compiled and optimised, the caller's precision, the kernel's own state.

Kernels and targets are arguments of what is compiled: those of the same classes and shapes share it, until `forget`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._compiling import program
from .._record import default_float
from ..kernels import begin
from ..target import Target

AT_ONCE = 2**13  # chains: what a step computes stays in the processor's cache
_THREADS = 2


@contextlib.contextmanager
def as_a_run_compiles() -> Iterator[None]:
    """Optimised, whatever the tests around it ask for."""
    quick = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", False)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", quick)


@dataclass(frozen=True)
class Walk:
    """Where chains were, and what they said."""

    states: np.ndarray  # (stops, chains) numbers of states in space.enumerate(); -1 outside the space
    start: np.ndarray  # (chains,) the same, at the start
    infos: Any  # of the step that led to the first stop, (chains, ...); None where a step returns none
    gaps: dict[str, tuple[float, bool, Any]]  # of each leaf: (largest relative gap, NaN in one only, dtype)

    @property
    def chains(self) -> int:
        return len(self.start)


def joined(walks: Sequence[Walk]) -> Walk:
    """Walks of the same stops as one."""
    states = np.concatenate([walk.states for walk in walks], axis=1)
    infos = jax.tree.map(lambda *leaves: np.concatenate(leaves), *[walk.infos for walk in walks])
    return Walk(states, np.concatenate([walk.start for walk in walks]), infos, _worst([walk.gaps for walk in walks]))


def step_shapes(kernel: Any, target: Target) -> tuple[Any, Any]:
    """(state, state after a step) of one chain, as shapes and types."""
    codes = jnp.zeros(target.space.num_sites, target.space.code_dtype)
    x = jax.eval_shape(lambda c, k: begin(kernel, target, c, k), codes, jax.random.key(0))
    return x, jax.eval_shape(_step, kernel, target, jax.random.key(0), x)[0]


def walk(kernel: Any, target: Target, codes: np.ndarray, key: jax.Array, stops: Sequence[int], optimised: bool = True) -> Walk:
    """All chains from these codes (chains, d), seen after each of `stops` steps.

    optimised: compile steps as a run does; else in a hurry.
    """
    size, x64 = min(AT_ONCE, len(codes)), jax.config.jax_enable_x64  # type: ignore[attr-defined]

    def block(number: int) -> Walk:
        with jax.enable_x64(x64):  # a thread has its own
            return _block(kernel, target, codes[number * size :][:size], key, number, stops, optimised)

    with ThreadPoolExecutor(_THREADS) as pool:
        return joined([block(0), *pool.map(block, range(1, -(-len(codes) // size)))])  # the first compiles


def _block(
    kernel: Any, target: Target, codes: np.ndarray, key: jax.Array, number: int, stops: Sequence[int], optimised: bool
) -> Walk:
    advance = _advance if optimised else _advance_in_a_hurry
    x, keys = _begin(kernel, target, codes.astype(target.space.code_dtype), key, np.int32(number))
    seen, infos, gaps, done = [], None, [], 0
    for stop in stops:
        x, info, drawn = advance(kernel, target, keys, x, done, stop)
        infos = jax.tree.map(np.asarray, info) if done == 0 else infos
        seen.append(state_numbers(target, np.asarray(drawn)))
        if stop in (1, 3, stops[-1]):
            gaps.append(_named_gaps(kernel, target, x))
        done = stop
    return Walk(np.stack(seen), target.space.index(codes), infos, _worst(gaps))


@program(once=True)  # as in a run
def _begin(kernel: Any, target: Target, codes: jax.Array, key: jax.Array, number: jax.Array) -> tuple[Any, jax.Array]:
    """(states, keys) of all chains of a block."""
    keys = random.split(random.fold_in(key, number), len(codes))
    return jax.vmap(lambda c, k: begin(kernel, target, c, k))(codes, keys), keys


@jax.jit
def _step(kernel: Any, target: Target, key: jax.Array, x: Any) -> tuple[Any, Any]:
    """By itself, so that it is traced once for its shapes and for the walk."""
    return kernel.step(key, target, x)


def _advanced(kernel: Any, target: Target, keys: jax.Array, x: Any, first: Any, stop: Any) -> tuple[Any, Any, jax.Array]:
    """(states, infos of the last step, draws) after steps `first` to `stop`."""

    def step(t: jax.Array, carried: tuple[Any, Any]) -> tuple[Any, Any]:
        return jax.vmap(lambda k, x: _step(kernel, target, random.fold_in(k, t), x))(keys, carried[0])

    shapes = jax.eval_shape(lambda: step(jnp.zeros((), jnp.int32), (x, None))[1])
    info = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    x, info = jax.lax.fori_loop(first, stop, step, (x, info))
    return x, info, jax.vmap(kernel.draw)(x)


_advance, _advance_in_a_hurry = jax.jit(_advanced), program(once=True)(_advanced)


@program(once=True)
def _gaps(kernel: Any, target: Target, x: Any) -> list[tuple[jax.Array, jax.Array]]:
    fresh = jax.vmap(lambda x: kernel.refresh(target, x))(x)
    return [_gap(a, b) for a, b in zip(jax.tree.leaves(x), jax.tree.leaves(fresh), strict=True)]


def _named_gaps(kernel: Any, target: Target, x: Any) -> dict[str, tuple[float, bool, Any]]:
    """Cached against recomputed, for each leaf of the states."""
    leaves = jax.tree_util.tree_leaves_with_path(x)
    found = zip(leaves, _gaps(kernel, target, x), strict=True)
    return {jax.tree_util.keystr(path).strip("."): (float(gap), bool(nan), leaf.dtype) for (path, leaf), (gap, nan) in found}


def _worst(gaps: Sequence[dict]) -> dict[str, tuple[float, bool, Any]]:
    return {n: (max(g[n][0] for g in gaps), any(g[n][1] for g in gaps), gaps[0][n][2]) for n in gaps[0]}


def state_numbers(target: Target, codes: np.ndarray) -> np.ndarray:
    """Where codes stand in space.enumerate(); -1 for what is no state."""
    inside = ((codes >= 0) & (codes < target.space.num_values_per_site)).all(-1)
    return np.where(inside, target.space.index(codes), -1).astype(np.int32)


def _gap(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(largest relative difference, whether one is NaN where the other is not).

    XLA:CPU's max drops NaN from arrays of 32768 elements on (openxla/xla#21461): NaN is looked for by itself.
    """
    if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        a, b = jax.random.key_data(a), jax.random.key_data(b)
    a, b = a.astype(default_float()), b.astype(default_float())
    nan = jnp.isnan(a) != jnp.isnan(b)
    same = (a == b) | jnp.isnan(a) | jnp.isnan(b)
    apart = jnp.where(same, 0, jnp.abs(a - b) / (1 + jnp.abs(b)))
    return jnp.max(jnp.where(jnp.isnan(apart), jnp.inf, apart), initial=0), jnp.any(nan)


def proposals(kernel: Any, target: Target, codes: np.ndarray, noise: Any, key: jax.Array, num: int) -> np.ndarray:
    """(states, num) numbers of the states that the proposals at these codes drew."""
    return state_numbers(target, np.asarray(_proposed(kernel, target, codes.astype(target.space.code_dtype), noise, key, num)))


@program(once=True, static_argnums=5)
def _proposed(kernel: Any, target: Target, codes: jax.Array, noise: Any, key: jax.Array, num: int) -> jax.Array:
    def one(codes: jax.Array, u: Any, keys: jax.Array) -> jax.Array:
        x = begin(kernel, target, codes, key)
        return jax.vmap(lambda k: kernel.propose(target, x, u).sample(k))(keys)

    return jax.vmap(one)(codes, noise, random.split(key, len(codes) * num).reshape(len(codes), num))


def noise(kernel: Any, target: Target, key: jax.Array, num: int) -> np.ndarray:
    """(num, n) draws of the auxiliary variable."""
    return np.asarray(_noise(kernel, target, key, num), np.float64)


@program(once=True, static_argnums=3)
def _noise(kernel: Any, target: Target, key: jax.Array, num: int) -> jax.Array:
    return jax.vmap(lambda k: kernel.noise(k, target))(random.split(key, num))


def forget() -> None:
    """Compile anew: methods of a kernel may have been changed since, and it is the present ones that are to be certified."""
    compiled: list[Any] = [_step, _advance]
    for jitted in compiled:
        jitted.clear_cache()
    for each in (_begin, _advance_in_a_hurry, _gaps, _proposed, _noise):
        each.forget()
