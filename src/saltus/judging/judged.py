"""A run, read once: its rows, what never moved, where the chains sit; whatever there is to judge it by."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..diagnostics.moves import AcceptanceBin, acceptance_by_changes, together
from .places import Places, places_of
from .rows import Judgement, rows_of, scan, statistic

if TYPE_CHECKING:
    import xarray as xr

_READ_AT_ONCE = 2**22  # numbers
_LOOKED_AT, _LEAST_DRAWS = 2**22, 256  # by a quick look: numbers in all, and draws of each chain
_CHANCE = math.log(1000)


@dataclass(frozen=True, eq=False, repr=False)
class Judged:
    """What a run amounts to, without a word; `doubts` and `verdict_of` put it in words."""

    attributes: dict[str, Any]  # of the run
    num_chains: int
    num_draws: int  # of each chain
    numeric: bool  # whether shown values are numbers, rather than names of categories
    overall: list[Judgement] = field(default_factory=list)  # lp, and |s - s_0|_1, s_0 the first draw of the first chain
    table: list[Judgement] = field(default_factory=list)
    num_sites: int = 0  # 0 where states were not kept
    num_components: int = 0  # of states or observables: those of the table, or more
    still: list[str] = field(default_factory=list)  # sites that never change in any chain
    apart: list[str] = field(default_factory=list)  # of these, sites at which chains differ
    frozen: list[int] = field(default_factory=list)  # chains that never move
    acceptance: list[float] = field(default_factory=list)  # chain by chain
    jump: list[float] = field(default_factory=list)  # of a step, chain by chain
    changed_sites: float = 0.0  # mean over proposals
    acceptance_by_changes: list[AcceptanceBin] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    places: Places = field(default_factory=Places)  # where the chains sit
    point_mass: bool = False  # all draws are one state, and the chains came from others

    @property
    def sampler(self) -> str:
        """Its name, without settings."""
        return str(self.attributes.get("sampler", "")).partition("(")[0]

    @property
    def can_refuse(self) -> bool:
        """Whether there is an accept step. A run of 0.1 does not say so: then whether anything was ever refused."""
        return bool(self.attributes.get("rejects", min(self.acceptance, default=0.0) < 1))

    @property
    def one_site_a_step(self) -> bool:
        """Whether every proposal changes exactly one site: no step size or radius makes it more or less."""
        return [b.label for b in self.acceptance_by_changes] == ["1"]

    @property
    def ess(self) -> dict[str, float]:
        """Effective draws of all chains together: fewer where chains disagree."""
        return {row.name: row.ess for row in self.overall}

    @property
    def rhat(self) -> dict[str, float]:
        return {row.name: row.rhat for row in self.overall}

    @property
    def ess_per_second(self) -> dict[str, float | None]:
        """Of sampling, without compilation and warm-up; None where the time is not known."""
        seconds = float(self.attributes.get("sampling_seconds", 0))
        return {name: ess / seconds if seconds > 0 else None for name, ess in self.ess.items()}

    @property
    def ess_per_evaluation(self) -> dict[str, float | None]:
        """Per evaluation of log_prob, with or without its gradient, after warm-up; None where there was none."""
        per_step = int(self.attributes.get("evaluations_per_step", 0))
        evaluations = per_step * self.num_chains * self.num_draws * max(int(self.attributes.get("thin", 1)), 1)
        return {name: ess / evaluations if evaluations > 0 else None for name, ess in self.ess.items()}


def judge(run: xr.DataTree, quick: bool = False) -> Judged:
    """Of a run of saltus. Draws are read a block at a time.

    quick: of a long run every so many draws only, and of many sites some: for what has to be known at once.
    """
    attributes = {str(name): value for name, value in run.attrs.items()}
    every = _every(run) if quick else 1
    numeric = bool(attributes.get("numeric", 1))
    found = _of_steps(run, every) | _of_draws(run, numeric, every, quick)
    found["overall"] = found.pop("lp", []) + found.pop("distance", [])
    found["notes"] = found.get("notes", []) + _of_statistics(run)
    num_chains = found.pop("num_chains", int(attributes.get("num_chains", 0)))
    return Judged(attributes, num_chains, found.pop("num_draws", 0), numeric, **found)


def _every(run: Any) -> int:
    """How many draws apart a quick look takes them."""
    groups = [run.children[home] for home in ("posterior", "sample_stats") if home in run.children]
    size = max((x.size for group in groups for x in group.data_vars.values()), default=0)
    draws = max((group.sizes.get("draw", 0) for group in groups), default=0)
    return max(min(size // _LOOKED_AT, draws // _LEAST_DRAWS), 1)


def _of_steps(run: Any, every: int) -> dict[str, Any]:
    """What the steps told: energy, acceptance, jumps. But for the energy, some chains are read at a time."""
    stats = run.children.get("sample_stats")
    if stats is None or not stats["lp"].size:
        return {}
    stats = stats.to_dataset().isel(draw=slice(None, None, every))
    at_once = max(_READ_AT_ONCE // stats.sizes["draw"], 1)
    chains = [_of_chains(stats.isel(chain=slice(i, i + at_once))) for i in range(0, stats.sizes["chain"], at_once)]
    acceptance, jump, changed = (
        np.concatenate([told[name] for told in chains]) for name in ("acceptance_rate", "jump", "changed_sites")
    )
    return {
        "num_chains": stats.sizes["chain"],
        "num_draws": run.children["sample_stats"].sizes["draw"],
        "lp": [statistic("lp", stats["lp"].transpose("chain", "draw").values)],
        "acceptance": acceptance.tolist(),
        "jump": jump.tolist(),
        "changed_sites": float(np.mean(changed)),
        "acceptance_by_changes": together([told["bins"] for told in chains]),
        "frozen": [int(stats["chain"][i]) for i in np.flatnonzero(jump == 0)],
    }


def _of_chains(stats: Any) -> dict[str, Any]:
    """Means of each chain, and bins of all."""
    told = {name: stats[name].transpose("chain", "draw").values for name in ("acceptance_rate", "jump", "changed_sites")}
    bins = acceptance_by_changes(told["changed_sites"], stats["accepted"].transpose("chain", "draw").values)
    return {name: x.mean(axis=1, dtype=np.float64) for name, x in told.items()} | {"bins": bins}


def _of_draws(run: Any, numeric: bool, every: int, quick: bool) -> dict[str, Any]:
    """What the states or observables amount to."""
    posterior = run.children.get("posterior")
    if posterior is None or 0 in posterior.sizes.values():
        return {}
    some = posterior.to_dataset().isel(draw=slice(None, None, every))
    pieces = _pieces(run, numeric)
    if not pieces or not set(pieces) <= set(some.data_vars):
        return _of_observables(some, quick)
    found = [_of_states(some[name].transpose("chain", "draw", ...), own, quick, run) for name, own in pieces.items()]
    whole, others = _joined(found, list(pieces)), some.drop_vars(list(pieces))
    if others.data_vars:  # continuous variables beside the states
        told = _of_observables(others, quick)
        whole["table"] = sorted(whole["table"] + told["table"], key=_worst_first)
        whole["num_components"] += told["num_components"]
    return whole | {"num_draws": posterior.sizes["draw"]}


def _pieces(run: Any, numeric: bool) -> dict[str, bool]:
    """{variable: whether its values are numbers} of the states; a run of 0.1 has one."""
    try:
        return {str(name): bool(own) for name, *_, own in json.loads(run.attrs["pieces"])}
    except (KeyError, TypeError, ValueError):
        return {"s": numeric}


def _of_states(s: Any, numeric: bool, quick: bool, run: Any) -> dict[str, Any]:
    names = [str(name) for name in s[s.dims[2]].values]
    seen = scan(s, numeric, quick)
    still = seen.moves == 0
    rows = rows_of([names[i] for i in seen.examined], seen.kept, seen.moves[seen.examined], numeric)
    found: dict[str, Any] = {
        "num_chains": s.shape[0],
        "num_sites": len(names),
        "num_components": len(names),
        "distance": seen.distance,
        "table": rows,
        "places": places_of(seen.kept, numeric),
    }
    if s.shape[1] > 1:
        found["still"] = [names[i] for i in np.flatnonzero(still)]
        found["apart"] = [names[i] for i in np.flatnonzero(still & seen.apart)]
        found["frozen"] = [int(s["chain"][i]) for i in np.flatnonzero(~seen.moved)]
        found["one_state"] = bool(still.all() and not seen.apart.any())
        found["point_mass"] = found["one_state"] and _came_from_elsewhere(run, str(s.name), s[0, 0].values, s.shape[0])
    return found


def _joined(found: list[dict[str, Any]], names: list[str]) -> dict[str, Any]:
    """What there is to say of all pieces of the states together."""
    if len(found) > 1:
        found = [_prefixed(each, name) for each, name in zip(found, names, strict=True)]
    whole = {**found[0], "distance": [statistic("distance", sum(each["distance"] for each in found))]}
    whole |= {name: sum(each[name] for each in found) for name in ("num_sites", "num_components")}
    for name in ("table", "still", "apart"):
        whole[name] = [row for each in found for row in each.get(name, [])]
    whole["table"] = sorted(whole["table"], key=_worst_first)
    whole["frozen"] = sorted(set.intersection(*(set(each.get("frozen", [])) for each in found)))
    whole["places"] = max((each["places"] for each in found), key=lambda places: len(places.groups))
    one_state = [each.pop("one_state", False) for each in (*found, whole)]
    whole["point_mass"] = all(one_state) and any(each["point_mass"] for each in found)
    return whole


def _prefixed(found: dict[str, Any], name: str) -> dict[str, Any]:
    """With the name of the piece in front of its sites'."""
    told = {key: [f"{name}[{site}]" for site in found[key]] for key in ("still", "apart") if key in found}
    return found | told | {"table": [row._replace(name=f"{name}[{row.name}]") for row in found["table"]]}


