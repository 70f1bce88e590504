"""Which states and moves are looked at, and f and D there: one compiled program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._compiling import program
from ...errors import SpaceError
from ...kernels.metropolis import metropolis
from ...spaces import Space
from ...target import Point, Target

_FULL = {"num_states": 8, "num_moves": 96, "num_steps": 300}  # 3960 evaluations of f with the gradient
_SMALL = {"num_states": 3, "num_moves": 16, "num_steps": 48}  # 249
_MOST_FOR_MODELS = 1024  # evaluations spent on local models that take many each
ATTEMPTS = 100
_AT_ONCE = 2**18  # most numbers in states that are evaluated together


def usual_sizes(target: Target, small: bool) -> dict[str, int]:
    """The usual number of states, moves and steps; fewer states where local models are dear."""
    sizes = dict(_SMALL if small or target.differences.evaluates else _FULL)
    most = _MOST_FOR_MODELS // (2 * max(evaluations_of_model(target), 1))
    return sizes | {"num_states": max(min(sizes["num_states"], most), 1)}


def evaluations_of_model(target: Target) -> int:
    """Exact differences are what the model would be compared with, and need not be computed twice."""
    return 0 if target.differences.evaluates else target.differences.evaluations_on(target)


def possible(f: np.ndarray) -> np.ndarray:
    """The f of given states, once it is seen to be finite."""
    if not np.isfinite(f).all():
        raise SpaceError(
            "`initial` is not a possible start.",
            expected="a finite log_prob",
            found=f"log_prob = {f[~np.isfinite(f)][0]}",
            hint="-inf says that the state is impossible, NaN that log_prob is not defined there",
        )
    return f


def random_states(target: Target, num: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, int]:
    """Uniform codes and their f, drawn again while f is not finite; and how many attempts it took."""
    shape = (num, target.space.num_sites)
    codes = _uniform(target.space, shape, rng)
    for attempt in range(1, ATTEMPTS + 1):
        f = values_at(target, codes)
        bad = ~np.isfinite(f)
        if not bad.any() or attempt == ATTEMPTS:
            break
        codes = np.where(bad[:, None], _uniform(target.space, shape, rng), codes)
    return codes, f, attempt


def _uniform(space: Space, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.integers(space.num_values, size=shape, dtype=np.int32) % space.num_values_per_site.astype(np.int32)


def values_at(target: Target, codes: np.ndarray) -> np.ndarray:
    return np.asarray(_values_of(target, codes))


@program(once=True)
def _values_of(target: Target, codes: jax.Array) -> jax.Array:
    return jax.vmap(target.value)(codes)


def choose_probes(space: Space, sizes: dict[str, int], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Which moves are looked at: sites (2, n, a), different at each state, and by how much their codes change (2, n, a, b).

    As many sites as possible come first, then as many values of each; on spaces with an order some are one grid step.
    """
    d, k, n = space.num_sites, space.num_values, sizes["num_states"]
    a = min(d, sizes["num_moves"])
    b = min(k - 1, max(sizes["num_moves"] // a, 1))
    sites, offsets = _spread(rng, d, a, (2, n)), 1 + _spread(rng, k - 1, b, (2, n, a))
    if b < k - 1 and space.diameter > 1:
        step = rng.choice([1, k - 1], (2, n, a))
        offsets[..., 0] = step if b > 1 else np.where(rng.random(step.shape) < 0.5, step, offsets[..., 0])
        if b > 3:
            offsets[..., 1] = k - step
    others = space.num_values_per_site[sites][..., None] - 1
    return sites.astype(np.int32), (1 + (offsets - 1) % others).astype(np.int32)


def _spread(rng: np.random.Generator, total: int, num: int, shape: tuple[int, ...]) -> np.ndarray:
    """(*shape, num) different numbers below `total`, one at random from each of `num` equal parts."""
    edges = np.arange(num + 1) * total // num
    return rng.integers(edges[:-1], edges[1:], (*shape, num))


def choose_steps(space: Space, sizes: dict[str, int], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The moves that chains propose on their way to typical states, each (steps, chains): site, change of code, key.

    A site moves by a number of grid steps uniform in its logarithm, either way, round the end: symmetric, so
    log α = f' - f. Long moves find where the mass is, short ones settle there.
    """
    shape = (sizes["num_steps"], sizes["num_states"])
    log_size, forwards = rng.random(shape), rng.random(shape) < 0.5
    words = rng.integers(2**32, size=(*shape, 2), dtype=np.uint32)
    sites = rng.integers(space.num_sites, size=shape, dtype=np.int32)
    k = space.num_values_per_site[sites]
    size = np.clip(np.exp(log_size * np.log(k)).astype(np.int32), 1, k - 1)
    return sites, np.where(forwards, size, k - size).astype(np.int32), words


@program(once=True)
def look(target: Target, drawn: Any, start: Any, steps: Any, probes: Any) -> dict[str, jax.Array]:
    """The rest is one program: the walk to typical states, then at all states the local models, and f after every move."""
    space, (sites, offsets), n = target.space, probes, drawn.shape[0]
    # what is not finite counts as impossible, so that a chain may leave it
    begun = Point(start[0], jnp.where(jnp.isfinite(start[1]), start[1], -jnp.inf))

    def step(x: Point, moves: Any) -> tuple[Point, jax.Array]:
        x = jax.vmap(lambda x, move: single_site(target, x, *move))(x, moves)
        return x, x.log_prob

    typical, history = jax.lax.scan(step, begun, steps)
    codes = jnp.concatenate([drawn, typical.codes])
    sites, offsets = sites.reshape(2 * n, -1), offsets.reshape(2 * n, sites.shape[-1], -1)
    here, own = jnp.take_along_axis(codes, sites, axis=1)[..., None], jnp.asarray(space.num_values_per_site, codes.dtype)
    values = (here + offsets) % own[sites][..., None]
    rows = jnp.broadcast_to(jnp.arange(2 * n, dtype=jnp.int32)[:, None, None], values.shape)

    def value_after(move: Any) -> jax.Array:
        row, site, value = move
        return target.value(codes[row].at[site].set(value))

    moves = [x.ravel() for x in (rows, jnp.broadcast_to(sites[..., None], values.shape), values)]
    after = _mapped(value_after, moves, space.size).reshape(values.shape)
    found = {"after": after, "history": history}
    found["hops"] = space.hops_at(sites[..., None], here, values)
    if not target.differences.evaluates:
        found["predicted"] = _mapped(lambda x: _predictions(target, *x), (codes, sites, values), space.size)
    return found


def _mapped(fn: Callable, xs: Any, size: int) -> jax.Array:
    """`fn` over the leading axis, in equal batches: a remainder would be compiled apart."""
    num = jax.tree.leaves(xs)[0].shape[0]
    most = max(min(num, _AT_ONCE // size), 1)
    return jax.lax.map(fn, xs, batch_size=next(b for b in range(most, 0, -1) if num % b == 0))


def single_site(target: Target, x: Point, site: jax.Array, offset: jax.Array, words: jax.Array) -> Point:
    """One Metropolis step of a symmetric proposal."""
    own = jnp.asarray(target.space.num_values_per_site, x.codes.dtype)[site]
    codes = x.codes.at[site].set((x.codes[site] + offset) % own)
    y = Point(codes, target.value(codes))
    key = jax.random.wrap_key_data(words, impl="threefry2x32")
    return metropolis(key, target.space, x, y, y.log_prob - x.log_prob)[0]


def _predictions(target: Target, codes: jax.Array, sites: jax.Array, values: jax.Array) -> jax.Array:
    """(a, b) D_i(v) for each of `sites` and its row of `values`."""
    moves = target.moves(target.point(codes))
    return jax.vmap(lambda v: moves.each(codes.at[sites].set(v))[sites], in_axes=1, out_axes=1)(values)
