"""What stands in each section of a report: words, tables and pictures, ready for the template."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from markupsafe import Markup

from .._words import counted, show_rhat, significant
from ..diagnostics.ess import FEWEST_DRAWS
from ..diagnostics.weights import weights
from ..judging import VERDICTS, Judged, verdict_of
from ..judging.doubts import point_mass, what_to_doubt, why_incomplete
from ..judging.rows import Judgement
from ..race import race_of
from . import report_pictures as pictures
from .report_looked import Looked
from .report_marginals import marginals

_MOST_LINES = 8  # chains in a picture
_MOST_SITES = 500  # rows of the table
_RANK_BINS = 20
_KEPT = ("complete", "incomplete_because", "race", "tuning", "verdict", "sampling_time", "pieces", "inference_library")
_VERSIONS = {"inference_library_version": "saltus", "jax_version": "jax", "python_version": "Python"}


def sections(seen: Looked, source: str) -> dict[str, Any]:
    """Everything that the template asks for. source: where the run was read from, or ''."""
    s = seen.judged
    return {
        "title": f"{s.sampler or 'A run'} on {seen.attributes.get('space', 'a space')}",
        "made": _minute(str(seen.attributes.get("created_at", ""))),
        "verdict": _verdict(s),
        "doubts": [pictures.cut(text, 2000) for text in what_to_doubt(s)],
        "notes": [pictures.cut(text, 2000) for text in (*s.notes, *point_mass(s))],
        "facts": _facts(s),
        "left_out": seen.left_out,
        "choice": _choice(seen),
        "traces": _traces(seen),
        "ranks": _ranks(seen),
        "marginals": marginals(seen.variables, s.table),
        "overall": _overall(s),
        "table": _table(s),
        "acceptance": _acceptance(s),
        "ladder": _ladder(seen),
        "weights": _weights(seen),
        "settings": _settings(seen.attributes),
        "versions": {label: str(seen.attributes.get(name, "?")) for name, label in _VERSIONS.items()},
        "reproduce": _reproduce(seen, source),
    }


def _minute(time: str) -> str:
    """2026-11-18T20:09:07+00:00 as 2026-11-18 20:09 UTC; anything else as it is."""
    return f"{time[:10]} {time[11:16]} UTC" if time[10:11] == "T" and time.endswith("+00:00") else time


def _verdict(s: Judged) -> dict[str, str]:
    found = verdict_of(s)
    calm = {"ok": "good", "point mass": "good", "too few draws": "unknown"}.get(found.word, "doubt")
    if calm == "good" and why_incomplete(s):
        calm = "unknown"
    return {"word": found.word, "kind": calm, "sentence": VERDICTS[found.word]}


def _facts(s: Judged) -> list[tuple[str, str]]:
    """The few numbers that are looked for first."""
    told = [("chains", str(s.num_chains)), ("draws a chain", str(s.num_draws))]
    rows = [row for row in (*s.overall, *s.table) if not row.undefined and not row.constant]
    if rows and s.num_draws >= FEWEST_DRAWS:
        told.append(("smallest ESS", significant(min(row.ess for row in rows))))
        told.append(("largest R-hat", show_rhat(max(row.rhat for row in rows))))
    if s.acceptance:
        told.append(("accepted", f"{sum(s.acceptance) / len(s.acceptance):.1%}" if s.can_refuse else "always"))
    if (seconds := s.attributes.get("sampling_seconds")) is not None:
        told.append(("sampling", f"{significant(float(seconds))} s"))
    return told


def _choice(seen: Looked) -> dict[str, Any]:
    """Which sampler, how it came to be used, and the race where there was one."""
    a = seen.attributes
    try:
        rows = race_of(_Attributes(a)).rows
    except Exception:  # no race, or one of a version that told other things
        rows = []
    best = max((row.ess_per_second for row in rows if math.isfinite(row.ess_per_second)), default=0.0)
    race = [
        {
            "sampler": row.sampler,
            "rate": significant(row.ess_per_second) if row.ess_per_second else "–",
            "share": 100 * row.ess_per_second / best if best else 0,
            "steps": significant(row.steps) if row.steps < math.inf else "–",
            "rhat": f"{row.rhat:.2f}" if row.rhat < 100 else "–",
            "accepted": f"{row.acceptance:.2f}" if row.kernel else "–",
            "said": "chosen" if row.chosen else pictures.cut(row.verdict, 120),
            "chosen": row.chosen,
        }
        for row in rows
    ]
    told = {name: str(a.get(name, "")) for name in ("sampler", "tuning", "thinning", "cut")}
    told["tuning"] = "" if told["tuning"].startswith("none:") else told["tuning"]
    return {name: pictures.cut(text, 3000) for name, text in told.items()} | {"race": race}


@dataclasses.dataclass
class _Attributes:
    """Something that has the attributes of a run, for what reads no more of it."""

    attrs: dict[str, Any]


def _shown_chains(seen: Looked, x: np.ndarray) -> tuple[list[int], str]:
    """Which chains are drawn, and the words for it."""
    which = np.unique(np.linspace(0, len(x) - 1, min(len(x), _MOST_LINES)).round().astype(int)).tolist()
    total = seen.judged.num_chains
    return which, f"{len(which)} of {total} chains" if len(which) < total else counted(total, "chain")


def _traces(seen: Looked) -> list[dict[str, Any]]:
    """Energy and distance against time."""
    found = []
    for label, x, words in (
        ("log probability", seen.lp, "Energy: log_prob of each draw, not normalised"),
        ("distance", seen.distance, "Distance from the first draw of the first chain, |s - s₀|₁; of categories, sites that differ"),
    ):
        if not x.size:
            continue
        which, many = _shown_chains(seen, x)
        names = [f"chain {seen.chains[i]}" for i in which]
        svg = pictures.lines([x[i] for i in which], names, seen.every, label, f"{words}, draw by draw")
        if svg:
            undefined = int((~np.isfinite(x)).sum())
            more = f" {counted(undefined, 'draw')} not finite and left out." if undefined else ""
            found.append({"svg": svg, "caption": f"{words}; {many}.{more}", "legend": _legend(names)})
    return found


def _legend(names: list[str]) -> list[tuple[str, str]]:
    return [(f"c{i % pictures.NUM_COLOURS}", name) for i, name in enumerate(names)]


def _ranks(seen: Looked) -> list[dict[str, Any]]:
    """Of the energy and the distance; several chains that move are needed."""
    found = []
    for name, x in (("energy", seen.lp), ("distance", seen.distance)):
        if x.shape[0] < 2 or x.shape[1] < FEWEST_DRAWS or not np.isfinite(x).all() or np.ptp(x) == 0:
            continue
        which, _ = _shown_chains(seen, x)
        shaken = x[which] + np.random.default_rng(0).uniform(-1e-9, 1e-9, x[which].shape) * (np.ptp(x) or 1)  # ties at random
        bins = min(_RANK_BINS, max(x.shape[1] // 5, 2))
        names = [f"chain {seen.chains[i]}" for i in which]
        found.append(
            {"svg": pictures.ranks(shaken, names, bins, f"Ranks of the {name}, chain by chain"), "caption": f"Ranks of the {name}"}
        )
    return found


def _worth(s: Judged, row: Judgement) -> tuple[str, str]:
    if row.undefined:
        return "undefined", "–"
    if s.num_draws < FEWEST_DRAWS:
        return "few draws", "–"
    if row.constant:
        return "constant", "–"
    return significant(row.ess), show_rhat(row.rhat)


def _overall(s: Judged) -> list[dict[str, Any]]:
    labels = {"lp": "energy (lp)", "distance": "distance |s - s₀|" if s.numeric else "sites unlike s₀"}
    return [{**_cells(s, row), "name": labels.get(row.name, row.name), "rate": _rate(s, row)} for row in s.overall]


def _rate(s: Judged, row: Judgement) -> str:
    rate = s.ess_per_second[row.name]
    return "–" if rate is None or not row.ess > 0 else significant(rate)


def _cells(s: Judged, row: Judgement) -> dict[str, Any]:
    ess, rhat = _worth(s, row)
    told = row.mean if row.share is None else row.share
    return {
        "name": pictures.cut(row.name, 120),
        "value": "" if row.share is None else pictures.cut(row.value, 40),
        "mean": "–" if told is None else significant(told),
        "sd": "–" if row.sd is None else significant(row.sd),
        "ess": ess,
        "rhat": rhat,
        "moves": row.moves,
        "poor": not row.constant and (row.undefined or row.ess < 400 or row.rhat > 1.01),
    }


def _table(s: Judged) -> dict[str, Any]:
    rows = [_cells(s, row) for row in s.table[:_MOST_SITES]]
    kind = "site" if s.num_sites else "observable"
    labels = any(row["value"] for row in rows)
    return {"kind": kind, "rows": rows, "labels": labels, "total": s.num_components, "examined": len(s.table)}


def _acceptance(s: Judged) -> dict[str, Any]:
    """By the number of sites that a proposal changes."""
    bins = s.acceptance_by_changes
    if not bins:
        return {}
    total = sum(b.proposals for b in bins)
    rows = [{"label": b.label, "share": f"{b.proposals / total:.1%}", "accepted": f"{b.share:.3f}"} for b in bins]
    svg = Markup("")
    if s.can_refuse:
        names = [f"{b.label} changed" for b in bins]
        svg = pictures.bars(names, [b.share for b in bins], [0.0] * len(bins), 1.0, "Share accepted, by sites changed")
    return {"rows": rows, "svg": svg, "refuses": s.can_refuse}


def _ladder(seen: Looked) -> dict[str, Any]:
    """Rungs, refused swaps and round trips, where the sampler has a ladder. A run of 0.1 did not count them."""
    if not seen.ladder:
        return {}
    betas = ", ".join(f"{b:.3g}" for b in seen.ladder[:64])
    rejection = np.ravel(seen.attributes.get("swap_rejection", []))
    trips = seen.attributes.get("round_trips")
    if trips is None or len(rejection) != len(seen.ladder) - 1:
        return {"betas": betas, "words": "The run did not count swaps and round trips.", "svg": Markup(""), "doubt": ""}
    accepted = [1 - float(r) for r in rejection]
    names = [f"β {a:.3g} to {b:.3g}" for a, b in zip(seen.ladder[:-1], seen.ladder[1:], strict=True)]
    svg = pictures.bars(names, accepted, [0.0] * len(accepted), 1.0, "Share of swaps accepted, pair by pair")
    doubt = "No replica went from β = 0 to β = 1 and back: the ladder does not mix, and a mode may be missing."
    words = f"{pictures.cut(seen.attributes.get('swaps', ''), 300)}; warm-up included."
    return {"betas": betas, "words": words, "svg": svg, "doubt": "" if int(trips) else doubt}


def _weights(seen: Looked) -> dict[str, Any]:
    """How unequal the weights are: the effective share of the draws of each chain."""
    x = seen.log_weight
    if not x.size or not np.isfinite(x).any():
        return {}
    shares = []
    for row in x:
        w = weights(row)
        shares.append(float(w.sum() ** 2 / (w**2).sum() / len(w)))
    return {
        "share": f"{np.mean(shares):.1%}",
        "worst": f"{np.min(shares):.1%}",
        "svg": pictures.histogram(x.ravel(), "log weight"),
    }


def _settings(attributes: dict[str, Any]) -> list[tuple[str, str]]:
    return [(n, pictures.cut(v, 600)) for n, v in attributes.items() if n not in (*_KEPT, *_VERSIONS) and str(v) != ""]


def _reproduce(seen: Looked, source: str) -> str:
    """The lines that draw the same again: the same kernel, settings, starting points and seed."""
    a = seen.attributes
    first = f"run = saltus.open({pictures.cut(source, 300)!r})" if source else "# run: what saltus.sample returned"
    kernel = "kernel = saltus.kernel_of(run)  # the frozen sampler: " + pictures.cut(a.get("sampler", "?"), 80)
    names = ("num_draws", "num_warmup", "num_chains", "thin", "seed")
    options = [f"    {name}={a[name]}," for name in names if str(a.get(name, "")).isdigit()]
    options += [f"    initial={_start(seen.start)},"] if seen.start else []
    call = ["again = saltus.sample(", "    target,  # yours, as before", "    kernel,", *options, ")"]
    return "\n".join(["import saltus", "", first, kernel, *call])


def _start(names: list[str]) -> str:
    if names == ["s"]:
        return 'run["start"]["s"].values'
    return "{" + ", ".join(f'{name!r}: run["start"][{name!r}].values' for name in names) + "}"
