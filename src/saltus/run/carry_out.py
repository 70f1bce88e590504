"""A plan carried out: places opened, chains started or found again, driven to their end, and returned."""

from __future__ import annotations

import shutil
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..errors import RunError
from .checkpoint import check_log_probs
from .drive import Run, drive, interruptible
from .kept import Kept
from .loop import begin, chain_mesh, everywhere, fetch, first_does, spread
from .outcome import attributes_of, create_store, memory_tree, stored_tree
from .plan import Plan
from .progress import make_progress
from .settings import Options
from .start import start_points
from .store import Store

if TYPE_CHECKING:
    import xarray as xr


def carry_out(plan: Plan, options: Options, state: Any) -> xr.DataTree:
    """Drive the plan from a state, or from its start, to its end."""
    store = Store(plan.store, plan.target.space, plan.settings.num_chains, plan.rows) if plan.store else None
    with interruptible() as presses, make_progress(options.progress) as progress:
        run = _started(plan, store, state, progress)
        begun = (run.phase, run.done)
        reason = drive(run, progress, presses, options.time_limit, options.checkpoint_every)
        presses.count, presses.patience = 0, 3  # what follows is short and saves the draws
        _need_draws(plan, run, reason, begun, options)
        run.end()
        attributes = attributes_of(plan, run, reason)
        if reason:
            progress.tell(f"incomplete ({reason}): {run.num_draws} draws of {plan.settings.num_draws}")
        return stored_tree(plan, store, run, attributes) if store else memory_tree(plan, run, attributes)


def _started(plan: Plan, store: Store | None, state: Any, progress: Any) -> Run:
    """The run at its first chunk."""
    began, settings, mesh = time.perf_counter(), plan.settings, chain_mesh()
    padded = -(-settings.num_chains // mesh.size) * mesh.size  # every device has the same number of chains
    numbers = np.arange(padded, dtype=np.int32)
    kernel, target = everywhere(mesh, (plan.choice.kernel, plan.target))

    def begin_at(codes: Any) -> Any:
        return begin(mesh, plan.recording, plan.rows, kernel, target, codes)

    progress.say(f"starting {settings.num_chains} chains" if state is None else "going on from the checkpoint")
    if state is None:
        carry = start_points(lambda codes: begin_at(spread(mesh, codes)), plan.target, plan.choice.codes, numbers, settings.seed)
    else:  # its shapes; `restore` has its numbers
        carry = jax.eval_shape(begin_at, jax.ShapeDtypeStruct((padded, plan.target.space.num_sites), np.int32))
    first_does(lambda: _open_places(plan, store, fresh=state is None))  # only now that the chains have a start
    kept = Kept(plan.target.space, settings, plan.rows, store, plan.checkpoint)
    run = Run(settings, plan.recording, kernel, target, mesh, numbers, plan.rows, carry, kept, plan.checkpoint)
    run.measured, run.raced = plan.choice.steps_per_effective, plan.choice.evaluations
    if state:
        run.restore(*state)
        if not run.finished:
            _check_chains(plan, run, begin_at)
    run.times.compile += time.perf_counter() - began
    return run


def _check_chains(plan: Plan, run: Run, begin_at: Any) -> None:
    """StorageError where the target has another log_prob at the chains' own states than the checkpoint says."""
    assert plan.checkpoint
    expected, found = fetch((run.carry.points.log_prob, begin_at(run.carry.points.codes).points.log_prob))
    num = plan.settings.num_chains
    check_log_probs(plan.checkpoint.folder, "log_prob at a chain's state", expected[:num], found[:num])


def _open_places(plan: Plan, store: Store | None, fresh: bool) -> None:
    """Create what is to be written to, or open it again."""
    if plan.checkpoint and fresh:
        plan.checkpoint.create(*plan.as_data())
    if store and fresh:
        create_store(plan, store)
    elif store:
        store.reopen(complete=0, incomplete_because="not finished yet", num_draws=plan.settings.num_draws)


def _need_draws(plan: Plan, run: Run, reason: str, begun: tuple[int, int], options: Options) -> None:
    """RunError where the time limit left no draw and, with a checkpoint, not even a step."""
    if reason != "time limit" or run.num_draws or (plan.checkpoint and (run.phase, run.done) != begun):
        return
    if plan.store and not plan.checkpoint:
        first_does(partial(shutil.rmtree, plan.store))  # empty, and in the way of the next attempt
    raise RunError(
        "`time_limit` is too short for a single draw.",
        expected=f"more than {options.spent + (options.time_limit or 0):g} s",
        found=f"{options.spent:.1f} s went to choosing the sampler and {run.times.compile:.1f} s to compiling; "
        f"{run.doing} was then at step {run.done} of {run.total}",
        hint="allow more time, or less warm-up" + ("" if plan.checkpoint else "; nothing was kept"),
    )
