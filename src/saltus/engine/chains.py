"""The chains of a run on their cores or devices: begun at states or found again in a checkpoint, advanced, and read.

A group of chains is stepped by one compiled loop, and how many chains it has depends on the number of chains and on the target
alone: arithmetic may round otherwise where more chains are stepped at once, and draws must not depend on the machine's cores.
How many groups are under way at a time does depend on them: every core takes one, and the next when it is done.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from .._compiling import program
from ..kernels import Kernel
from ..spaces import Space
from ..target import Target
from .arguments import Settings
from .checkpoint import check_codes, check_log_probs, pack, unpack
from .clock import Clock
from .keys import chain_keys, state_keys
from .loop import Carry, advance, begin, chain_mesh, everywhere, fetch, per_chain, spread, spread_carry
from .recording import Block, Recording, kept_codes, kept_log_prob, with_stamps, without_stamps
from .starts import start_chains

Blocks = list[dict[str, jax.Array]]  # (rows, chains, ...) of every group
_LEAST = 2**13  # chains times sites times values: groups of fewer are over before a second core would help
MOST = 16  # groups
_WASTE = 1.05  # chains that are stepped, over those that were asked for: all groups have the same number


class Chains:
    """In groups of equal size, each with a carry of its own: where that is more chains than were asked for, the last are copies,
    never kept."""

    def __init__(self, settings: Settings, recording: Recording, kernel: Kernel, target: Target, rows: int):
        self.seed, self.num, self.recording, self.rows = settings.seed, settings.num_chains, recording, rows
        self.mesh = chain_mesh()
        self.size = group_size(self.num, target.space, self.mesh.size)
        self.groups = np.arange(-(-self.num // self.size) * self.size, dtype=np.int32).reshape(-1, self.size)
        self.kernel, self.target = everywhere(self.mesh, (kernel, target))
        self._keys: dict[int, list[Any]] = {}
        self._carries: list[Carry] = []
        self._crew = Crew(len(self.groups)) if len(self.groups) > 1 else None
        self._executable: Any = None

    @property
    def carries(self) -> list[Carry]:
        """One a group, when the steps that are under way are made."""
        self.wait()
        return self._carries

    @property
    def block(self) -> Blocks:
        """The draws of the block being filled, group by group."""
        return [carry.block for carry in self.carries]

    @property
    def names(self) -> list[str]:
        """Of what is kept of a draw."""
        return list(self._carries[0].block)

    def start(self, codes: np.ndarray | None) -> None:
        """At these codes, or at the first random ones that are possible."""
        self._carries = start_chains(self._begin_all, self._log_probs, self.target, codes, self.groups.ravel(), self.seed)

    def _begin_all(self, codes: np.ndarray) -> list[Carry]:
        return [self._begin(spread(self.mesh, codes[own]), own) for own in self.groups]

    def _begin(self, codes: Any, own: np.ndarray) -> Carry:
        words = spread(self.mesh, state_keys(self.seed, own))
        return begin(self.mesh, self.recording, self.rows, self.kernel, self.target, codes, words)

    def _log_probs(self, carries: list[Carry]) -> np.ndarray:
        return np.concatenate([fetch(kept_log_prob(self.kernel, self.target, carry.states)) for carry in carries])

    def codes(self) -> np.ndarray:
        """(chains, d) where they are."""
        found = [fetch(_kept(self.kernel, self.target, carry.states)) for carry in self.carries]
        return np.concatenate(found)[: self.num]

    def words(self, phase: int) -> list[Any]:
        """(chains, 2) of their keys in this phase, group by group, laid out over the devices."""
        if phase not in self._keys:
            self._keys = {phase: [spread(self.mesh, chain_keys(self.seed, phase, own)) for own in self.groups]}
        return self._keys[phase]

    def advance(self, clock: Clock, steps: int) -> None:
        """That many steps, within the block of the clock; they may still be under way when this returns."""
        self.step(clock.phase, clock.done, steps, clock.block_start, clock.thin)

    def step(self, phase: int, first: int, steps: int, start: int, thin: int = 1) -> None:
        """Steps first..first + steps of a phase; draw t // thin goes to row t // thin - start of the block."""
        stop = {"first": first, "stop": first + steps, "start": start, "thin": thin}
        told = {name: np.int32(value) for name, value in stop.items()}
        words, carries = self.words(phase), self.carries
        if self._crew is None:
            self._carries = [advance(self.mesh, self.recording, self.kernel, self.target, words[0], carries[0], told)]
            return
        if self._executable is None:  # here, not in threads: what a program is compiled for may be set for one thread only
            given = (self.mesh, self.recording, self.kernel, self.target, words[0], carries[0], told)
            self._executable = advance.executable(*given)
        if steps:
            run = partial(self._executable, self.kernel, self.target)
            self._crew.begin([partial(run, own, carry, told) for own, carry in zip(words, carries, strict=True)])

    def wait(self) -> None:
        """Until the steps that are under way are made."""
        if self._crew is not None:
            self._carries = self._crew.wait() or self._carries
        jax.block_until_ready(self._carries)

    def rows_of(self, block: Blocks, first: int, stop: int) -> Block:
        """Rows first..stop of a block, of the chains that were asked for."""
        host = [fetch(own) for own in block]
        if len(host) == 1:
            return {name: x[first:stop, : self.num] for name, x in host[0].items()}
        return {name: np.concatenate([own[name][first:stop] for own in host], 1)[:, : self.num] for name in host[0]}

    def no_rows(self) -> Block:
        return {name: np.zeros((0, self.num, *x.shape[2:]), x.dtype) for name, x in self._carries[0].block.items()}

    def rows_since(self, clock: Clock, row: int, names: Any = None) -> Block:
        """Rows of the block now on the devices, from `row` of this phase to the newest."""
        start = max(clock.num_rows - 1, 0) // self.rows * self.rows
        block = [{name: own[name] for name in names or own} for own in self.block]
        return self.rows_of(block, max(row - start, 0), clock.num_rows - start)

    @property
    def undefined(self) -> int:
        return int(np.concatenate([fetch(carry.undefined) for carry in self.carries])[: self.num].sum())

    @property
    def counts(self) -> dict[str, Any]:
        """What the kernel counted on the way, such as the round trips of replicas."""
        if type(self.kernel).counts is Kernel.counts:
            return {}
        states = [fetch(carry.states) for carry in self.carries]
        return self.kernel.counts(jax.tree.map(lambda *x: np.concatenate(x)[: self.num], *states))

    # ---- in a checkpoint -----------------------------------------------------------------------------------------

    def as_arrays(self, clock: Clock) -> dict[str, np.ndarray]:
        """Everything that is carried, with the filled rows of the block."""
        filled = clock.num_rows - clock.block_start
        host = _joined([fetch(without_stamps(carry)) for carry in self.carries])
        return pack(per_chain(host, lambda x, axis: x[: self.num] if axis == 0 else x[:filled, : self.num]), "carry")

    def go_back(self, clock: Clock, arrays: dict[str, np.ndarray], path: Path) -> None:
        """To what `as_arrays` wrote at this clock; StorageError where that was another kernel's or target's."""
        filled = clock.num_rows - clock.block_start
        codes = jax.ShapeDtypeStruct((self.size, self.target.space.num_sites), np.int32)
        shapes = jax.eval_shape(lambda c: self._begin(c, self.groups[0]), codes)

        def stored(x: Any, axis: int) -> Any:
            return jax.ShapeDtypeStruct((self.num, *x.shape[1:]) if axis == 0 else (filled, self.num, *x.shape[2:]), x.dtype)

        host = unpack(per_chain(without_stamps(shapes), stored), arrays, "carry", path)
        self._check_codes(host)
        host = per_chain(host, lambda x, axis: _grown(x if axis == 0 else _with_rows(x, self.rows), self.groups.size, axis))
        groups = [per_chain(host, partial(_taken, own)) for own in self.groups]
        self._carries = [spread_carry(self.mesh, with_stamps(own, shapes, self.target.stamp)) for own in groups]

    def _check_codes(self, host: Carry) -> None:
        """ValueError where a state or a draw is none of the space."""
        space = self.target.space
        if "s" in host.block and host.block["s"].size and host.block["s"].max() >= space.num_values:
            raise ValueError(f"draws outside {space}")
        codes = np.asarray(_kept(self.kernel, self.target, jax.tree.map(jax.numpy.asarray, host.states)))
        check_codes(space, codes, self.num)

    def check(self, path: Path) -> None:
        """StorageError where the target has another log_prob at the chains' own states than their checkpoint says."""
        again = [
            self._begin(_kept(self.kernel, self.target, c.states), own) for c, own in zip(self.carries, self.groups, strict=True)
        ]
        expected, found = (self._log_probs(carries)[: self.num] for carries in (self.carries, again))
        check_log_probs(path, "log_prob at a chain's state", expected, found)