def _came_from_elsewhere(run: Any, name: str, state: np.ndarray, num_chains: int) -> bool:
    """Whether some chain began at another state: as the run tells, or since random states are hardly ever all the same."""
    start = run.children.get("start")
    if start is not None and name in start.data_vars and (start[name].values != state).any():
        return True
    values = int(run.attrs.get("num_values", 2))
    return run.attrs.get("starts") == "random" and (num_chains - 1) * state.size * math.log(values) > _CHANCE


def _of_observables(posterior: Any, quick: bool) -> dict[str, Any]:
    variables = {str(name): x.transpose("chain", "draw", ...) for name, x in posterior.data_vars.items()}
    real = {name: x for name, x in variables.items() if x.dtype.kind in "biuf"}
    rows: list[Judgement] = []
    for name, x in real.items():
        seen = scan(x, numeric=True, quick=quick)
        labels = [_component(name, x.shape[2:], int(i)) for i in seen.examined]
        rows += rows_of(labels, seen.kept, seen.moves[seen.examined], numeric=True)
    left_out = ", ".join(name for name in variables if name not in real)
    return {
        "table": sorted(rows, key=_worst_first),
        "num_components": sum(x[0, 0].size for x in real.values()),
        "notes": [f"not real numbers, and left out: {left_out}"] if left_out else [],
    }


