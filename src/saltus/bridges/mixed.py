"""`saltus.mixed`: models of discrete and continuous variables."""

from __future__ import annotations

import datetime
import time
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_real, as_size, default_float, shown
from ..engine.arguments import read_flag, read_seed, read_space
from ..engine.keys import DRAWS, chain_keys, wrapped
from ..engine.progress import Silent, Status, make_progress
from ..engine.samplers import AUTO, check_kernel_fits, find_sampler, first_setting
from ..errors import ConvergenceWarning, RunError, TargetError
from ..judging import judge, verdict_of
from ..kernels import Gibbs, Kernel
from ..run.outcome import kernel_group, saltus_version
from ..run.tree import Layout
from ..target import Target
from .alternating import Nuts, draw
from .continuous import constrained_draws, read_continuous
from .joint import joint_target
from .needed import needed
from .warmup import Warmup

if TYPE_CHECKING:
    import xarray as xr

_ROWS = 100  # draws that are made together
_STATS = ("lp", "acceptance_rate", "accepted", "jump", "changed_sites")
_NUTS = ("nuts_acceptance_rate", "diverging", "energy", "n_steps", "tree_depth")


def mixed(
    log_prob: Callable,
    discrete: Any,
    continuous: Any,
    data: Any = (),
    *,
    transforms: Any = None,
    sampler: Any = AUTO,
    num_draws: int = 1000,
    num_warmup: int = 1000,
    num_chains: int = 4,
    seed: int = 0,
    thin: int = 1,
    initial: Any = None,
    local_model: str | None = None,
    target_acceptance: float = 0.8,
    max_tree_depth: int = 10,
    progress: bool = True,
) -> xr.DataTree:
    """Draw from p(s, x | data): a discrete kernel and BlackJAX's NUTS in turn, both tuned in the warm-up and then frozen.

    log_prob: JAX function log_prob(s, x, *data) -> number, not normalised. s is a state of `discrete` as any log_prob sees it (a
        dict where that is a `saltus.Product`), x a dict of the continuous variables.
    discrete: a space, such as `saltus.Binary(20)` or `saltus.Product(z=..., k=...)`.
    continuous: {name: shape}, or a tree of arrays that have the shapes.
    data: a tuple of trees of arrays, passed on to log_prob. Another data set of the same shapes compiles nothing again.
    transforms: {name: ...} of variables with bounds: "positive", "unit" (0 to 1), (low, high), "simplex", "ordered", or two
        functions (forward, log_det) of an unbounded array of the same shape. The Jacobian is added for you.
    sampler: of the discrete part: "auto", a kernel, or a class or name that is tuned in the warm-up. "auto" is Gibbs: by colours
        where sites that interact are found in log_prob, else site by site.
    num_draws, num_warmup, num_chains, seed, thin: as for `saltus.sample`; a step is one of each kernel. thin: a number.
    initial: discrete states to start from; None: random ones. θ begins uniform within 2 of 0.
    local_model: "gradient", "exact" or "hessian_diag" for the discrete kernel; None: exact differences from the terms of
        log_prob where they are cheap, else the gradient.
    target_acceptance, max_tree_depth: of NUTS.
    Returns a DataTree: `posterior` has the parts of `discrete` and the continuous variables. ArviZ and `saltus.summary` read it.
    Raises TargetError, SpaceError, RunError or KernelError where an argument cannot be used.

    progress: show a progress line on a terminal.
    """
    needed("blackjax", "saltus.mixed")
    space = read_space(discrete)
    variables = read_continuous(continuous, transforms)
    clash = {piece.name for piece in space.pieces} & set(variables.names)
    if clash:
        raise TargetError("A discrete and a continuous variable have the same name.", expected="different names", found=min(clash))
    target = joint_target(log_prob, space, variables, _read_data(data), local_model)
    sizes = {"num_draws": num_draws, "num_warmup": num_warmup, "num_chains": num_chains, "thin": thin}
    counts = {name: as_size(value, name, RunError, least=0 if name == "num_warmup" else 1) for name, value in sizes.items()}
    aim = as_real(target_acceptance, "target_acceptance", RunError, "a number between 0 and 1")
    if not 0 < aim < 1:
        raise RunError("`target_acceptance` is not usable.", expected="a number between 0 and 1", found=f"{aim:g}")
    depth = as_size(max_tree_depth, "max_tree_depth", RunError, most=20)
    with make_progress(read_flag(progress, "progress")) as told:
        made = run_mixed(target, sampler, counts, read_seed(seed), initial, aim, depth, told)
    x = jax.tree.leaves(constrained_draws(variables, jnp.asarray(made["draws"].pop("theta"))))
    return finished_tree(made, target, dict(zip(variables.names, map(np.asarray, x), strict=True)))


