"""`sample`: what was asked is read and checked, the sampler chosen, and the plan carried out."""

from __future__ import annotations

import secrets
import time
import warnings
from typing import TYPE_CHECKING, Any

from ..engine.arguments import Options, Settings, check_observables, read_flag, read_path, read_settings, read_target
from ..engine.chains import Chains
from ..engine.checkpoint import Checkpoint
from ..engine.drive import INTERRUPTED, drive, interruptible
from ..engine.kept import Kept
from ..engine.loop import first_does
from ..engine.progress import Silent, make_progress
from ..engine.samplers import warn_of_parity
from ..engine.store import Store
from ..errors import ConvergenceWarning
from ..target import Target
from .choice import Choice, choose
from .outcome import attributes_of, create_store, judged, memory_tree, stored_tree
from .plan import Plan, check_places, estimate, find_state
from .running import Run
from .weights import check_weights

if TYPE_CHECKING:
    import xarray as xr


def sample(
    target: Target,
    sampler: Any = "auto",
    *,
    num_draws: int = 1000,
    num_warmup: int = 1000,
    num_chains: int = 4,
    seed: int = 0,
    initial: Any = None,
    thin: int | str = "auto",
    progress: bool = True,
    time_limit: float | None = None,
    checkpoint: Any = None,
    checkpoint_every: float = 10.0,
    store: Any = None,
    keep: Any = "draws",
    keep_warmup: bool = False,
    overwrite: bool = False,
    adaptation: str = "default",
) -> xr.DataTree:
    """Draw from a target; returns an `xarray.DataTree` that ArviZ reads.

    sampler: "auto" races those that apply, by effective draws per second, and tempers where chains disagree; the run says which won
        and why.
        A kernel such as `saltus.NCG(step_size=0.5)` is used as it is; a class or name ("pavg") is tuned first, by
        `saltus.tune(target, sampler, seed, adaptation=adaptation)`. A list races: `["auto", MyKernel]` all of the package and
        this one, `["ncg", MyKernel(0.3)]` just these; kernels in it race as they are. Sampling itself never adapts.
    num_draws, num_warmup, num_chains: draws kept and burn-in steps of each chain.
    thin: steps per draw; "auto" chooses it from the warm-up, for at least 400 effective draws where a minute is enough.
    seed: the numbers of step t of chain c depend on (seed, c, t) only. Runs of the same seed are therefore coupled: from other
        starts they may even meet, which proves nothing. `saltus.random.seeds(seed, num)` gives seeds of independent runs.
    initial: states, shown or embedded: one for all chains or one each; None: `target.initial`, or random states.
    time_limit: seconds from the call after which to end with the draws so far, at least one a chain. Ctrl-C and SIGTERM do the
        same; a second one ends the process, with the last checkpoint intact.
        Where time is short, race, tuning and warm-up are cut; a warning and `run.attrs["cut"]` say which. With a checkpoint
        the warm-up is not cut: the next call goes on with it, and what is returned are the states that it has come to.
    checkpoint: a folder to go on from after a kill; the same call repeated, or `saltus.resume`, continues bit for bit.
        It is brought up to date every `checkpoint_every` seconds.
    store: "run.zarr": draws stream to disk and are read lazily; memory stays flat.
    keep: "draws"; or streaming statistics, some of "mean", "covariance", "pairs", "best"; or {name: function of s}.
    keep_warmup: warm-up steps too, in groups of their own. overwrite: replace an existing checkpoint or store.

    Where the draws are to be doubted there is one `saltus.ConvergenceWarning`; `run.attrs["verdict"]` is "ok" or one of the
    words that docs/runs.md lists, and `saltus.summary(run)` says all.

    progress: show progress on a terminal; Python's logger `saltus` gets it in any case.
    """
    began, target = time.monotonic(), read_target(target)
    asked = dict(num_draws=num_draws, num_warmup=num_warmup, num_chains=num_chains, seed=seed, thin=thin, keep=keep)
    settings, recording = read_settings(target.space, **asked, keep_warmup=keep_warmup)
    options = Options.read(progress, time_limit, checkpoint_every, began)
    folder, store_path = read_path(checkpoint, "checkpoint"), read_path(store, "store")
    overwrite = read_flag(overwrite, "overwrite")
    check_observables(recording, target)
    saved = Checkpoint(folder) if folder else None
    check_places(target, settings, recording, store_path, saved, overwrite)  # before a race, not after it
    with make_progress(options.progress) as shown:
        if told := estimate(target, settings, recording, store_path):
            shown.tell(told)
        asked_for = dict(initial=initial, adaptation=adaptation, progress=shown, stored=folder is not None)
        asked_for["folder"] = None if overwrite else folder
        choice, pressed = _chosen(sampler, target, settings, options, asked_for)
    check_weights(choice.kernel, settings)
    warn_of_parity(choice.kernel, target.space, settings.thin)
    plan = Plan(target, settings, recording, choice, store_path, saved, secrets.token_hex(16))
    try:
        plan, state = find_state(plan, overwrite)
        return carry_out(plan, options, state, overwrite, pressed)
    finally:
        if saved:
            saved.free()


def _chosen(sampler: Any, target: Target, settings: Settings, options: Options, asked: dict[str, Any]) -> tuple[Choice, int]:
    """The sampler, and how often Ctrl-C was pressed meanwhile: once cuts race and tuning as if time were up."""
    with interruptible(patience=1):
        try:
            return choose(sampler, target, settings, deadline=options.deadline, **asked), 0
        except KeyboardInterrupt:
            asked["progress"].tell("interrupted: race and tuning are cut short")
    with interruptible(patience=1):
        return choose(sampler, target, settings, deadline=time.monotonic(), **asked), 1


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
