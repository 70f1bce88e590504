"""What a report is made from: at most 10^5 draws of a run, evenly chosen, held in memory."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, NamedTuple

import numpy as np

from ..diagnostics.moves import label_distance
from ..judging import Judged, judge

MOST_DRAWS = 100_000  # of all chains together
_MOST_CHAINS = 256
_MOST_NUMBERS = 2**25  # of one variable
_GROUPS = ("posterior", "sample_stats", "weighted_posterior", "warmup_sample_stats")


class Variable(NamedTuple):
    """Draws (chains, draws, components) of one state or observable, with the names of its components."""

    name: str
    names: list[str]
    draws: np.ndarray
    numeric: bool
    is_state: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Looked:
    """A run as the report sees it."""

    attributes: dict[str, Any]
    judged: Judged
    variables: list[Variable]
    lp: np.ndarray  # (chains, draws); no draws where none were kept
    distance: np.ndarray  # (chains, draws), or (0, 0) where states were not kept
    chains: list[int]  # their numbers in the run
    every: int  # draws apart
    log_weight: np.ndarray  # (chains, draws), or (0, 0)
    ladder: list[float]  # the β of a tempered run
    start: list[str]  # variables of the states that the chains began at, where the run holds them
    left_out: list[str]  # sentences: what the page does not look at


def look(run: Any) -> Looked:
    """Read what the page shows of a run, whatever its size."""
    some, every, chains, left_out = _chosen(run)
    judged = _of_all_draws(judge(some), run)
    variables = _variables(some, judged)
    lp = _array(some, "sample_stats", "lp")
    return Looked(
        attributes={str(name): value for name, value in run.attrs.items()},
        judged=judged,
        variables=variables,
        lp=lp,
        distance=_distance(variables),
        chains=chains,
        every=every,
        log_weight=_array(some, "weighted_posterior", "log_weight"),
        ladder=_ladder(run),
        start=[str(name) for name in run.children["start"].data_vars] if "start" in run.children else [],
        left_out=left_out,
    )


def _chosen(run: Any) -> tuple[Any, int, list[int], list[str]]:
    """(the run with some of its draws, how far they are apart, which chains, what was left out)."""
    import xarray as xr

    groups = {name: run.children[name].to_dataset() for name in _GROUPS if name in run.children}
    sizes = [(g.sizes.get("chain", 0), g.sizes.get("draw", 0)) for name, g in groups.items() if not name.startswith("warmup_")]
    chains, draws = max(sizes, default=(0, 0), key=math.prod)
    which = _evenly(chains, chains if chains * draws <= MOST_DRAWS else _MOST_CHAINS)
    every = max(-(-len(which) * draws // MOST_DRAWS), 1)
    told = []
    if len(which) < chains:
        told.append(f"{len(which)} of {chains} chains, evenly chosen")
    if every > 1:
        told.append(f"one draw in {every}: {-(-draws // every)} of {draws} draws a chain")
    kept: dict[str, Any] = {name: child.to_dataset() for name, child in run.children.items() if name not in groups}
    for name, group in groups.items():
        if "chain" in group.sizes and len(which) < group.sizes["chain"]:
            group = group.isel(chain=which)
        group = group.isel(draw=slice(None, None, every)) if "draw" in group.sizes else group
        kept[name], fewer = _some_components(group)
        told += fewer if name == "posterior" else []
    tree = xr.DataTree.from_dict(kept)
    tree.attrs.update(run.attrs)
    return tree, every, which.tolist(), told


def _some_components(group: Any) -> tuple[Any, list[str]]:
    """Of very many sites some, so that what is read fits the time there is."""
    draws = max(group.sizes.get("chain", 1) * group.sizes.get("draw", 1), 1)
    most = max(_MOST_NUMBERS // draws, 100)
    large = {str(d): n for d, n in group.sizes.items() if d not in ("chain", "draw") and n > most}
    for dim, size in large.items():
        group = group.isel({dim: _evenly(size, most)})
    return group.load(), [f"{most} of {size} entries of {dim}, evenly chosen" for dim, size in large.items()]


def _evenly(size: int, most: int) -> np.ndarray:
    return np.unique(np.linspace(0, max(size - 1, 0), min(size, most)).round().astype(int)) if size else np.zeros(0, int)


def _of_all_draws(judged: Judged, run: Any) -> Judged:
    """With the true number of draws: what was read says how they mix, not how many there are."""
    homes = [run.children[name] for name in ("posterior", "sample_stats") if name in run.children]
    draws = max((home.sizes.get("draw", 0) for home in homes), default=0)
    chains = max((home.sizes.get("chain", 0) for home in homes), default=judged.num_chains)
    return dataclasses.replace(judged, num_draws=draws, num_chains=chains)


def _variables(run: Any, judged: Judged) -> list[Variable]:
    """Real numbers and labels of the posterior; what is neither is named in the judged notes."""
    if "posterior" not in run.children:
        return []
    states = _states(run, judged.numeric)
    found = []
    for name, x in run.children["posterior"].data_vars.items():
        x = x.transpose("chain", "draw", ...)
        if 0 in x.shape or x.dtype.kind not in "biufUSOT":
            continue
        draws = x.values.reshape(*x.shape[:2], -1)
        numeric = states.get(str(name), x.dtype.kind in "biuf") and x.dtype.kind in "biuf"
        found.append(Variable(str(name), _names(str(name), x), draws, numeric, str(name) in states))
    return found


def _states(run: Any, numeric: bool) -> dict[str, bool]:
    """{variable: whether its values are numbers} of the states."""
    try:
        return {str(name): bool(own) for name, *_, own in json.loads(run.attrs["pieces"])}
    except (KeyError, TypeError, ValueError):
        return {"s": numeric}


def _names(variable: str, x: Any) -> list[str]:
    """Of the components: those of the coordinate where there is one dimension, else of the indices."""
    if x.ndim == 2:
        return [variable]
    if x.ndim == 3:
        dim = x.dims[2]
        own = [str(name) for name in (x[dim].values if dim in x.coords else range(x.shape[2]))]
        return own if variable == "s" else [f"{variable}[{name}]" for name in own]
    return [f"{variable}[{', '.join(map(str, i))}]" for i in np.ndindex(x.shape[2:])]


def _distance(variables: list[Variable]) -> np.ndarray:
    """|s - s_0|_1 from the first draw of the first chain, over all states; of categories, sites that differ."""
    parts = [label_distance(v.draws, v.draws[0, 0], v.numeric) for v in variables if v.is_state]
    return np.asarray(sum(parts), np.float64) if parts else np.zeros((0, 0))


def _ladder(run: Any) -> list[float]:
    kernel = run.children.get("kernel")
    return [] if kernel is None or "ladder" not in kernel.data_vars else np.ravel(kernel["ladder"].values).tolist()


def _array(run: Any, group: str, name: str) -> np.ndarray:
    home = run.children.get(group)
    if home is None or name not in home.data_vars:
        return np.zeros((0, 0))
    return home[name].transpose("chain", "draw", ...).values.astype(np.float64)
