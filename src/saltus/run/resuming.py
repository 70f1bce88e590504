"""`resume`: the plan that a checkpoint holds, carried out from where its run stopped."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..engine.arguments import Options, Settings, check_observables, read_path, read_settings, read_target
from ..engine.checkpoint import Checkpoint, check_codes, check_fingerprint
from ..engine.files import understood
from ..engine.loop import first_does
from ..engine.recording import Recording
from ..engine.samplers import check_kernel_fits
from ..errors import RunError
from ..target import Target
from .choice import stored_choice
from .plan import Plan, check_room, own_state
from .sample import carry_out

if TYPE_CHECKING:
    import xarray as xr


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