@program(once=True)
def _kept(kernel: Kernel, target: Target, states: Any) -> jax.Array:
    return kept_codes(kernel, target, states)


def _joined(carries: list[Carry]) -> Carry:
    """Groups of chains as one, on the host."""
    if len(carries) == 1:
        return carries[0]
    parts = [per_chain(carry, lambda x, axis: _Part(x, axis)) for carry in carries]
    is_part = lambda x: isinstance(x, _Part)  # noqa: E731
    return jax.tree.map(lambda *own: np.concatenate([x.array for x in own], own[0].axis), *parts, is_leaf=is_part)


class _Part(NamedTuple):
    array: np.ndarray
    axis: int


def _taken(chains: np.ndarray, x: np.ndarray, axis: int) -> np.ndarray:
    return np.take(x, chains, axis)


def _grown(x: np.ndarray, num_chains: int, axis: int) -> np.ndarray:
    """The last chain repeated."""
    last = np.take(x, [-1], axis)
    return np.concatenate([x, np.repeat(last, num_chains - x.shape[axis], axis)], axis)


def _with_rows(x: np.ndarray, rows: int) -> np.ndarray:
    return np.concatenate([x, np.zeros((rows - len(x), *x.shape[1:]), x.dtype)])


def group_size(num_chains: int, space: Space, num_devices: int = 1) -> int:
    """Chains of a group. On several devices, or on one that is no CPU, all chains are one group.

    The number of groups is the largest power of two for which each has enough to do, and few chains are added to fill them.
    """
    if num_devices > 1 or jax.default_backend() != "cpu" or jax.process_count() > 1:
        return -(-num_chains // num_devices) * num_devices
    most = min(num_chains * space.num_sites * space.num_values // _LEAST, num_chains, MOST)
    num = 1
    while 2 * num <= most:
        num *= 2
    while num * -(-num_chains // num) > _WASTE * num_chains:
        num //= 2
    return -(-num_chains // num)


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Crew:
    """Threads that do a list of tasks, one thread a core; `wait` gives their results, in order, or raises what one raised."""

    def __init__(self, num_tasks: int):
        self._threads = ThreadPoolExecutor(min(cores(), num_tasks), "saltus")
        self._under_way: list[Future] = []

    def begin(self, tasks: Sequence[Callable[[], Any]]) -> None:
        self._under_way = [self._threads.submit(_finished, task) for task in tasks]

    def wait(self) -> list[Any]:
        under_way, self._under_way = self._under_way, []
        return [task.result() for task in under_way]


def _finished(task: Callable[[], Any]) -> Any:
    """JAX returns before it is done; a core that took the next group then would not be free for it."""
    return jax.block_until_ready(task())
