"""`sample` and `resume`: what was asked is checked, the chains are started or found again, driven, and returned."""

from __future__ import annotations

import dataclasses
import datetime
import json
import platform
import shutil
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .. import errors
from ..kernels import Kernel
from ..target import Target
from .checkpoint import Checkpoint, check_fingerprint, check_log_probs, check_same_run, fingerprint
from .codec import from_data, to_data
from .drive import Run, drive, interruptible
from .kept import Kept
from .loop import begin, chain_mesh, everywhere, fetch, first_does, spread
from .progress import make_progress
from .recording import Recording, rows_per_block
from .result import kernel_variables, make_tree, open_run, site_names, statistic_variables
from .settings import (
    Settings,
    check_kernel_fits,
    check_memory,
    check_observables,
    draw_bytes,
    find_sampler,
    packed_bytes,
    read_flag,
    read_path,
    read_seconds,
    read_settings,
    read_target,
    warn_of_parity,
)
from .sinks import Statistics
from .start import initial_codes, start_points
from .store import Store, check_store

if TYPE_CHECKING:
    import xarray as xr


def sample(
    target: Target,
    sampler: Any,
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

    sampler: a kernel such as `saltus.NCG(step_size=0.5)` is used as it is; a class or name ("pavg") is tuned first, by
        `saltus.tune(target, sampler, seed, adaptation=adaptation)`, and frozen. Sampling never adapts.
    num_draws, num_warmup, num_chains: draws kept and burn-in steps of each chain. thin: steps per draw.
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
    options = _Options.read(progress, time_limit, checkpoint_every)
    folder, store_path = read_path(checkpoint, "checkpoint"), read_path(store, "store")
    overwrite = read_flag(overwrite, "overwrite")
    check_observables(recording, target)
    with make_progress(options.progress) as shown:
        kernel, tuning = _choose(sampler, target, settings.seed, initial, adaptation, None if overwrite else folder, shown)
    check_kernel_fits(kernel, target)
    warn_of_parity(kernel, target.space, settings.thin)
    codes = initial_codes(target, initial, settings.num_chains)
    plan = _Plan(target, settings, recording, kernel, codes, store_path, Checkpoint(folder) if folder else None, tuning)
    plan.check_room()
    return _carry_out(plan, options, _check_places(plan, overwrite))


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
    options = _Options.read(progress, time_limit, checkpoint_every)
    folder = read_path(path, "path")
    if folder is None:
        raise errors.RunError("`path` is missing.", expected="the folder given as checkpoint=", found="None")
    saved = Checkpoint(folder)
    header, arrays = saved.read_run()
    check_fingerprint(folder, header, arrays["probes"], target)
    settings, recording = _same_again(target, header["settings"], num_draws, keep)
    check_observables(recording, target)
    kernel = _stored_kernel(header, arrays)
    store = _found_store(header["store"], folder)
    plan = _Plan(target, settings, recording, kernel, arrays.get("initial"), store, saved, header["tuning"])
    plan.check_room()
    if plan.settings.num_draws > header["settings"]["num_draws"]:
        first_does(lambda: saved.update(*plan.as_data()))  # a longer run from now on
    return _carry_out(plan, options, saved.read_state())


def _found_store(store: str | None, folder: Path) -> Path | None:
    """Where the store was, or beside the checkpoint where both were moved."""
    if store is None or Path(store).exists() or not (folder.parent / Path(store).name).exists():
        return Path(store) if store else None
    return folder.parent / Path(store).name


def _choose(
    sampler: Any, target: Target, seed: int, initial: Any, adaptation: str, folder: Path | None, progress: Any
) -> tuple[Kernel, str]:
    """The kernel and how it came about: as given, tuned now, or as tuned when the checkpoint in `folder` was begun."""
    if isinstance(sampler, Kernel):
        return sampler, "none: the kernel was given"
    kind = find_sampler(sampler)
    if folder and (folder / "run.npz").exists():
        header, arrays = Checkpoint(folder).read_run()
        if header["kernel"]["record"] == kind.__name__:
            return _stored_kernel(header, arrays), header["tuning"]
    from ..adaptation import tune

    progress.say(f"tuning {kind.__name__} on {target.space}")
    tuned = tune(target, kind, seed, initial=initial, adaptation=adaptation)
    progress.tell(f"tuned to {tuned.kernel!r}")
    return tuned.kernel, str(tuned.report)


def _stored_kernel(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Kernel:
    return from_data(header["kernel"], {n.removeprefix("kernel."): a for n, a in arrays.items() if n.startswith("kernel.")})


def _same_again(target: Target, asked: dict[str, Any], num_draws: Any, keep: Any) -> tuple[Settings, Recording]:
    """The settings of a checkpoint, perhaps with more draws."""
    names = tuple(asked["keep"])
    stored = Settings(**{**asked, "keep": names})
    observed = stored.keep_kind == "observables"
    if keep is not None and not observed:
        raise errors.RunError("`keep` cannot be changed.", expected=f"nothing: this run keeps {', '.join(names)}", found=repr(keep))
    if observed and (not isinstance(keep, dict) or tuple(keep) != names):
        raise errors.RunError(
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
        raise errors.RunError(
            "`num_draws` is smaller than it was.", expected=f"at least {stored.num_draws}", found=str(settings.num_draws)
        )
    return settings, recording


@dataclasses.dataclass(frozen=True)
class _Options:
    """How to run, which does not change what is drawn."""

    progress: bool
    time_limit: float | None
    checkpoint_every: float

    @staticmethod
    def read(progress: Any, time_limit: Any, checkpoint_every: Any) -> _Options:
        every = read_seconds(checkpoint_every, "checkpoint_every")
        return _Options(read_flag(progress, "progress"), read_seconds(time_limit, "time_limit"), every if every else 10.0)


@dataclasses.dataclass(frozen=True)
class _Plan:
    """What is to be drawn, and where it goes."""

    target: Target
    settings: Settings
    recording: Recording
    kernel: Kernel
    codes: np.ndarray | None  # (chains, d) the first states; None: random ones
    store: Path | None
    checkpoint: Checkpoint | None
    tuning: str  # how the kernel was chosen

    @property
    def rows(self) -> int:
        """Rows of a block."""
        per_chain = draw_bytes(self.recording, self.target, self.settings) + self.target.space.num_sites
        return rows_per_block(self.settings.num_chains * per_chain)

    def statistics(self) -> Statistics | None:
        return Statistics(self.target.space, self.settings.statistics) if self.settings.statistics else None

    def check_room(self) -> None:
        settings = self.settings
        rows = settings.num_draws + settings.keep_warmup * settings.num_warmup
        if not self.store:
            check_memory(
                settings.num_chains * rows * draw_bytes(self.recording, self.target, settings),
                f"{rows} draws of {settings.num_chains} chains",
            )
        statistics = self.statistics()
        if statistics:
            check_memory(statistics.bytes_needed(settings.num_chains), "These statistics")

    def bytes_on_disk(self) -> float:
        rows = self.settings.num_draws + self.settings.keep_warmup * self.settings.num_warmup
        return self.settings.num_chains * rows * packed_bytes(self.recording, self.target, self.settings)

    def as_data(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(header, arrays) of a checkpoint's run.npz."""
        structure, leaves = to_data(self.kernel)
        told, probes = fingerprint(self.target)
        header = {
            "settings": {**vars(self.settings), "keep": list(self.settings.keep)},
            "kernel": structure,
            "kernel_repr": repr(self.kernel),
            "tuning": self.tuning,
            "store": str(self.store) if self.store else None,
            "fingerprint": told,
        }
        arrays = {"probes": probes, **{f"kernel.{name}": leaf for name, leaf in leaves.items()}}
        return header, arrays | ({"initial": self.codes} if self.codes is not None else {})


def _check_places(plan: _Plan, overwrite: bool) -> Any:
    """That everything can be written where it should, before anything is; the state to go on from, if this very run has one."""
    if plan.checkpoint and plan.store and {plan.store, *plan.store.parents} & {plan.checkpoint.folder}:
        raise errors.RunError(
            "`store` lies in `checkpoint`.",
            expected="two places",
            found=str(plan.store),
            hint="a store may lie beside a checkpoint",
        )
    if plan.checkpoint:
        plan.checkpoint.check_place()
        folder = plan.checkpoint.folder
        if plan.checkpoint.exists() and not overwrite:
            old = plan.checkpoint.read_run()
            check_fingerprint(folder, old[0], old[1]["probes"], plan.target)
            check_same_run(folder, old, plan.as_data())
            state = plan.checkpoint.read_state()
            if state:
                return state
            overwrite = True  # killed before its first state: what it wrote is ours to replace
    if plan.store:
        first_does(partial(check_store, plan.store, overwrite, plan.bytes_on_disk()))
    return None


def _carry_out(plan: _Plan, options: _Options, state: Any) -> xr.DataTree:
    """Drive the plan from a state, or from its start, to its end."""
    store = Store(plan.store, plan.target.space, plan.settings.num_chains, plan.rows) if plan.store else None
    with interruptible() as presses, make_progress(options.progress) as progress:
        run = _started(plan, store, state, progress)
        begun = (run.phase, run.done)
        reason = drive(run, progress, presses, options.time_limit, options.checkpoint_every)
        presses.count, presses.patience = 0, 3  # what follows is short and saves the draws
        _need_draws(plan, run, reason, begun, options)
        run.end()
        attributes = _attributes(plan, run, reason)
        if reason:
            progress.tell(f"incomplete ({reason}): {run.num_draws} draws of {plan.settings.num_draws}")
        return _stored_tree(plan, store, run, attributes) if store else _memory_tree(plan, run, attributes)


def _started(plan: _Plan, store: Store | None, state: Any, progress: Any) -> Run:
    """The run at its first chunk."""
    began, settings, mesh = time.perf_counter(), plan.settings, chain_mesh()
    padded = -(-settings.num_chains // mesh.size) * mesh.size  # every device has the same number of chains
    numbers = np.arange(padded, dtype=np.int32)
    kernel, target = everywhere(mesh, (plan.kernel, plan.target))

    def begin_at(codes: Any) -> Any:
        return begin(mesh, plan.recording, plan.rows, kernel, target, codes)

    progress.say(f"starting {settings.num_chains} chains" if state is None else "going on from the checkpoint")
    if state is None:
        carry = start_points(lambda codes: begin_at(spread(mesh, codes)), plan.target, plan.codes, numbers, settings.seed)
    else:  # its shapes; `restore` has its numbers
        carry = jax.eval_shape(begin_at, jax.ShapeDtypeStruct((padded, plan.target.space.num_sites), np.int32))
    first_does(lambda: _open_places(plan, store, fresh=state is None))  # only now that the chains have a start
    kept = Kept(plan.target.space, settings, plan.rows, store, plan.checkpoint)
    run = Run(settings, plan.recording, kernel, target, mesh, spread(mesh, numbers), plan.rows, carry, kept, plan.checkpoint)
    if state:
        run.restore(*state)
        if not run.finished:
            _check_chains(plan, run, begin_at)
    run.times.compile += time.perf_counter() - began
    return run


def _check_chains(plan: _Plan, run: Run, begin_at: Any) -> None:
    """StorageError where the target has another log_prob at the chains' own states than the checkpoint says."""
    assert plan.checkpoint
    expected, found = fetch((run.carry.points.log_prob, begin_at(run.carry.points.codes).points.log_prob))
    num = plan.settings.num_chains
    check_log_probs(plan.checkpoint.folder, "log_prob at a chain's state", expected[:num], found[:num])


def _open_places(plan: _Plan, store: Store | None, fresh: bool) -> None:
    """Create what is to be written to, or open it again."""
    if plan.checkpoint and fresh:
        plan.checkpoint.create(*plan.as_data())
    if store and fresh:
        _create_store(plan, store)
    elif store:
        store.reopen(complete=0, incomplete_because="not finished yet", num_draws=plan.settings.num_draws)


def _create_store(plan: _Plan, store: Store) -> None:
    space, names = plan.target.space, plan.target.names
    store.create({**_static_attributes(plan), "complete": 0, "num_sites": space.num_sites, "label_dtype": str(space.labels.dtype)})
    store.set(**({"names": list(names)} if names else {}))
    attributes, variables = _kernel_group(plan.kernel)
    store.add_group("kernel", variables, attributes)


def _need_draws(plan: _Plan, run: Run, reason: str, begun: tuple[int, int], options: _Options) -> None:
    """RunError where the time limit left no draw and, with a checkpoint, not even a step."""
    if reason != "time limit" or run.num_draws or (plan.checkpoint and (run.phase, run.done) != begun):
        return
    if plan.store and not plan.checkpoint:
        first_does(partial(shutil.rmtree, plan.store))  # empty, and in the way of the next attempt
    raise errors.RunError(
        "`time_limit` is too short for a single draw.",
        expected=f"more than {options.time_limit:g} s",
        found=f"{run.times.compile:.1f} s went to compiling; {run.doing} was then at step {run.done} of {run.total}",
        hint="allow more time, or less warm-up" + ("" if plan.checkpoint else "; nothing was kept"),
    )


def _memory_tree(plan: _Plan, run: Run, attributes: dict[str, Any]) -> xr.DataTree:
    names = site_names(plan.target.names, plan.target.space.num_sites)
    return make_tree(run.kept.groups(), names, _kernel_group(plan.kernel), _statistics(plan, run), attributes)


def _kernel_group(kernel: Kernel) -> tuple[dict[str, Any], dict[str, Any]]:
    """(attributes, variables) from which `kernel_of` rebuilds the kernel; only its name where it holds functions."""
    try:
        structure, leaves = to_data(kernel)
    except errors.StorageError:
        return {"repr": repr(kernel)}, {}
    return {"structure": json.dumps(structure), "repr": repr(kernel)}, kernel_variables(leaves)


def _stored_tree(plan: _Plan, store: Store, run: Run, attributes: dict[str, Any]) -> xr.DataTree:
    def complete() -> None:
        if run.kept.statistics:
            store.add_group("statistics", _statistics(plan, run), {})
        store.set(**attributes)

    first_does(complete)
    return open_run(store.path)


def _statistics(plan: _Plan, run: Run) -> dict[str, Any]:
    space = plan.target.space
    return statistic_variables(run.kept.statistics.result(), space.size == space.num_sites) if run.kept.statistics else {}


def _static_attributes(plan: _Plan) -> dict[str, Any]:
    """What is known before the first step."""
    settings, space = plan.settings, plan.target.space
    return {
        "inference_library": "saltus",
        "inference_library_version": saltus_version(),
        "jax_version": jax.__version__,
        "python_version": platform.python_version(),
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "target": repr(plan.target),
        "space": repr(space),
        "sampler": repr(plan.kernel),
        **{name: getattr(settings, name) for name in ("num_draws", "num_warmup", "num_chains", "thin")},
        "seed": str(settings.seed),
        "keep": list(settings.keep),
        "evaluations_per_step": plan.kernel.evaluations(plan.target),
        "numeric": int(space.values.ndim == 1),
        "num_values": space.num_values,
        "tuning": plan.tuning,
    }


def _attributes(plan: _Plan, run: Run, reason: str) -> dict[str, Any]:
    """What is known after the last step. Values that any file format takes: strings and numbers."""
    times = {f"{name}_seconds": round(seconds, 4) for name, seconds in vars(run.times).items()}
    undefined = int(fetch(run.carry.undefined)[: plan.settings.num_chains].sum())
    return {
        **_static_attributes(plan),
        **times,
        "sampling_time": times["sampling_seconds"],
        "complete": int(not reason),
        "incomplete_because": reason,
        "undefined": undefined,
    }


def saltus_version() -> str:
    from .. import __version__

    return __version__