def _component(name: str, shape: tuple[int, ...], i: int) -> str:
    return f"{name}[{', '.join(str(j) for j in np.unravel_index(i, shape))}]" if shape else name


def _worst_first(row: Judgement) -> tuple[bool, bool, float, float]:
    return row.constant, not row.undefined, row.ess, -row.rhat


def _of_statistics(run: Any) -> list[str]:
    """In words: statistics have no order in time, so no ESS and no R-hat."""
    group = run.children.get("statistics")
    if group is None or "count" not in group.data_vars:
        return []
    kept = [str(name) for name in group.data_vars if name not in ("count", "best_lp")]
    told = [f"kept instead of draws: {', '.join(kept)} of {int(group['count'])} draws a chain; only the energy has an ESS"]
    if "mean" in group.data_vars:
        mean = group["mean"].values
        spread = np.ptp(mean, axis=0)
        i = int(np.argmax(spread))
        where = f"site {group['site'].values[i]}" if "site" in group["mean"].coords else f"entry {i}"
        told.append(f"means differ most between chains at {where}: from {mean[:, i].min():.3g} to {mean[:, i].max():.3g}")
    if "best_lp" in group.data_vars:
        best = group["best_lp"].values
        told.append(f"best log_prob found: {best.max():.6g}, by chain {int(np.argmax(best))}")
    return told
