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

from .. import kernels, random
from .._compiling import program
from .._fusion import stored
from .._record import changed, default_float, record
from ..errors import RunError
from ..kernels import Info, Kernel
from ..spaces import Space
from ..target import Target
from .keys import RACING, START, TUNING, chain_key, chain_keys, seed_words, state_keys, wrapped
from .recording import Recording, stepped

__all__ = ["RACING", "TUNING", "chain_key", "seed_words"]  # of keys

_AT_ONCE = 2**20  # numbers: sites (or entries of s) times chains

_CHAINS, _ALL = PartitionSpec("chains"), PartitionSpec()


@record
class Carry:
    """All that a run carries on its devices from one chunk to the next."""

    states: Any  # (chains, ...) of any kernel
    rate: jax.Array  # (chains,) acceptance rates and jumps, summed since the last draw
    jump: jax.Array
    undefined: jax.Array  # (chains,) counted since the start
    block: dict[str, jax.Array]  # (rows, chains, ...) the draws of the block being filled

    @property
    def points(self) -> Any:
        """The states, of kernels whose states are Points."""
        return self.states


_CARRY = Carry(_CHAINS, _CHAINS, _CHAINS, _CHAINS, PartitionSpec(None, "chains"))  # type: ignore[arg-type]


def chain_mesh() -> Mesh:
    """All devices of all processes, in one row of chains."""
    return Mesh(np.array(jax.devices()), ("chains",))


def spread(mesh: Mesh, per_chain: Any) -> Any:
    """Host arrays (chains, ...) laid out over the devices."""
    return jax.device_put(per_chain, NamedSharding(mesh, _CHAINS))


def per_chain(carry: Carry, change: Callable[[Any, int], Any]) -> Carry:
    """`change(array, axis of the chains)` for every array of a carry."""
    first = jax.tree.map(lambda x: change(x, 0), (carry.states, carry.rate, carry.jump, carry.undefined))
    states, rate, jump, undefined = first
    return Carry(states, rate, jump, undefined, {name: change(x, 1) for name, x in carry.block.items()})


def spread_carry(mesh: Mesh, carry: Carry) -> Carry:
    """A carry of host arrays, as read from a checkpoint, laid out over the devices."""
    specs = {0: NamedSharding(mesh, _CHAINS), 1: NamedSharding(mesh, PartitionSpec(None, "chains"))}
    return per_chain(carry, lambda x, axis: jax.device_put(x, specs[axis]))


def everywhere(mesh: Mesh, tree: Any) -> Any:
    """The same values on every device."""
    return jax.device_put(tree, NamedSharding(mesh, _ALL))


def random_codes(space: Space, seed: int, chains: np.ndarray, attempt: int) -> np.ndarray:
    """(chains, d) codes drawn uniformly; another attempt is another draw."""
    return np.asarray(_codes(space, random.folded(chain_keys(seed, START, chains), [attempt])))


@program(once=True, static_argnums=0)
def _codes(space: Space, words: jax.Array) -> jax.Array:
    return jax.vmap(lambda w: space.random(wrapped(w)))(words)


@program(once=True, static_argnums=(0, 1, 2))
def begin(
    mesh: Mesh, recording: Recording, rows: int, kernel: Kernel, target: Target, codes: jax.Array, words: Any = None
) -> Carry:
    """The carry at these codes, with an empty block. words: of `state_keys`; None: of seed 0."""
    words = state_keys(0, np.arange(codes.shape[0])) if words is None else words

    def begin_here(kernel: Kernel, target: Target, codes: jax.Array, words: jax.Array) -> Carry:
        codes = codes.astype(target.space.code_dtype)
        states = jax.vmap(lambda c, w: kernels.begin(kernel, target, c, wrapped(w)))(codes, words)
        zero = jnp.zeros(codes.shape[0], default_float())
        shapes = jax.eval_shape(lambda: recording.row(kernel, target, states, zero, zero, no_info(codes.shape[0])))
        block = {name: jnp.zeros((rows, *row.shape), row.dtype) for name, row in shapes.items()}
        return Carry(states, zero, zero, jnp.zeros(codes.shape[0], jnp.int32), block)

    specs: Any = (_ALL, _ALL, _CHAINS, _CHAINS)
    start = jax.shard_map(begin_here, mesh=mesh, in_specs=specs, out_specs=_CARRY, check_vma=False)
    return start(kernel, target, codes, words)


