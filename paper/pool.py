"""Batches of cells, in processes here or on a dask cluster: a batch is one sampler and seed, so that each compiles once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import Any

import saltus

from .experiment import Cell
from .experiments import EXPERIMENTS
from .folder import Folder

_XLA = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
PATIENCE = 10.0  # seconds to wait for a scheduler
_LOOK_EVERY = 1.0  # seconds between two counts of the finished cells


def measure_cell(cell: Cell, folder: Folder) -> None:
    """Measure one cell and keep it."""
    start = time.monotonic()
    measured = EXPERIMENTS[cell.experiment].measure(cell, folder.settings, folder.path)
    folder.save(cell, {**measured, "cell_seconds": time.monotonic() - start})


def batches(cells: list[Cell]) -> list[list[Cell]]:
    """Neighbouring cells of one experiment, sampler and seed."""
    return [list(group) for _, group in groupby(cells, key=lambda cell: (cell.experiment, cell.sampler, cell.seed))]


def measure_in_processes(
    cells: list[Cell], folder: Folder, workers: int, say: Callable[[str], None], dask: str | None = None
) -> None:
    """All cells, `workers` batches at a time, each worker with one thread; or on the dask cluster of this scheduler.

    A batch that fails does not stop the others: the first error is raised when all that can be measured has been.
    say: told how many are done, now and then.
    """
    work = batches(cells)
    began, told = time.monotonic(), -1
    parent, at_a_time = (os.getpid(), f"{workers} at a time") if dask is None else (None, f"on {dask}")
    with _processes(min(workers, len(work))) if dask is None else _cluster(dask) as executor:
        submitted = [executor.submit(_measure_batch, batch, folder, parent) for batch in work]
        left = set(submitted)
        while left:
            left = wait(left, timeout=_LOOK_EVERY).not_done
            done = sum(folder.file(cell).exists() for cell in cells)
            if done == told:
                continue
            told, rest = done, (time.monotonic() - began) / done * (len(cells) - done) if done else None
            say(f"{done} of {len(cells)} cells done, {at_a_time}" + (f"  about {duration(rest)} left" if rest else ""))
        for future in submitted:
            _result(future)


def _result(future: Any) -> None:
    try:
        future.result()
    except BrokenProcessPool as cause:
        raise saltus.RunError(
            "A worker process ended before its work did.",
            expected="enough memory for every worker",
            found="a process that was killed, or that crashed",
            hint="the same command goes on; --workers 1 needs the least memory",
        ) from cause


@contextmanager
def _cluster(scheduler: str) -> Iterator[Executor]:
    """A dask cluster that others have started, and that sees the same files; what has not begun is taken back on an interrupt."""
    try:
        from distributed import Client
    except ImportError as cause:
        raise saltus.RunError(
            "dask.distributed is not installed.", expected="distributed", hint="pip install 'saltus[sweep]'"
        ) from cause
    try:
        client = Client(scheduler, timeout=PATIENCE)
    except (OSError, ValueError) as cause:
        raise saltus.RunError(
            f"There is no dask scheduler at {scheduler}.",
            expected="the address that `dask scheduler` printed, such as tcp://host:8786",
            found=f"{type(cause).__name__}: {cause}",
            hint="start one with `dask scheduler`, and workers of one thread each with `dask worker ADDRESS --nthreads 1`",
        ) from cause
    with client:
        executor = client.get_executor(pure=False)
        try:
            yield executor
        finally:
            executor.shutdown(wait=False)


@contextmanager
def _processes(workers: int) -> Iterator[Executor]:
    """Fresh processes of one thread each, none of which outlives an interrupt."""
    before, outer = set(multiprocessing.active_children()), dict(os.environ)
    os.environ["XLA_FLAGS"] = f"{outer.get('XLA_FLAGS', '')} {_XLA}"  # read by jax where the processes start
    os.environ["OMP_NUM_THREADS"] = "1"  # and this by LAPACK
    executor = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_begin)
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    finally:
        executor.shutdown()
        for name in ("XLA_FLAGS", "OMP_NUM_THREADS"):
            os.environ.pop(name)
            os.environ.update({name: outer[name]} if name in outer else {})


def _begin() -> None:
    """An interrupt is the parent's to answer."""
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _measure_batch(batch: list[Cell], folder: Folder, parent: int | None) -> None:
    for cell in batch:
        if parent not in (None, os.getppid()):
            return  # it was killed, and whoever goes on must not find a second writer
        if not folder.file(cell).exists():
            measure_cell(cell, folder)


def duration(seconds: float) -> str:
    """75 -> '1:15'."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"
