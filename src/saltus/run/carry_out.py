"""A plan carried out: places opened, chains started or found again, driven to their end, and returned."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

from ..engine.arguments import Options
from ..engine.chains import Chains
from ..engine.drive import INTERRUPTED, drive, interruptible
from ..engine.kept import Kept
from ..engine.loop import first_does
from ..engine.progress import Silent, make_progress
from ..engine.store import Store
from ..errors import ConvergenceWarning
from .outcome import attributes_of, create_store, judged, memory_tree, stored_tree
from .plan import Plan
from .running import Run

if TYPE_CHECKING:
    import xarray as xr


def carry_out(plan: Plan, options: Options, state: Any, overwrite: bool = False, pressed: int = 0) -> xr.DataTree:
    """Drive the plan from a state, or from its start, to its end.

    overwrite: whether it may begin in place of another run. pressed: how often Ctrl-C was, before.
    """
    store = Store(plan.store, plan.target.space, plan.settings.num_chains, plan.rows) if plan.store else None
    try:
        return _carried_out(plan, options, state, store, overwrite, pressed)
    finally:
        if store:
            store.free()
        if plan.checkpoint:
            plan.checkpoint.free()


def _carried_out(plan: Plan, options: Options, state: Any, store: Store | None, overwrite: bool, pressed: int) -> xr.DataTree:
    """As the only writer."""
    with interruptible(count=pressed) as presses, make_progress(options.progress) as progress:
        run = _started(plan, store, state, options.deadline, progress, overwrite)
        reason = drive(run, progress, presses, options.deadline, options.checkpoint_every)
        presses.last_words()
        run.end(reason)
        attributes = attributes_of(plan, run, reason)
        if attributes["cut"] and (options.time_limit or reason):
            why = "The interrupt" if reason == INTERRUPTED else "`time_limit`"
            _warn_of_haste(why, attributes["cut"], can_go_on=bool(plan.checkpoint) and not run.clock.draws_so_far)
        if reason:
            progress.tell(f"incomplete ({reason}): {run.clock.draws_so_far} draws of {plan.settings.num_draws}")
        tree = stored_tree(plan, store, run.kept, attributes) if store else memory_tree(plan, run.kept, attributes)
    doubt = judged(tree, store)
    if doubt:
        warnings.warn(doubt, ConvergenceWarning, stacklevel=4)
    return tree


def _started(plan: Plan, store: Store | None, state: Any, deadline: float, progress: Silent, overwrite: bool) -> Run:
    """The run at its first chunk."""
    began, settings = time.perf_counter(), plan.settings
    chains = Chains(settings, plan.recording, plan.choice.kernel, plan.target, plan.rows)
    progress.say(f"starting {settings.num_chains} chains" if state is None else "going on from the checkpoint")
    if state is None:
        chains.start(plan.choice.codes)
    first_does(lambda: _open_places(plan, store, state is None, overwrite))  # only now that the chains have a start
    kept = Kept(plan.target.space, settings, plan.rows, store, plan.checkpoint, plan.choice.kernel.weighted)
    run = Run(plan, chains, kept, deadline, progress)
    if state:
        run.go_back(*state)
    run.clock.times.compile += time.perf_counter() - began
    return run


def _open_places(plan: Plan, store: Store | None, fresh: bool, overwrite: bool) -> None:
    """Create what is to be written to, or open it again, as the only writer."""
    if plan.checkpoint and fresh:
        begun = plan.checkpoint.taken  # by this very run, which was killed before its first state
        plan.checkpoint.create(*plan.as_data(), replace=overwrite or begun)
        overwrite = overwrite or begun
    if fresh:
        if store:
            create_store(plan, store, overwrite)
        return
    if store:
        store.reopen(complete=0, incomplete_because="not finished yet", num_draws=plan.settings.num_draws)


def _warn_of_haste(why: str, cut: str, can_go_on: bool) -> None:
    """One warning where the time limit, or an interrupt, left something out."""
    advice = "To go on, repeat the call." if can_go_on else "Trust these draws less, or allow more time."
    warnings.warn(f"{why} left no time for all of {cut}. {advice}", stacklevel=5)