def _read_data(data: Any) -> tuple:
    """A tuple of trees of arrays."""
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, (tuple, list)):
        found = shown(data)
        raise TargetError(
            "`data` is not a tuple.", expected="a tuple, whose members log_prob is given", found=found, hint="data=(y,)"
        )
    return tuple(data)


def run_mixed(
    target: Target, sampler: Any, counts: dict[str, int], seed: int, initial: Any, aim: float, depth: int, progress: Silent
) -> dict[str, Any]:
    """{"draws": {variable: (chains, draws, ...)}, "kernel", "nuts", "tuning", seconds ...}, θ not yet constrained."""
    kernel, kind = _discrete_kernel(target, sampler)
    size = target.params["theta"].shape[0]
    nuts = Nuts(jnp.asarray(0.1, default_float()), jnp.ones(size, default_float()), depth)
    began = time.perf_counter()
    warmup = Warmup(target, kernel, nuts, seed, counts["num_chains"], progress)
    progress.say(f"compiling {kernel!r} and NUTS for {counts['num_chains']} chains on {target.space} and {size} numbers")
    warmup.begin(initial, None)
    warmup.run(counts["num_warmup"], aim, kind)
    warm_seconds, began = time.perf_counter() - began, time.perf_counter()
    draws = _draws(target, warmup, counts, seed, progress)
    return {
        "draws": draws,
        "kernel": warmup.kernel,
        "nuts": warmup.nuts,
        "tuning": warmup.report,
        "warmup_seconds": warm_seconds,
        "sampling_seconds": time.perf_counter() - began,
        "seed": seed,
        **counts,
    }


def _discrete_kernel(target: Target, sampler: Any) -> tuple[Kernel, Any]:
    """(the kernel to begin with, the class that is to be tuned or None)."""
    if isinstance(sampler, Kernel):
        check_kernel_fits(sampler, target)
        return sampler, None
    if isinstance(sampler, str) and sampler == AUTO:
        return Gibbs.first(target), None
    kind = find_sampler(sampler)
    kernel = first_setting(kind, target)
    check_kernel_fits(kernel, target)
    if kernel.weighted:
        raise RunError("The draws of this sampler carry weights.", expected="a sampler without weights", found=kind.__name__)
    return kernel, kind if kind.tunes else None


def _draws(target: Target, warmup: Warmup, counts: dict[str, int], seed: int, progress: Silent) -> dict[str, np.ndarray]:
    keys = wrapped(jnp.asarray(chain_keys(seed, DRAWS, np.arange(counts["num_chains"]))))
    wanted, thin, chains = counts["num_draws"], counts["thin"], warmup.chains
    rows, blocks, done = min(_ROWS, wanted), [], 0
    began = time.perf_counter()
    while done < wanted:
        chains, block = draw(rows, keys, np.int32(done * thin), np.int32(thin), warmup.kernel, warmup.nuts, target, chains)
        blocks.append(jax.tree.map(np.asarray, block))
        done = min(done + rows, wanted)
        rate = float(block["diverging"].mean())
        left = (time.perf_counter() - began) / done * (wanted - done)
        figures = [("NUTS accept", f"{float(block['nuts_acceptance_rate'].mean()):.2f}"), ("diverging", f"{rate:.3f}")]
        progress.show(Status("sampling", done, wanted, figures, left))
    return {name: np.moveaxis(np.concatenate([b[name] for b in blocks])[:wanted], 0, 1) for name in blocks[0]}


