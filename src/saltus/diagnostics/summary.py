"""`saltus.summary(run)`: what ran, what the draws are worth, and what to doubt, in one page of text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._record import as_size
from ..errors import SaltusError
from .doubts import what_to_doubt
from .moves import AcceptanceBin, acceptance_by_changes, together
from .page import page
from .rows import Row, rows_of, scan, statistic

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """What a run amounts to; `print` it. For scripts:

    table: rows (`Row`: name, mean, sd, ess, rhat, moves, ...), the worst first and constants last; ess, rhat,
    ess_per_second, ess_per_evaluation: {"lp": ..., "distance": ...}; doubts: sentences, none where nothing stands out.
    """

    attributes: dict[str, Any]  # of the run
    num_chains: int
    num_draws: int  # of each chain
    numeric: bool  # whether shown values are numbers, rather than names of categories
    shown: int  # rows of the table to print
    overall: list[Row] = field(default_factory=list)  # lp, and the distance |s - s_0|_1 from the first draw of the first chain
    table: list[Row] = field(default_factory=list)
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

    @property
    def sampler(self) -> str:
        """Its name, without settings."""
        return str(self.attributes.get("sampler", "")).partition("(")[0]

    @property
    def can_refuse(self) -> bool:
        """Whether there is an accept step."""
        return self.sampler not in ("Gibbs", "BlockGibbs")

    @property
    def ess(self) -> dict[str, float]:
        """Effective draws, summed over chains."""
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

    @property
    def doubts(self) -> list[str]:
        return what_to_doubt(self)

    def __str__(self) -> str:
        return page(self)

    __repr__ = __str__


def summary(run: xr.DataTree, sites: int = 10) -> Summary:
    """What a run amounts to: print it, or read its attributes. `sites`: how many of the worst sites are printed.

    Draws are read once, a block at a time, so a run opened from disk need not fit in memory. Where there are more than
    2000 sites, ESS and R-hat are those of 2000, evenly spaced.
    """
    shown = as_size(sites, "sites", SaltusError, least=0)
    attributes = _attributes_of(run)
    numeric = bool(attributes.get("numeric", 1))
    found = _of_steps(run) | _of_draws(run, numeric)
    found["overall"] = found.pop("lp", []) + found.pop("distance", [])
    found["notes"] = found.get("notes", []) + _of_statistics(run)
    num_chains = found.pop("num_chains", int(attributes.get("num_chains", 0)))
    return Summary(attributes, num_chains, found.pop("num_draws", 0), numeric, shown, **found)


def _attributes_of(run: Any) -> dict[str, Any]:
    """Those of a run of saltus, or SaltusError."""
    attributes = getattr(run, "attrs", {})
    if not hasattr(run, "children") or attributes.get("inference_library") != "saltus":
        path = isinstance(run, str) or hasattr(run, "__fspath__")
        raise SaltusError(
            "This is not a run of saltus.",
            expected="what saltus.sample or saltus.open returned, as a whole",
            found=f"{type(run).__name__}"
            + (f" made by {attributes['inference_library']}" if "inference_library" in attributes else ""),
            hint=f"saltus.summary(saltus.open({str(run)!r})) reads it from disk" if path else "",
        )
    return dict(attributes)


def _of_steps(run: Any) -> dict[str, Any]:
    """What the steps told: energy, acceptance, jumps. But for the energy, one chain is read at a time."""
    stats = run.children.get("sample_stats")
    if stats is None or not stats["lp"].size:
        return {}
    chains = [_of_chain(stats.isel(chain=i)) for i in range(stats.sizes["chain"])]
    return {
        "num_chains": stats.sizes["chain"],
        "num_draws": stats.sizes["draw"],
        "lp": [statistic("lp", stats["lp"].transpose("chain", "draw").values)],
        "acceptance": [told["acceptance"] for told in chains],
        "jump": [told["jump"] for told in chains],
        "changed_sites": float(np.mean([told["changed_sites"] for told in chains])),
        "acceptance_by_changes": together([told["bins"] for told in chains]),
        "frozen": [int(stats["chain"][i]) for i, told in enumerate(chains) if told["jump"] == 0],
    }


def _of_chain(stats: Any) -> dict[str, Any]:
    told = {name: stats[name].values for name in ("acceptance_rate", "jump", "changed_sites", "accepted")}
    return {
        "acceptance": float(told["acceptance_rate"].mean(dtype=np.float64)),
        "jump": float(told["jump"].mean(dtype=np.float64)),
        "changed_sites": float(told["changed_sites"].mean(dtype=np.float64)),
        "bins": acceptance_by_changes(told["changed_sites"], told["accepted"]),
    }


def _of_draws(run: Any, numeric: bool) -> dict[str, Any]:
    """What the states or observables amount to."""
    posterior = run.children.get("posterior")
    if posterior is None or 0 in posterior.sizes.values():
        return {}
    if "s" in posterior.data_vars:
        return _of_states(posterior["s"].transpose("chain", "draw", "site"), numeric)
    return _of_observables(posterior)


def _of_states(s: Any, numeric: bool) -> dict[str, Any]:
    names = [str(name) for name in s["site"].values]
    seen = scan(s, numeric)
    still = seen.moves == 0
    rows = rows_of([names[i] for i in seen.examined], seen.kept, seen.moves[seen.examined], numeric)
    found: dict[str, Any] = {
        "num_chains": s.shape[0],
        "num_draws": s.shape[1],
        "num_sites": len(names),
        "num_components": len(names),
        "distance": [statistic("distance", seen.distance)],
        "table": sorted(rows, key=_worst_first),
    }
    if s.shape[1] > 1:
        found["still"] = [names[i] for i in np.flatnonzero(still)]
        found["apart"] = [names[i] for i in np.flatnonzero(still & seen.apart)]
        found["frozen"] = [int(s["chain"][i]) for i in np.flatnonzero(~seen.moved)]
    return found


def _of_observables(posterior: Any) -> dict[str, Any]:
    variables = {str(name): x.transpose("chain", "draw", ...) for name, x in posterior.data_vars.items()}
    real = {name: x for name, x in variables.items() if x.dtype.kind in "biuf"}
    rows: list[Row] = []
    for name, x in real.items():
        seen = scan(x, numeric=True)
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


def _worst_first(row: Row) -> tuple[bool, bool, float, float]:
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
