"""What to doubt about a run, in plain words, each with what to do. The gravest first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .ess import FEWEST_DRAWS
from .page import counted, listed, show_rhat, significant, why_incomplete
from .rows import Row

if TYPE_CHECKING:
    from .summary import Summary

RHAT, _RHAT_FAR = 1.01, 1.1
ESS, _ESS_FAR = 400, 100
_RARELY, _ALWAYS = 0.01, 0.999
_WORDS = {"lp": "energy", "distance": "distance"}


def what_to_doubt(s: Summary) -> list[str]:
    """One sentence or two for each thing that stands out; empty where nothing does."""
    checks = [_incomplete, _too_few_draws, _undefined_draws, _undefined_proposals, _frozen, _parity, _acceptance]
    if s.num_draws >= FEWEST_DRAWS:
        checks += [_apart, _rhat, _ess, _constant_energy, _still]
    return [doubt for check in [*checks, _one_chain] if (doubt := check(s))]


def _incomplete(s: Summary) -> str:
    why = why_incomplete(s)
    asked = s.attributes.get("num_draws", "?")
    go_on = "what is here is valid, only shorter; with checkpoint= the same call, or saltus.resume, goes on from it"
    return f"The run is incomplete ({why}): {s.num_draws} of {asked} draws a chain; {go_on}." if why else ""


def _too_few_draws(s: Summary) -> str:
    if s.num_draws >= FEWEST_DRAWS:
        return ""
    so_few = counted(s.num_draws, "draw")
    return f"{so_few} a chain: too few to judge anything. ESS and R-hat need {FEWEST_DRAWS}, and hundreds to be of use."


def _undefined_draws(s: Summary) -> str:
    bad = [row.name for row in (*s.overall, *s.table) if row.undefined]
    if not bad:
        return ""
    return f"NaN or infinite at some draws: {listed(bad)}. They have no mean and no ESS; find the states where it happens."


def _undefined_proposals(s: Summary) -> str:
    count = int(s.attributes.get("undefined", 0))
    if not count:
        return ""
    return (
        f"log_prob was NaN or +inf at {count} proposed states (warm-up included). They were refused, so such states are never "
        "drawn: if they are meant to be impossible return -inf there, else look for 0/0 or the log of a negative number."
    )


def _frozen(s: Summary) -> str:
    if not s.frozen:
        return ""
    if len(s.frozen) == s.num_chains:
        return f"No chain ever moved. {_smaller_steps(s)}"
    return (
        f"{len(s.frozen)} of {s.num_chains} chains never moved: {listed(s.frozen, 10)}. They are stuck, and distort every mean. "
        "Start them elsewhere (initial=), take smaller steps, or another sampler; before dropping them, see whether they sit in a "
        "mode the others missed (their lp)."
    )


def _apart(s: Summary) -> str:
    if not s.apart or len(s.frozen) == s.num_chains:
        return ""
    return (
        f"At {len(s.apart)} of {s.num_sites} sites each chain keeps its first value, and not all the same: {listed(s.apart)}. "
        "The chains are in separate modes; means over chains depend on where they started. Another sampler, or larger steps."
    )


def _rhat(s: Summary) -> str:
    high = sorted((row for row in _judged(s) if row.rhat > RHAT), key=lambda row: -row.rhat)
    if not high:
        return ""
    found = _named(s, high, [show_rhat(row.rhat) for row in high])
    if high[0].rhat <= _RHAT_FAR:
        return f"R-hat is above {RHAT}: {found}. The chains do not quite agree yet; draw more."
    return (
        f"R-hat is far above {RHAT}: {found}. The chains, or their halves, are in different places: do not use these means yet. "
        "Longer warm-up, more draws, or another sampler."
    )


def _ess(s: Summary) -> str:
    low = sorted((row for row in _judged(s) if row.ess < ESS), key=lambda row: row.ess)
    if not low:
        return ""
    found, worst = _named(s, low, [significant(row.ess) for row in low]), low[0].ess
    more = "A sampler that mixes faster, rather than more draws"
    if worst > 10:
        more = f"About {math.ceil(ESS / worst)} times as many draws would do"
    if worst < _ESS_FAR:
        return f"ESS is below {_ESS_FAR}: {found}. Means are rough, and ESS and R-hat themselves unsure. {more}."
    return f"ESS is below {ESS}: {found}. Enough for a rough mean, not for its error. {more}."


def _judged(s: Summary) -> list[Row]:
    return [row for row in (*s.overall, *s.table) if not row.undefined and not row.constant]


def _named(s: Summary, rows: list[Row], figures: list[str]) -> str:
    """'energy 1.13, distance 1.05, 12 of 36 sites (worst 7 with 1.21)'; rows come worst first."""
    overall = {id(row) for row in s.overall}
    told = [f"{_WORDS[row.name]} {figure}" for row, figure in zip(rows, figures, strict=True) if id(row) in overall]
    others = [(row.name, figure) for row, figure in zip(rows, figures, strict=True) if id(row) not in overall]
    if others:
        kind = "sites" if s.num_sites else "observables"
        told.append(f"{len(others)} of {len(s.table)} {kind} (worst: {others[0][0]} with {others[0][1]})")
    return ", ".join(told)


def _constant_energy(s: Summary) -> str:
    if not s.overall or not s.overall[0].constant or len(s.frozen) == s.num_chains:
        return ""
    return (
        "The energy is the same at every draw, though the chains move. Fine if the target is flat where they are; otherwise check "
        "that log_prob depends on s. Judge by the distance and the sites instead."
    )


def _still(s: Summary) -> str:
    same = len(s.still) - len(s.apart)
    if not same or len(s.still) == s.num_sites:
        return ""
    return (
        f"{same} of {s.num_sites} sites have one value in all chains throughout. They may be truly certain, or stuck: draws cannot "
        "tell. Start chains with other values there (initial=), or compare log_prob with such a site changed."
    )


def _acceptance(s: Summary) -> str:
    if not s.acceptance or not s.can_refuse or len(s.frozen) == s.num_chains:
        return ""
    mean = sum(s.acceptance) / len(s.acceptance)
    if mean < _RARELY:
        return f"Only {100 * mean:.2g} % of proposals are accepted. {_smaller_steps(s)}"
    if mean > _ALWAYS and s.changed_sites < max(0.1, s.num_sites / 200) and s.sampler != "GWG":
        return (
            f"Nearly every proposal is accepted, but changes only {significant(s.changed_sites)} sites on average: the steps are "
            "timid. A larger step_size or radius will mix faster."
        )
    return ""


def _smaller_steps(s: Summary) -> str:
    if s.sampler == "GWG":
        return "The gradient may be a bad guide here: Target(..., differences='exact'), or another sampler."
    return "A smaller step_size or radius; if that does not help, Target(..., differences='exact'), or another sampler."


def _parity(s: Summary) -> str:
    thin = int(s.attributes.get("thin", 1))
    if s.sampler != "GWG" or thin % 2 or s.attributes.get("num_values") != 2:
        return ""
    return (
        f"GWG flips one site a step, and one step in {thin} is kept: unless moves are refused, flips between draws are even "
        f"in number, and half of the states are hardly seen. An odd thin, such as {thin + 1}, sees both."
    )


def _one_chain(s: Summary) -> str:
    if s.num_chains != 1:
        return ""
    return "One chain: R-hat compares its two halves only, and cannot see a mode that it never visited. num_chains=4 or more can."
