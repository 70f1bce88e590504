"""`sample` and `resume`: what was asked is read and checked, then carried out."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

from ..engine.arguments import (
    Options,
    Settings,
    check_observables,
    read_flag,
    read_path,
    read_settings,
    read_target,
)
from ..engine.checkpoint import Checkpoint, check_codes, check_fingerprint
from ..engine.drive import interruptible
from ..engine.files import understood
from ..engine.loop import first_does
from ..engine.progress import make_progress
from ..engine.recording import Recording
from ..engine.samplers import check_kernel_fits, warn_of_parity
from ..errors import RunError
from ..target import Target
from .carry_out import carry_out
from .choice import Choice, choose, stored_choice
from .plan import Plan, check_places, check_room, estimate, find_state, own_state
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


def resume(
    path: Any,
    target: Target,
    *,
    num_draws: int | None = None,
    keep: Any = None,
    progress: bool = True,
    time_limit: float | None = None,
    checkpoint_every: float = 10.0,
    store: Any = None,
) -> xr.DataTree:
    """Go on with the run whose checkpoint is at `path`, bit for bit as if it had never stopped.

    num_draws: more draws than were asked for at first. keep: the observables again, where the run keeps some
    (functions are not stored). store: where the draws are, of a run whose store is not beside its checkpoint.
    A finished run is returned as it is.

    path: the checkpoint, a folder. target: the target of the run; another one is refused.
    progress, time_limit, checkpoint_every: as for `sample`.
    """
    began, target = time.monotonic(), read_target(target)
    options = Options.read(progress, time_limit, checkpoint_every, began)
    folder = read_path(path, "path")
    if folder is None:
        raise RunError("`path` is missing.", expected="the folder given as checkpoint=", found="None")
    saved, given = Checkpoint(folder), read_path(store, "store")
    saved.read_run()  # what is no checkpoint is not locked
    first_does(saved.take)
    try:
        plan, header = _stored_plan(saved, target, num_draws, keep, given)
        state = own_state(plan, header)
        if plan.settings.num_draws > header["settings"]["num_draws"]:
            first_does(lambda: saved.update(*plan.as_data()))  # a longer run from now on
        return carry_out(plan, options, state)
    finally:
        saved.free()


def _stored_plan(saved: Checkpoint, target: Target, num_draws: Any, keep: Any, given: Any) -> tuple[Plan, dict[str, Any]]:
    """The plan of a checkpoint, and the header that says so; perhaps with more draws. given: where its store is."""
    header, arrays = saved.read_run()
    check_fingerprint(saved.folder, header, arrays.get("probes"), target)
    with understood(saved.folder / "run.npz"):
        _same_again(target, header["settings"], None, _stand_in(header["settings"]))  # what is stored, as if it were given
        choice = stored_choice(header, arrays)
        check_kernel_fits(choice.kernel, target)
        check_codes(target.space, choice.codes, header["settings"]["num_chains"])
        store = saved.store_of(header, given)
    settings, recording = _same_again(target, header["settings"], num_draws, keep)
    check_observables(recording, target)
    check_room(target, settings, recording, store)
    return Plan(target, settings, recording, choice, store, saved, header.get("run_id", "")), header


def _stand_in(asked: dict[str, Any]) -> Any:
    """For observables, which are not stored: any functions of these names."""
    return {str(name): len for name in asked["keep"]} if asked["keep_kind"] == "observables" else None


def _same_again(target: Target, asked: dict[str, Any], num_draws: Any, keep: Any) -> tuple[Settings, Recording]:
    """The settings of a checkpoint, perhaps with more draws."""
    names = tuple(asked["keep"])
    stored = Settings(**{**asked, "keep": names})
    observed = stored.keep_kind == "observables"
    if keep is not None and not observed:
        raise RunError("`keep` cannot be changed.", expected=f"nothing: this run keeps {', '.join(names)}", found=repr(keep))
    if observed and (not isinstance(keep, dict) or tuple(keep) != names):
        raise RunError(
            "This run keeps observables, and functions are not stored.",
            expected=f"keep={{{', '.join(f'{n!r}: ...' for n in names)}}}",
            found=repr(keep),
        )
    again = {**vars(stored), "keep": keep if observed else names}
    again.pop("keep_kind")
    if num_draws is not None:
        again["num_draws"] = num_draws
    settings, recording = read_settings(target.space, **again)
    if settings.num_draws < stored.num_draws:
        raise RunError(
            "`num_draws` is smaller than it was.", expected=f"at least {stored.num_draws}", found=str(settings.num_draws)
        )
    return settings, recording
