"""The text of a `Summary`: one page, numbers aligned, doubts last, where a terminal ends."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING

from .._words import WIDTH, aligned, counted, listed, show_rhat, significant
from ..diagnostics.ess import FEWEST_DRAWS
from ..judging.doubts import point_mass, why_incomplete
from ..judging.rows import Judgement

if TYPE_CHECKING:
    from .summary import Summary

_MOST_BINS = 8
_LONGEST_NAME = 28


def page(s: Summary) -> str:
    parts = [_header(s), _overall(s), _sites(s), _still(s), _acceptance(s), _bulleted("", [*s.notes, *point_mass(s)]), _doubts(s)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _header(s: Summary) -> list[str]:
    a = s.attributes
    why = why_incomplete(s)
    drawn = f"{counted(s.num_chains, 'chain')} x {counted(s.num_draws, 'draw')}, thin {a.get('thin') or '?'}"
    drawn += f", after {counted(a.get('num_warmup', '?'), 'warm-up step')}; seed {a.get('seed', '?')}{'' if why else '; complete'}"
    told = {"target": a.get("target", "?"), "sampler": a.get("sampler", "?"), "tuning": a.get("tuning", ""), "draws": drawn}
    told["ended"] = f"INCOMPLETE ({why}): {a.get('num_draws', '?')} draws were asked for" if why else ""
    told |= {
        "thin": _thinning(s),
        "time": _times(s),
        "race": _race(s),
        "swaps": a.get("swaps", ""),
        "accepted": _accepted(s),
        "jump": _jump(s),
    }
    return [
        f"Summary of a run of saltus {a.get('inference_library_version', '')}",
        *(line for label, text in told.items() if text for line in _labelled(label, str(text))),
    ]


def _thinning(s: Summary) -> str:
    """Why so many steps between draws, where they were chosen."""
    why = str(s.attributes.get("thinning", ""))
    return "" if why in ("", "as given") else why


def _race(s: Summary) -> str:
    """What it cost to choose, beside the run itself."""
    race = int(s.attributes.get("race_evaluations", 0))
    if not race:
        return ""
    steps = int(s.attributes.get("num_warmup", 0)) + s.num_draws * max(int(s.attributes.get("thin", 1)), 1)
    run = steps * s.num_chains * max(int(s.attributes.get("evaluations_per_step", 0)), 1)
    return f"{race} evaluations of log_prob to choose the sampler, {100 * race / (race + run):.0f} % of all; saltus.race_of(run)"


def _labelled(label: str, text: str) -> list[str]:
    wrapped = textwrap.wrap(_cut(text, 1200), WIDTH - 12)
    return [f"  {label if i == 0 else '':<10}{line}" for i, line in enumerate(wrapped)]


def _cut(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


def _times(s: Summary) -> str:
    names = {"compile": "compiling", "warmup": "warm-up", "sampling": "sampling"}
    known = {words: s.attributes.get(f"{name}_seconds") for name, words in names.items()}
    return ", ".join(f"{words} {_seconds(float(t))}" for words, t in known.items() if t is not None) or "not recorded"


def _seconds(t: float) -> str:
    return f"{significant(t)} s" if t < 600 else f"{t / 60:.1f} min" if t < 36000 else f"{t / 3600:.1f} h"


def _accepted(s: Summary) -> str:
    if not s.acceptance:
        return ""
    if not s.can_refuse:
        return f"always: {s.sampler} has no accept step"
    return f"{_over_chains(s.acceptance, '{:.3f}'.format)} of proposals"


def _jump(s: Summary) -> str:
    return f"{_over_chains(s.jump, significant)}, the L1 distance of a step" if s.jump else ""


def _over_chains(values: list[float], show: Callable[[float], str]) -> str:
    mean = show(sum(values) / len(values))
    return mean if len(values) == 1 else f"{mean} (chains {show(min(values))} to {show(max(values))})"


def _overall(s: Summary) -> list[str]:
    if not s.overall:
        return ["  No draws."]
    labels = {"lp": "energy (lp)", "distance": "distance |s - s0|" if s.numeric else "sites unlike s0"}
    per_second, per_evaluation = s.ess_per_second, s.ess_per_evaluation
    rows = []
    for row in s.overall:
        rates = [_rate(per_second[row.name], "unknown"), _rate(per_evaluation[row.name], "no evaluations")]
        told = [*_mean_and_sd(row, _own_scale(row)), *_worth(s, row), *(rates if row.ess > 0 else ["-", "-"])]
        rows.append([labels[row.name], *told])
    return aligned(["", "mean", "sd", "ESS", "R-hat", "ESS/second", "ESS/evaluation"], rows)


def _rate(x: float | None, unknown: str) -> str:
    return unknown if x is None else significant(x)


def _worth(s: Summary, row: Judgement) -> list[str]:
    """ESS and R-hat, or the word for why there are none."""
    if row.undefined:
        return ["undefined", "-"]
    if s.num_draws < FEWEST_DRAWS:
        return ["few draws", "-"]
    if row.constant:
        return ["constant", "-"]
    return [significant(row.ess), show_rhat(row.rhat)]


def _mean_and_sd(row: Judgement, scale: float) -> list[str]:
    return [_fixed(x, scale) for x in (row.mean, row.sd)]


def _own_scale(row: Judgement) -> float:
    return row.sd or abs(row.mean or 0)


def _fixed(x: float | None, scale: float) -> str:
    """With as many decimals as give numbers of size `scale` three digits."""
    if x is None:
        return "-"
    if not 1e-5 <= scale < 1e9:
        return f"{x:.4g}"
    return f"{x:.{max(2 - math.floor(math.log10(scale)), 0)}f}"


def _sites(s: Summary) -> list[str]:
    rows = s.table[: s.shown]
    if not rows:
        return []
    kind = "site" if s.num_sites else "observable"
    some = f" (of {len(s.table)} of {s.num_components}, evenly spaced)" if len(s.table) < s.num_components else ""
    kinds = {"mean": any(row.value is None for row in rows), "most frequent": any(row.value is not None for row in rows)}
    named = [kind for kind, there in kinds.items() if there]
    middle = [" or ".join(named), " or ".join({"mean": "sd", "most frequent": "share"}[kind] for kind in named)]
    lines = aligned([kind, *middle, "ESS", "R-hat", "moves"], _site_cells(s, rows))
    left = len(s.table) - len(rows)
    constants = sum(row.constant for row in s.table[s.shown :])
    more = f"  and {left} more" + (f", {constants} of them constant" if constants else "")
    return [f"  Worst {kind}s first{some}", *lines, *([more] if left else [])]


def _site_cells(s: Summary, rows: list[Judgement]) -> list[list[str]]:
    """Sites share their decimals, three where values are near one; every observable has its own scale."""
    largest = max(max(abs(row.mean or 0), row.sd or 0) for row in rows)
    common = largest / 10 if largest >= 1 else largest
    cells = []
    for row in rows:
        scale = common if s.num_sites else _own_scale(row)
        told = _mean_and_sd(row, scale) if row.share is None else [str(row.value), f"{row.share:.3f}"]
        cells.append([_cut(row.name, _LONGEST_NAME), *told, *_worth(s, row), str(row.moves)])
    return cells


def _still(s: Summary) -> list[str]:
    if not s.num_sites or s.num_draws < 2:
        return []
    which = f": {listed(s.still, 8)}" if s.still else ""
    return textwrap.wrap(
        f"Never moved, in any chain: {len(s.still)} of {s.num_sites} sites{which}",
        WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
    )


def _acceptance(s: Summary) -> list[str]:
    """Of the fullest bins."""
    if not s.acceptance_by_changes:
        return []
    total = sum(b.proposals for b in s.acceptance_by_changes)
    fullest = sorted(s.acceptance_by_changes, key=lambda b: -b.proposals)[:_MOST_BINS]
    bins = [b for b in s.acceptance_by_changes if b in fullest]
    shares = [f"{100 * b.proposals / total:.0f} %" if b.proposals >= total / 200 else "< 1 %" for b in bins]
    rows = [["of all proposals", *shares]]
    if s.can_refuse:
        rows.append(["accepted", *(f"{b.share:.3f}" for b in bins)])
    return aligned(["sites a proposal changes", *(b.label for b in bins)], rows)


def _doubts(s: Summary) -> list[str]:
    return _bulleted("What to doubt", s.doubts or ["Nothing stands out. That is not a proof."])


def _bulleted(title: str, items: list[str]) -> list[str]:
    lines = [
        line
        for item in items
        for line in textwrap.wrap(item, WIDTH, initial_indent="  - ", subsequent_indent="    ", break_long_words=False)
    ]
    return [title, *lines] if title else lines
