r"""Chains in groups, and the cores that take groups.

A group is stepped by one compiled loop, and how many chains it has depends on the number of chains and on the target alone:
arithmetic may round otherwise where more chains are stepped at once, and draws must not depend on the machine's cores. How
many groups are under way at a time does depend on them: every core takes one, and the next when it is done.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from ..spaces import Space

_LEAST = 2**13  # chains times sites times values: groups of fewer are over before a second core would help
_MOST = 16  # groups
_WASTE = 1.05  # chains that are stepped, over those that were asked for: all groups have the same number


def group_size(num_chains: int, space: Space, num_devices: int = 1) -> int:
    """Chains of a group. On several devices, or on one that is no CPU, all chains are one group.

    The number of groups is the largest power of two for which each has enough to do, and few chains are added to fill them.
    """
    if num_devices > 1 or jax.default_backend() != "cpu" or jax.process_count() > 1:
        return -(-num_chains // num_devices) * num_devices
    most = min(num_chains * space.num_sites * space.num_values // _LEAST, num_chains, _MOST)
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
