"""What to doubt about a run, in plain words, each with what to do. The gravest first."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from .._words import counted, escaped, listed, show_rhat, significant
from ..diagnostics.ess import FEWEST_DRAWS
from .rows import Judgement

if TYPE_CHECKING:
    from .judged import Judged

RHAT, _RHAT_FAR = 1.01, 1.1
ESS, _ESS_FAR = 400, 100
_RARELY, _ALWAYS, _NULL = 0.01, 0.999, 0.5
_WORDS = {"lp": "energy", "distance": "distance"}


def what_to_doubt(s: Judged) -> list[str]:
    """One sentence or two for each thing that stands out; empty where nothing does."""
    return [escaped(text) for _, text in _found(s)]


def graver(s: Judged) -> list[tuple[str, str]]:
    """(word of the verdict, sentence) of what bears on the draws themselves, the gravest first."""
    return [(word, escaped(text)) for word, text in _found(s) if word]


def _found(s: Judged) -> list[tuple[str, str]]:
    """What stands out; a word of `VERDICTS` with what a script should know of."""
    checks: list[tuple[str, Callable[[Judged], str]]] = [
        ("", _incomplete),
        ("too few draws", _too_few_draws),
        ("undefined", _undefined_draws),
        ("undefined", _undefined_proposals),
        ("no moves", _none_moved),
        ("stuck chains", _some_never_moved),
        ("", _parity),
        ("", _acceptance),
    ]
    if s.num_draws >= FEWEST_DRAWS:
        checks += [
            ("modes", _modes),
            ("label switching", _label_switching),
            ("chains disagree", _apart),
            ("chains disagree", _rhat),
            ("low ess", _ess),
            ("", _constant_energy),
            ("", _still),
        ]
    return [(word, text) for word, check in [*checks, ("", _one_chain)] if (text := check(s))]


def why_incomplete(s: Judged) -> str:
    """Empty for a complete run. A store whose run was killed has no reason yet."""
    if int(s.attributes.get("complete", 0)):
        return ""
    return str(s.attributes.get("incomplete_because", "")) or "still running, or killed"


def point_mass(s: Judged) -> list[str]:
    """A note, and no doubt: all there is to say of a posterior that is one state."""
    text = "Every draw of every chain is one state, which the chains reached from others: as far as they see, it has all the mass."
    return [text] if s.point_mass else []


def _incomplete(s: Judged) -> str:
    why = why_incomplete(s)
    asked = s.attributes.get("num_draws", "?")
    go_on = "what is here is valid, only shorter; with checkpoint= the same call, or saltus.resume, goes on from it"
    return f"The run is incomplete ({why}): {s.num_draws} of {asked} draws a chain; {go_on}." if why else ""


def _too_few_draws(s: Judged) -> str:
    if s.num_draws >= FEWEST_DRAWS:
        return ""
    so_few = counted(s.num_draws, "draw")
    return f"{so_few} a chain: too few to judge anything. ESS and R-hat need {FEWEST_DRAWS}, and hundreds to be of use."


def _undefined_draws(s: Judged) -> str:
    bad = [row.name for row in (*s.overall, *s.table) if row.undefined]
    if not bad:
        return ""
    return f"NaN or infinite at some draws: {listed(bad)}. They have no mean and no ESS; find the states where it happens."


def _undefined_proposals(s: Judged) -> str:
    count = int(s.attributes.get("undefined", 0))
    if not count:
        return ""
    return (
        f"log_prob was NaN or +inf at {count} proposed states (warm-up included). They were refused, so such states are never "
        "drawn: if they are meant to be impossible return -inf there, else look for 0/0 or the log of a negative number."
    )


def _none_moved(s: Judged) -> str:
    return f"No chain ever moved. {_other_steps(s, s.frozen)}" if _all_frozen(s) and not s.point_mass else ""


def _some_never_moved(s: Judged) -> str:
    if not s.frozen or _all_frozen(s):
        return ""
    return (
        f"{len(s.frozen)} of {s.num_chains} chains never moved: {listed(s.frozen, 10)}. They are stuck, and distort every mean. "
        f"Start them elsewhere (initial=). {_other_steps(s, s.frozen)} Before dropping them, see whether they sit in a "
        "mode the others missed (their lp)."
    )


def _all_frozen(s: Judged) -> bool:
    return bool(s.frozen) and len(s.frozen) == s.num_chains


def _other_steps(s: Judged, chains: list[int]) -> str:
    """Larger steps where proposals were accepted and changed nothing, smaller ones where they were refused."""
    rates = [s.acceptance[c] for c in chains if c < len(s.acceptance)]
    if not s.can_refuse:
        return "Every site was drawn anew and kept its value: the posterior is a point there, or log_prob is not what it should be."
    if rates and min(rates) > _NULL and not s.one_site_a_step:
        return (
            "Proposals were accepted, and every one of them was the state itself: the steps are too small. A larger step_size or "
            "radius."
        )
    return _smaller_steps(s)


def _modes(s: Judged) -> str:
    if not _in_modes(s):
        return ""
    groups = s.places.groups
    many = {2: "two modes", 3: "three modes"}.get(len(groups), f"{len(groups)} modes")
    who = "; ".join(listed(list(group), 8) for group in groups[:4]) + ("; ..." if len(groups) > 4 else "")
    mirror = " One is the other with all values reversed." if s.places.mirrored else ""
    return (
        f"The chains are in {many}, and none crosses: their energies agree, their states do not (chains {who}).{mirror} How much "
        "each mode weighs cannot be seen from these draws, however many. Use a sampler that jumps between modes (tempering, "
        "cluster moves), or only functions of s that have the same value in all of them."
    )


def _in_modes(s: Judged) -> bool:
    """Energies agree, states do not, and there is a gap between where the chains sit."""
    return bool(s.places.groups) and _energies_agree(s) and _states_disagree(s) and not _switching(s)


def _energies_agree(s: Judged) -> bool:
    return bool(s.overall) and not s.overall[0].undefined and s.overall[0].rhat <= _RHAT_FAR


def _states_disagree(s: Judged) -> bool:
    return any(row.rhat > _RHAT_FAR for row in s.table if not row.undefined)


def _switching(s: Judged) -> bool:
    """Whether chains agree in energy and in everything that permuted labels leave as it is, and not in states."""
    return s.places.unlabelled_rhat <= _RHAT_FAR and _energies_agree(s) and _states_disagree(s)


def _label_switching(s: Judged) -> str:
    if not _switching(s):
        return ""
    rhat = s.places.unlabelled_rhat
    figure = f"R-hat at most {show_rhat(rhat)}" if rhat else "both are constant"
    return (
        "Label switching: the chains agree in energy, in which sites have the same label and in how many sites each label has "
        f"({figure}), and differ in which label is which. How often a site has a label "
        "means nothing then; how often two sites have the same one does."
    )


def _apart(s: Judged) -> str:
    if not s.apart or _all_frozen(s) or _switching(s):
        return ""
    return (
        f"At {len(s.apart)} of {s.num_sites} sites each chain keeps its first value, and not all the same: {listed(s.apart)}. "
        "Means over chains depend on where they started. Another sampler, or larger steps."
    )


def _rhat(s: Judged) -> str:
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


def _ess(s: Judged) -> str:
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


def _judged(s: Judged) -> list[Judgement]:
    """Rows that more draws can mend: not those of states where modes or labels are what is apart."""
    told = s.overall[:1] if _switching(s) else [*s.overall, *s.table]
    rows = [row for row in told if not row.undefined and not row.constant]
    return [row for row in rows if row.rhat <= _RHAT_FAR] if _in_modes(s) else rows


def _named(s: Judged, rows: list[Judgement], figures: list[str]) -> str:
    """'energy 1.13, distance 1.05, 12 of 36 sites (worst 7 with 1.21)'; rows come worst first."""
    overall = {id(row) for row in s.overall}
    told = [f"{_WORDS[row.name]} {figure}" for row, figure in zip(rows, figures, strict=True) if id(row) in overall]
    others = [(row.name, figure) for row, figure in zip(rows, figures, strict=True) if id(row) not in overall]
    if others:
        kind = "sites" if s.num_sites else "observables"
        told.append(f"{len(others)} of {len(s.table)} {kind} (worst: {others[0][0]} with {others[0][1]})")
    return ", ".join(told)


def _constant_energy(s: Judged) -> str:
    if not s.overall or not s.overall[0].constant or _all_frozen(s):
        return ""
    return (
        "The energy is the same at every draw, though the chains move. Fine if the target is flat where they are; otherwise check "
        "that log_prob depends on s. Judge by the distance and the sites instead."
    )


def _still(s: Judged) -> str:
    same = len(s.still) - len(s.apart)
    if not same or len(s.still) == s.num_sites:
        return ""
    return (
        f"{same} of {s.num_sites} sites have one value in all chains throughout. They may be truly certain, or stuck: draws cannot "
        "tell. Start chains with other values there (initial=), or compare log_prob with such a site changed."
    )


def _acceptance(s: Judged) -> str:
    if not s.acceptance or not s.can_refuse or _all_frozen(s):
        return ""
    mean = sum(s.acceptance) / len(s.acceptance)
    if mean < _RARELY:
        return f"Only {100 * mean:.2g} % of proposals are accepted. {_smaller_steps(s)}"
    if mean > _ALWAYS and s.changed_sites < max(0.1, s.num_sites / 200) and not s.one_site_a_step:
        return (
            f"Nearly every proposal is accepted, but changes only {significant(s.changed_sites)} sites on average: the steps are "
            "timid. A larger step_size or radius will mix faster."
        )
    return ""


def _smaller_steps(s: Judged) -> str:
    if s.one_site_a_step:
        return "The gradient may be a bad guide here: Target(..., differences='exact'), or another sampler."
    return "A smaller step_size or radius; if that does not help, Target(..., differences='exact'), or another sampler."


def _parity(s: Judged) -> str:
    thin = int(s.attributes.get("thin", 1))
    if not s.one_site_a_step or thin % 2 or s.attributes.get("num_values") != 2:
        return ""
    return (
        f"{s.sampler} flips one site a step, and one step in {thin} is kept: unless moves are refused, flips between draws are "
        f"even in number, and half of the states are hardly seen. An odd thin, such as {thin + 1}, sees both."
    )


def _one_chain(s: Judged) -> str:
    if s.num_chains != 1:
        return ""
    return "One chain: R-hat compares its two halves only, and cannot see a mode that it never visited. num_chains=4 or more can."
