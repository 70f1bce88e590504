"""The chains of a run on their devices: begun at states or found again in a checkpoint, advanced, and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..kernels import Kernel
from ..target import Target
from .arguments import Settings
from .checkpoint import check_codes, check_log_probs, pack, unpack
from .clock import Clock
from .keys import chain_keys, state_keys
from .loop import Carry, advance, begin, chain_mesh, everywhere, fetch, per_chain, spread, spread_carry
from .recording import Recording
from .sinks import Block
from .starts import start_chains
from .states import kept_codes, kept_log_prob, with_stamps, without_stamps


class Chains:
    """Every device has the same number of chains: where that is more than were asked for, the last are copies, never kept."""

    def __init__(self, settings: Settings, recording: Recording, kernel: Kernel, target: Target, rows: int):
        self.seed, self.num, self.recording, self.rows = settings.seed, settings.num_chains, recording, rows
        self.mesh = chain_mesh()
        self.numbers = np.arange(-(-self.num // self.mesh.size) * self.mesh.size, dtype=np.int32)
        self.kernel, self.target = everywhere(self.mesh, (kernel, target))
        self._keys: dict[int, Any] = {}
        self.carry: Any = None

    def start(self, codes: np.ndarray | None) -> None:
        """At these codes, or at the first random ones that are possible."""
        self.carry = start_chains(
            lambda c: self._begin(spread(self.mesh, c)), self._log_prob, self.target, codes, self.numbers, self.seed
        )

    def _begin(self, codes: Any) -> Carry:
        words = spread(self.mesh, state_keys(self.seed, self.numbers))
        return begin(self.mesh, self.recording, self.rows, self.kernel, self.target, codes, words)

    def _log_prob(self, carry: Carry) -> Any:
        return kept_log_prob(self.kernel, self.target, carry.states)

    def _words(self, phase: int) -> Any:
        """(chains, 2) of their keys in this phase, laid out over the devices."""
        if phase not in self._keys:
            self._keys = {phase: spread(self.mesh, chain_keys(self.seed, phase, self.numbers))}
        return self._keys[phase]

    def advance(self, clock: Clock, steps: int) -> None:
        """That many steps, within the block of the clock; they may still be under way when this returns."""
        stop = {"first": np.int32(clock.done), "stop": np.int32(clock.done + steps)}
        stop |= {"start": np.int32(clock.block_start), "thin": np.int32(clock.thin)}
        words = self._words(clock.phase)
        self.carry = advance(self.mesh, self.recording, self.kernel, self.target, words, self.carry, stop)

    def rows_of(self, block: dict[str, jax.Array], first: int, stop: int) -> Block:
        """Rows first..stop of a block, of the chains that were asked for."""
        return {name: x[first:stop, : self.num] for name, x in fetch(block).items()}

    def no_rows(self) -> Block:
        return {name: np.zeros((0, self.num, *x.shape[2:]), x.dtype) for name, x in self.carry.block.items()}

    def rows_since(self, clock: Clock, row: int, names: Any = None) -> Block:
        """Rows of the block now on the devices, from `row` of this phase to the newest."""
        start = max(clock.num_rows - 1, 0) // self.rows * self.rows
        block = {name: self.carry.block[name] for name in names or self.carry.block}
        return self.rows_of(block, max(row - start, 0), clock.num_rows - start)

    @property
    def undefined(self) -> int:
        return int(fetch(self.carry.undefined)[: self.num].sum())

    # ---- in a checkpoint -----------------------------------------------------------------------------------------

    def as_arrays(self, clock: Clock) -> dict[str, np.ndarray]:
        """Everything that is carried, with the filled rows of the block."""
        filled = clock.num_rows - clock.block_start
        host = fetch(without_stamps(self.carry))
        return pack(per_chain(host, lambda x, axis: x[: self.num] if axis == 0 else x[:filled, : self.num]), "carry")

    def go_back(self, clock: Clock, arrays: dict[str, np.ndarray], path: Path) -> None:
        """To what `as_arrays` wrote at this clock; StorageError where that was another kernel's or target's."""
        filled, padded = clock.num_rows - clock.block_start, len(self.numbers)
        codes = jax.ShapeDtypeStruct((padded, self.target.space.num_sites), np.int32)
        shapes = jax.eval_shape(self._begin, codes)

        def stored(x: Any, axis: int) -> Any:
            return jax.ShapeDtypeStruct((self.num, *x.shape[1:]) if axis == 0 else (filled, self.num, *x.shape[2:]), x.dtype)

        host = unpack(per_chain(without_stamps(shapes), stored), arrays, "carry", path)
        self._check_codes(host)
        host = per_chain(host, lambda x, axis: _grown(x if axis == 0 else _with_rows(x, self.rows), padded, axis))
        self.carry = spread_carry(self.mesh, with_stamps(host, shapes, self.target.stamp))

    def _check_codes(self, host: Carry) -> None:
        """ValueError where a state or a draw is none of the space."""
        space = self.target.space
        if "s" in host.block and host.block["s"].size and host.block["s"].max() >= space.num_values:
            raise ValueError(f"draws outside {space}")
        codes = np.asarray(jax.jit(kept_codes)(self.kernel, self.target, jax.tree.map(jax.numpy.asarray, host.states)))
        check_codes(space, codes, self.num)

    def check(self, path: Path) -> None:
        """StorageError where the target has another log_prob at the chains' own states than their checkpoint says."""
        codes = jax.jit(kept_codes)(self.kernel, self.target, self.carry.states)
        expected, found = fetch((self._log_prob(self.carry), self._log_prob(self._begin(codes))))
        check_log_probs(path, "log_prob at a chain's state", expected[: self.num], found[: self.num])


def _grown(x: np.ndarray, num_chains: int, axis: int) -> np.ndarray:
    """The last chain repeated."""
    last = np.take(x, [-1], axis)
    return np.concatenate([x, np.repeat(last, num_chains - x.shape[axis], axis)], axis)


def _with_rows(x: np.ndarray, rows: int) -> np.ndarray:
    return np.concatenate([x, np.zeros((rows - len(x), *x.shape[1:]), x.dtype)])
