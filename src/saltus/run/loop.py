r"""The compiled part of a run: some number of steps of every chain, one executable for warm-up and draws.

The key of a step is folded from (seed, phase, chain, t), where t counts transitions from the start of the phase, so
neither the length of a chunk nor the number of chains nor a kill changes what a chain draws. Chains are spread over the
devices of a mesh; they never communicate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .. import random
from .._compiling import program
from .._fusion import stored
from .._record import default_float, record
from ..errors import RunError
from ..kernels import Info, Kernel
from ..spaces import Space
from ..target import Point, Target
from .recording import Recording

START, WARMUP, DRAWS, TUNING, RACING = 0, 1, 2, 3, 4  # the phases: first states, burn-in, what is kept; before it all

_AT_ONCE = 2**20  # numbers: sites (or entries of s) times chains

_CHAINS, _ALL = PartitionSpec("chains"), PartitionSpec()


@record
class Carry:
    """All that a run carries on its devices from one chunk to the next."""

    points: Point  # (chains, ...)
    rate: jax.Array  # (chains,) acceptance rates and jumps, summed since the last draw
    jump: jax.Array
    undefined: jax.Array  # (chains,) counted since the start
    block: dict[str, jax.Array]  # (rows, chains, ...) the draws of the block being filled


_CARRY = Carry(_CHAINS, _CHAINS, _CHAINS, _CHAINS, PartitionSpec(None, "chains"))  # type: ignore[arg-type]


def chain_mesh() -> Mesh:
    """All devices of all processes, in one row of chains."""
    return Mesh(np.array(jax.devices()), ("chains",))


def spread(mesh: Mesh, per_chain: Any) -> Any:
    """Host arrays (chains, ...) laid out over the devices."""
    return jax.device_put(per_chain, NamedSharding(mesh, _CHAINS))


def per_chain(carry: Carry, change: Callable[[Any, int], Any]) -> Carry:
    """`change(array, axis of the chains)` for every array of a carry."""
    first = jax.tree.map(lambda x: change(x, 0), (carry.points, carry.rate, carry.jump, carry.undefined))
    points, rate, jump, undefined = first
    return Carry(points, rate, jump, undefined, {name: change(x, 1) for name, x in carry.block.items()})


def spread_carry(mesh: Mesh, carry: Carry) -> Carry:
    """A carry of host arrays, as read from a checkpoint, laid out over the devices."""
    specs = {0: NamedSharding(mesh, _CHAINS), 1: NamedSharding(mesh, PartitionSpec(None, "chains"))}
    return per_chain(carry, lambda x, axis: jax.device_put(x, specs[axis]))


def everywhere(mesh: Mesh, tree: Any) -> Any:
    """The same values on every device."""
    return jax.device_put(tree, NamedSharding(mesh, _ALL))


def seed_words(seed: int) -> np.ndarray:
    """The threefry key of a seed, as `jax.random.key(seed)` has it; whole 64 bits."""
    return np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)


def chain_key(words: jax.Array, phase: Any, chain: jax.Array) -> jax.Array:
    key = jax.random.wrap_key_data(words, impl="threefry2x32")
    return random.fold_in(random.fold_in(key, phase), chain)


def chain_keys(seed: int, phase: int, chains: np.ndarray) -> np.ndarray:
    """(chains, 2) the words of the chains' keys in a phase, made on the host."""
    return random.folded(random.folded(seed_words(seed), [phase])[0], chains)


def random_codes(space: Space, seed: int, chains: np.ndarray, attempt: int) -> np.ndarray:
    """(chains, d) codes drawn uniformly; another attempt is another draw."""
    return np.asarray(_codes(space, random.folded(chain_keys(seed, START, chains), [attempt])))


@program(once=True, static_argnums=0)
def _codes(space: Space, words: jax.Array) -> jax.Array:
    return jax.vmap(lambda w: space.random(jax.random.wrap_key_data(w, impl="threefry2x32")))(words)


@program(once=True, static_argnums=(0, 1, 2))
def begin(mesh: Mesh, recording: Recording, rows: int, kernel: Kernel, target: Target, codes: jax.Array) -> Carry:
    """The carry at these codes, with an empty block."""

    def begin_here(kernel: Kernel, target: Target, codes: jax.Array) -> Carry:
        points = jax.vmap(lambda c: kernel.init(target, c))(codes.astype(target.space.code_dtype))
        zero = jnp.zeros(codes.shape[0], default_float())
        shapes = jax.eval_shape(lambda: recording.row(target, points, zero, zero, _no_info(codes.shape[0])))
        block = {name: jnp.zeros((rows, *row.shape), row.dtype) for name, row in shapes.items()}
        return Carry(points, zero, zero, jnp.zeros(codes.shape[0], jnp.int32), block)

    specs: Any = (_ALL, _ALL, _CHAINS)
    return jax.shard_map(begin_here, mesh=mesh, in_specs=specs, out_specs=_CARRY, check_vma=False)(kernel, target, codes)