def step_chains(
    kernel: Kernel, target: Target, keys: jax.Array, t: jax.Array, states: Any, settings: dict[str, jax.Array] | None = None
) -> tuple[Any, Info]:
    """Step t of all chains: THE stepping of a run, tuning, a race, training and annealing.

    keys: one a chain. settings: {field: (chains,) values} where every chain steps with numbers of its own.
    """

    def step(own: Any, x: Any) -> Any:
        key, values = own
        return stepped(changed(kernel, **values), random.fold_in(key, t), target, x)

    return each_chain(kernel, target, step, (keys, settings or {}), states)


def each_chain(kernel: Kernel, target: Target, step: Callable[[Any, Any], Any], given: Any, states: Any) -> Any:
    """`step(given, state)` of all chains, as many at once as keep what a step computes in the processor's cache.

    What all chains share, such as the basis of a preconditioner, is read once for those at once: there are more of them then.
    """
    num, shared = len(jax.tree.leaves(given)[0]), sum(leaf.size for leaf in jax.tree.leaves(kernel))
    most = max((_AT_ONCE + shared // 4) // target.space.size, 1)
    at_once = max(n for n in range(1, num + 1) if num % n == 0 and n <= most)
    if at_once == num:
        return jax.vmap(step)(given, states)

    def some(i: jax.Array, state: tuple[Any, Info]) -> Any:
        own = lambda x: jax.lax.dynamic_slice_in_dim(x, i * at_once, at_once)  # noqa: E731
        apart = lambda x: stored(own, x)  # noqa: E731  # or the slice is made anew in all that reads it
        new = jax.vmap(step)(jax.tree.map(own, given), jax.tree.map(apart, state[0]))
        return jax.tree.map(lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, i * at_once, 0), state, new)

    return jax.lax.fori_loop(0, num // at_once, some, (states, no_info(num)))


@program(static_argnums=(0, 1))
def advance(
    mesh: Mesh, recording: Recording, kernel: Kernel, target: Target, words: jax.Array, carry: Carry, clock: dict[str, Any]
) -> Carry:
    """Steps `first` <= t < `stop` of a phase; draw t // thin goes to row t // thin - `start` of the block.

    words: of `chain_keys`. clock: first, stop, thin, start. All dynamic, so that one executable serves a whole run.
    """

    def advance_here(kernel: Kernel, target: Target, words: jax.Array, carry: Carry, clock: dict[str, Any]) -> Carry:
        keys, thin = wrapped(words), clock["thin"]

        def step(t: jax.Array, carry: Carry) -> Carry:
            states, info = step_chains(kernel, target, keys, t, carry.states)
            fresh = t % thin == 0
            rate = jnp.where(fresh, 0, carry.rate) + info.acceptance_rate
            jump = jnp.where(fresh, 0, carry.jump) + info.jump
            is_draw = t % thin == thin - 1
            share = 1 / thin.astype(rate.dtype)
            row = recording.row_if(is_draw, kernel, target, states, rate * share, jump * share, info)
            at = t // thin - clock["start"]
            block = {name: jax.lax.dynamic_update_index_in_dim(carry.block[name], row[name], at, 0) for name in row}
            return Carry(states, rate, jump, carry.undefined + info.undefined, block)

        return jax.lax.fori_loop(clock["first"], clock["stop"], step, carry)

    specs: Any = (_ALL, _ALL, _CHAINS, _CARRY, _ALL)
    run = jax.shard_map(advance_here, mesh=mesh, in_specs=specs, out_specs=_CARRY, check_vma=False)
    return run(kernel, target, words, carry, clock)


def no_info(num_chains: int) -> Info:
    """Of chains that have made no step."""
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
