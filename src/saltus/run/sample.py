"""`sample` and `resume`: what was asked is read and checked, then carried out."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RunError
from ..target import Target
from .carry_out import carry_out
from .checkpoint import Checkpoint, check_fingerprint
from .choice import choose, stored_choice
from .loop import first_does
from .plan import Plan, check_apart, check_places, check_room
from .progress import make_progress
from .recording import Recording
from .settings import (
    Options,
    Settings,
    check_observables,
    read_flag,
    read_path,
    read_settings,
    read_target,
    warn_of_parity,
)
from .store import check_store

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

    sampler: "auto" races those that apply, by effective draws per second on this machine; the run says which won and why.
        A kernel such as `saltus.NCG(step_size=0.5)` is used as it is; a class or name ("pavg") is tuned first, by
        `saltus.tune(target, sampler, seed, adaptation=adaptation)`. Either way it is frozen: sampling never adapts.
    num_draws, num_warmup, num_chains: draws kept and burn-in steps of each chain.
    thin: steps per draw; "auto" chooses it from the warm-up, for at least 400 effective draws where a minute is enough.
    seed: the numbers of step t of chain c depend on (seed, c, t) only.
    initial: states, shown or embedded: one for all chains or one each; None: `target.initial`, or random states.
    time_limit: seconds after which to end with the draws so far. Ctrl-C does the same.
    checkpoint: a folder to go on from after a kill; the same call repeated, or `saltus.resume`, continues bit for bit.
        It is brought up to date every `checkpoint_every` seconds.
    store: "run.zarr": draws stream to disk and are read lazily; memory stays flat.
    keep: "draws"; or streaming statistics, some of "mean", "covariance", "pairs", "best"; or {name: function of s}.
    keep_warmup: warm-up steps too, in groups of their own. overwrite: replace an existing checkpoint or store.
    """
    target = read_target(target)
    asked = dict(num_draws=num_draws, num_warmup=num_warmup, num_chains=num_chains, seed=seed, thin=thin, keep=keep)
    settings, recording = read_settings(target.space, **asked, keep_warmup=keep_warmup)
    options = Options.read(progress, time_limit, checkpoint_every)
    folder, store_path = read_path(checkpoint, "checkpoint"), read_path(store, "store")
    overwrite = read_flag(overwrite, "overwrite")
    check_observables(recording, target)
    check_apart(store_path, folder)
    check_room(target, settings, recording, store_path)  # before a race, not after it
    if folder:
        Checkpoint(folder).check_place()
    if store_path and not (folder and folder.exists()):
        first_does(partial(check_store, store_path, overwrite, 0))
    began = time.monotonic()
    with make_progress(options.progress) as shown:
        choice = choose(
            sampler,
            target,
            settings,
            initial=initial,
            adaptation=adaptation,
            folder=None if overwrite else folder,
            deadline=began + (options.time_limit or float("inf")),
            progress=shown,
        )
    warn_of_parity(choice.kernel, target.space, settings.thin)
    plan = Plan(target, settings, recording, choice, store_path, Checkpoint(folder) if folder else None)
    return carry_out(plan, options.after(time.monotonic() - began), check_places(plan, overwrite))


def resume(
    path: Any,
    target: Target,
    *,
    num_draws: int | None = None,
    keep: Any = None,
    progress: bool = True,
    time_limit: float | None = None,
    checkpoint_every: float = 10.0,
) -> xr.DataTree:
    """Go on with the run whose checkpoint is at `path`, bit for bit as if it had never stopped.

    num_draws: more draws than were asked for at first. keep: the observables again, where the run keeps some
    (functions are not stored). A finished run is returned as it is.
    """
    target = read_target(target)
    options = Options.read(progress, time_limit, checkpoint_every)
    folder = read_path(path, "path")
    if folder is None:
        raise RunError("`path` is missing.", expected="the folder given as checkpoint=", found="None")
    saved = Checkpoint(folder)
    header, arrays = saved.read_run()
    check_fingerprint(folder, header, arrays["probes"], target)
    settings, recording = _same_again(target, header["settings"], num_draws, keep)
    check_observables(recording, target)
    store = _found_store(header["store"], folder)
    check_room(target, settings, recording, store)
    plan = Plan(target, settings, recording, stored_choice(header, arrays), store, saved)
    if plan.settings.num_draws > header["settings"]["num_draws"]:
        first_does(lambda: saved.update(*plan.as_data()))  # a longer run from now on
    return carry_out(plan, options, saved.read_state())


def _found_store(store: str | None, folder: Path) -> Path | None:
    """Where the store was, or beside the checkpoint where both were moved."""
    if store is None or Path(store).exists() or not (folder.parent / Path(store).name).exists():
        return Path(store) if store else None
    return folder.parent / Path(store).name


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
