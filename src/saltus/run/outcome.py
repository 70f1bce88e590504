"""From a run that has ended to the tree it returns: groups, the kernel as data, and attributes that any file format takes."""

from __future__ import annotations

import datetime
import json
import platform
from typing import TYPE_CHECKING, Any

import jax

from ..clamping import constants
from ..engine.codec import to_data
from ..engine.kept import Kept
from ..engine.loop import first_does
from ..engine.recording import STATS
from ..engine.store import Store, taken
from ..errors import StorageError
from ..judging import judge, verdict_of
from ..kernels import Kernel
from .plan import Plan
from .stored import open_store
from .tree import FIXED, RAW, WORTH, Layout, kernel_variables, make_tree, statistic_variables
from .weights import resampled, resampling, worth_of

if TYPE_CHECKING:
    import xarray as xr

    from .running import Run


def memory_tree(plan: Plan, kept: Kept, attributes: dict[str, Any]) -> xr.DataTree:
    layout = Layout.of(plan.target)
    others, groups = {"statistics": _statistics(plan, kept), "start": _start(plan), FIXED: _fixed(plan)}, kept.groups()
    if plan.choice.kernel.weighted:
        raw = groups[RAW]
        log_weight = raw["log_weight"]
        index = resampling(log_weight, plan.settings.seed)
        groups = {"": {n: resampled(x, index) for n, x in raw.items() if n != "log_weight"}, **groups}
        others[WORTH] = worth_of({n: x for n, x in raw.items() if n == "lp" or n not in STATS}, log_weight, layout)
    return make_tree(groups, layout, kernel_group(plan.choice.kernel), others, attributes)


def _start(plan: Plan) -> dict[str, Any]:
    """The states the chains began at, as `initial` takes them; nothing where the seed alone says which."""
    codes = plan.choice.codes
    if codes is None:
        return {}
    return {p.name: (("chain", p.dim), p.space.show(codes[:, p.sites])) for p in plan.target.space.pieces}


def _fixed(plan: Plan) -> dict[str, Any]:
    """The clamped sites: their values, and which they are."""
    found: dict[str, Any] = {}
    for name, (dim, sites, values) in constants(plan.target).items():
        found |= {name: ((dim,), values), f"{name}_sites": ((dim,), sites)}
    return found


def kernel_group(kernel: Kernel) -> tuple[dict[str, Any], dict[str, Any]]:
    """(attributes, variables) from which `kernel_of` rebuilds the kernel; only its name where it holds functions."""
    try:
        structure, leaves = to_data(kernel)
    except StorageError:
        return {"repr": repr(kernel)}, {}
    return {"structure": json.dumps(structure), "repr": repr(kernel)}, kernel_variables(leaves)


def create_store(plan: Plan, store: Store, replace: bool) -> None:
    """The store with its kernel and start. replace: whether it may take the place of an older one."""
    space, names = plan.target.space, plan.target.names
    static = {**_static_attributes(plan), "complete": 0, "num_sites": space.num_sites}
    groups = {"kernel": kernel_group(plan.choice.kernel)[::-1], "start": (_start(plan), {}), FIXED: (_fixed(plan), {})}
    store.create(static | ({"names": list(names)} if names else {}), groups, taken if replace else None)


def stored_tree(plan: Plan, store: Store, kept: Kept, attributes: dict[str, Any]) -> xr.DataTree:
    def complete() -> None:
        if kept.statistics:
            store.add_group("statistics", _statistics(plan, kept), {})
        if plan.choice.kernel.weighted:
            tree = open_store(store.path)
            draws = {str(n): x for n, x in tree[f"{RAW}posterior"].data_vars.items() if "draw" in x.dims}
            draws["lp"] = tree[f"{RAW}sample_stats"]["lp"]
            log_weight = draws.pop("log_weight").values
            store.add_group(WORTH, worth_of(draws, log_weight, Layout.of(plan.target)), {})
        store.set(**attributes)

    first_does(complete)
    return open_store(store.path)


def judged(tree: xr.DataTree, store: Store | None) -> str:
    """Write the verdict into the tree, and its store; returns what to warn of, or nothing."""
    found = verdict_of(judge(tree, quick=True))
    tree.attrs["verdict"] = found.word
    if store:
        first_does(lambda: store.set(verdict=found.word))
    return found.warning


def _statistics(plan: Plan, kept: Kept) -> dict[str, Any]:
    space = plan.target.space
    if not kept.statistics:
        return {}
    return statistic_variables(kept.statistics.result(), space.size == space.num_sites, Layout.of(plan.target))


def _static_attributes(plan: Plan) -> dict[str, Any]:
    """What is known before the first step."""
    settings, space = plan.settings, plan.target.space
    return {
        "inference_library": "saltus",
        "run_id": plan.run_id,
        "inference_library_version": saltus_version(),
        "jax_version": jax.__version__,
        "python_version": platform.python_version(),
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "target": repr(plan.target),
        "space": repr(space),
        "sampler": repr(plan.choice.kernel),
        **{name: getattr(settings, name) for name in ("num_draws", "num_warmup", "num_chains")},
        "seed": str(settings.seed),
        "keep": list(settings.keep),
        "evaluations_per_step": plan.choice.kernel.evaluations(plan.target),
        "numeric": int(space.numeric),
        "pieces": Layout.of(plan.target).as_text(),
        "num_values": space.num_values,
        "rejects": int(plan.choice.kernel.rejects),
        "weighted": int(plan.choice.kernel.weighted),
        "thin": settings.thin if isinstance(settings.thin, int) else 0,  # 0: not chosen yet
        "tuning": plan.choice.tuning,
        "race": plan.choice.race,
        "race_evaluations": plan.choice.evaluations,
        "starts": "given" if plan.choice.starts_given else "random",
    }


def attributes_of(plan: Plan, run: Run, reason: str) -> dict[str, Any]:
    """What is known after the last step. Values that any file format takes: strings and numbers."""
    times = {f"{name}_seconds": round(seconds, 4) for name, seconds in vars(run.clock.times).items()}
    return {
        **_static_attributes(plan),
        **times,
        "sampling_time": times["sampling_seconds"],
        "thin": run.clock.steps_per_draw or 1,
        "thinning": run.clock.thinning,
        "num_warmup": run.clock.warmup_made,
        "cut": "; ".join(filter(None, [plan.choice.cut, run.cut])),
        "complete": int(not reason),
        "incomplete_because": reason,
        "undefined": run.chains.undefined,
        **run.chains.counts,
    }


def saltus_version() -> str:
    from .. import __version__

    return __version__