def finished_tree(
    made: dict[str, Any],
    target: Target,
    continuous: dict[str, np.ndarray],
    *,
    states: dict[str, Any] | None = None,
    dims: Mapping[str, tuple[str, ...]] | None = None,
    coords: Mapping[str, Any] | None = None,
    groups: dict[str, Any] | None = None,
    attributes: dict[str, Any] | None = None,
) -> xr.DataTree:
    """The DataTree of a mixed run, judged; a ConvergenceWarning where it is to be doubted.

    states: discrete variables by name, (chains, draws, ...), where they are to be shown in another form than the pieces of the
    space. dims, coords: names of dimensions behind chain and draw. groups: more groups.
    """
    import xarray as xr

    draws, layout = made["draws"], Layout.of(target)
    codes = draws.pop("codes")
    pieces = {p.name: p.space.labelled(codes[..., p.sites]) for p in target.space.pieces}
    own = {v.name: (v.dim,) for v in layout.variables} if states is None else {}
    shown_states = pieces if states is None else states
    variables = {**shown_states, **continuous}
    named = {**own, **(dims or {})}

    def dimensions(name: str, x: np.ndarray) -> tuple[str, ...]:
        return ("chain", "draw", *(named.get(name) or (f"{name}_dim_{i}" for i in range(x.ndim - 2))))

    posterior = {name: (dimensions(name, x), x) for name, x in variables.items()}
    index = {"chain": np.arange(made["num_chains"]), "draw": np.arange(made["num_draws"])}
    used = {d for told, _ in posterior.values() for d in told}
    known = {v.dim: v.names for v in layout.variables} | dict(coords or {})
    children = {
        "posterior": xr.Dataset(posterior, index | {d: names for d, names in known.items() if d in used}),
        "sample_stats": xr.Dataset({n: (("chain", "draw"), draws[n]) for n in (*_STATS, *_NUTS)}, index),
        **(groups or {}),
    }
    structure, leaves = kernel_group(made["kernel"])
    children["kernel"] = xr.Dataset(leaves, attrs=structure)
    tree = xr.DataTree.from_dict(children)
    tree.attrs.update(
        _attributes(made, target, int(draws["undefined"].sum()), _as_pieces(shown_states, layout)) | (attributes or {})
    )
    verdict = verdict_of(judge(tree, quick=True))
    tree.attrs["verdict"] = verdict.word
    _warn(verdict.warning, int(draws["diverging"].sum()), draws["diverging"].size)
    return tree


def _as_pieces(states: dict[str, Any], layout: Layout) -> bool:
    """Whether states are shown as the pieces of the space are."""
    return list(states) == [v.name for v in layout.variables] and all(x.ndim == 3 for x in states.values())


def _attributes(made: dict[str, Any], target: Target, undefined: int, as_pieces: bool) -> dict[str, Any]:
    kernel, nuts, space = made["kernel"], made["nuts"], target.space
    return {
        "inference_library": "saltus",
        "inference_library_version": saltus_version(),
        "jax_version": jax.__version__,
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "target": repr(target),
        "space": repr(space),
        "sampler": repr(kernel),
        "continuous_sampler": f"NUTS(step_size={float(nuts.step_size):.4g})",
        "inverse_mass": np.asarray(nuts.inverse_mass, np.float64).tolist(),
        "tuning": made["tuning"],
        "evaluations_per_step": kernel.evaluations(target),
        "numeric": int(space.numeric),
        "pieces": Layout.of(target).as_text() if as_pieces else "[]",
        "num_values": space.num_values,
        "rejects": int(kernel.rejects),
        "complete": 1,
        "undefined": undefined,
        "seed": str(made["seed"]),
        **{name: made[name] for name in ("num_draws", "num_warmup", "num_chains", "thin", "warmup_seconds", "sampling_seconds")},
    }


def _warn(doubt: str, diverging: int, total: int) -> None:
    if diverging:
        share = f"{diverging} of {total} NUTS steps diverged"
        warnings.warn(
            f"{share}: the continuous part may be biased. target_acceptance=0.95, or another parametrisation, may help.",
            ConvergenceWarning,
            stacklevel=4,
        )
    if doubt:
        warnings.warn(doubt, ConvergenceWarning, stacklevel=4)
