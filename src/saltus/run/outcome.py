"""From a run that has ended to the tree it returns: groups, the kernel as data, and attributes that any file format takes."""

from __future__ import annotations

import datetime
import json
import platform
from typing import TYPE_CHECKING, Any

import jax

from ..errors import StorageError
from ..kernels import Kernel
from .codec import to_data
from .drive import Run
from .loop import fetch, first_does
from .plan import Plan
from .result import kernel_variables, make_tree, open_run, site_names, statistic_variables
from .store import Store

if TYPE_CHECKING:
    import xarray as xr


def memory_tree(plan: Plan, run: Run, attributes: dict[str, Any]) -> xr.DataTree:
    names = site_names(plan.target.names, plan.target.space.num_sites)
    others = {"statistics": _statistics(plan, run), "start": _start(plan)}
    return make_tree(run.kept.groups(), names, _kernel_group(plan.choice.kernel), others, attributes)


def _start(plan: Plan) -> dict[str, Any]:
    """The states the chains began at, as `initial` takes them; nothing where the seed alone says which."""
    codes = plan.choice.codes
    return {} if codes is None else {"s": (("chain", "site"), plan.target.space.show(codes))}


def _kernel_group(kernel: Kernel) -> tuple[dict[str, Any], dict[str, Any]]:
    """(attributes, variables) from which `kernel_of` rebuilds the kernel; only its name where it holds functions."""
    try:
        structure, leaves = to_data(kernel)
    except StorageError:
        return {"repr": repr(kernel)}, {}
    return {"structure": json.dumps(structure), "repr": repr(kernel)}, kernel_variables(leaves)


def create_store(plan: Plan, store: Store) -> None:
    space, names = plan.target.space, plan.target.names
    store.create({**_static_attributes(plan), "complete": 0, "num_sites": space.num_sites, "label_dtype": str(space.labels.dtype)})
    store.set(**({"names": list(names)} if names else {}))
    attributes, variables = _kernel_group(plan.choice.kernel)
    store.add_group("kernel", variables, attributes)
    store.add_group("start", _start(plan), {})


def stored_tree(plan: Plan, store: Store, run: Run, attributes: dict[str, Any]) -> xr.DataTree:
    def complete() -> None:
        if run.kept.statistics:
            store.add_group("statistics", _statistics(plan, run), {})
        store.set(**attributes)

    first_does(complete)
    return open_run(store.path)


def _statistics(plan: Plan, run: Run) -> dict[str, Any]:
    space = plan.target.space
    return statistic_variables(run.kept.statistics.result(), space.size == space.num_sites) if run.kept.statistics else {}


def _static_attributes(plan: Plan) -> dict[str, Any]:
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
        "sampler": repr(plan.choice.kernel),
        **{name: getattr(settings, name) for name in ("num_draws", "num_warmup", "num_chains")},
        "seed": str(settings.seed),
        "keep": list(settings.keep),
        "evaluations_per_step": plan.choice.kernel.evaluations(plan.target),
        "numeric": int(space.numeric),
        "num_values": space.num_values,
        "thin": settings.thin if isinstance(settings.thin, int) else 0,  # 0: not chosen yet
        "tuning": plan.choice.tuning,
        "race": plan.choice.race,
        "race_evaluations": plan.choice.evaluations,
    }


def attributes_of(plan: Plan, run: Run, reason: str) -> dict[str, Any]:
    """What is known after the last step. Values that any file format takes: strings and numbers."""
    times = {f"{name}_seconds": round(seconds, 4) for name, seconds in vars(run.times).items()}
    undefined = int(fetch(run.carry.undefined)[: plan.settings.num_chains].sum())
    return {
        **_static_attributes(plan),
        **times,
        "sampling_time": times["sampling_seconds"],
        "thin": run.steps_per_draw,
        "thinning": run.thinning,
        "complete": int(not reason),
        "incomplete_because": reason,
        "undefined": undefined,
    }


def saltus_version() -> str:
    from .. import __version__

    return __version__