def each_chain(kernel: Kernel, target: Target, step: Callable[[Any, Any], Any], keys: jax.Array, points: Point) -> Any:
    """`step(key, point)` of all chains, as many at once as keep what a step computes in the processor's cache.

    What all chains share, such as the basis of a preconditioner, is read once for those at once: there are more of them then.
    """
    num, shared = len(keys), sum(leaf.size for leaf in jax.tree.leaves(kernel))
    most = max((_AT_ONCE + shared // 4) // target.space.size, 1)
    at_once = max(n for n in range(1, num + 1) if num % n == 0 and n <= most)
    if at_once == num:
        return jax.vmap(step)(keys, points)

    def some(i: jax.Array, state: tuple[Point, Info]) -> Any:
        own = lambda x: jax.lax.dynamic_slice_in_dim(x, i * at_once, at_once)  # noqa: E731
        apart = lambda x: stored(own, x)  # noqa: E731  # or the slice is made anew in all that reads it
        new = jax.vmap(step)(own(keys), jax.tree.map(apart, state[0]))
        return jax.tree.map(lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, i * at_once, 0), state, new)

    return jax.lax.fori_loop(0, num // at_once, some, (points, _no_info(num)))


@program(static_argnums=(0, 1))
def advance(
    mesh: Mesh, recording: Recording, kernel: Kernel, target: Target, words: jax.Array, carry: Carry, clock: dict[str, Any]
) -> Carry:
    """Steps `first` <= t < `stop` of a phase; draw t // thin goes to row t // thin - `start` of the block.

    words: of `chain_keys`. clock: first, stop, thin, start. All dynamic, so that one executable serves a whole run.
    """

    def advance_here(kernel: Kernel, target: Target, words: jax.Array, carry: Carry, clock: dict[str, Any]) -> Carry:
        keys, thin = jax.random.wrap_key_data(words, impl="threefry2x32"), clock["thin"]

        def step(t: jax.Array, carry: Carry) -> Carry:
            points, info = each_chain(kernel, target, lambda k, x: kernel.step(random.fold_in(k, t), target, x), keys, carry.points)
            fresh = t % thin == 0
            rate = jnp.where(fresh, 0, carry.rate) + info.acceptance_rate
            jump = jnp.where(fresh, 0, carry.jump) + info.jump
            is_draw = t % thin == thin - 1
            share = 1 / thin.astype(rate.dtype)
            row = recording.row_if(is_draw, target, points, rate * share, jump * share, info)
            at = t // thin - clock["start"]
            block = {name: jax.lax.dynamic_update_index_in_dim(carry.block[name], row[name], at, 0) for name in row}
            return Carry(points, rate, jump, carry.undefined + info.undefined, block)

        return jax.lax.fori_loop(clock["first"], clock["stop"], step, carry)

    specs: Any = (_ALL, _ALL, _CHAINS, _CARRY, _ALL)
    run = jax.shard_map(advance_here, mesh=mesh, in_specs=specs, out_specs=_CARRY, check_vma=False)
    return run(kernel, target, words, carry, clock)


def _no_info(num_chains: int) -> Info:
    none = jnp.zeros(num_chains, bool)
    zero = jnp.zeros(num_chains, default_float())
    count = jnp.zeros(num_chains, jnp.int32)
    return Info(none, zero, none, zero, count, count)


def fetch(tree: Any) -> Any:
    """Device arrays as host arrays, all chains of all processes."""
    if jax.process_count() == 1:
        return jax.tree.map(np.asarray, tree)
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(tree, tiled=True)


def first_does(action: Callable[[], Any]) -> None:
    """Process 0 does it; where it fails, every process raises, so that none waits for the others."""
    failure: Exception | None = None
    if jax.process_index() == 0:
        try:
            action()
        except Exception as cause:
            failure = cause
    if int(agree(np.array(failure is not None, np.int32))):
        raise failure or RunError("Process 0 could not go on.", hint="its own message says why")


def agree(value: np.ndarray) -> np.ndarray:
    """What process 0 says, on every process."""
    if jax.process_count() == 1:
        return value
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.broadcast_one_to_all(value))
