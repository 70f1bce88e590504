"""The verdict in words: what to know, and the way out."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._words import WIDTH, counted, escaped, listed, significant
from ...local import ExactDifferences
from ...target import Target
from .fit import BLIND, FAR_OFF, RANKS, LocalFit, Seen
from .looking import ATTEMPTS

_RANKS_WELL, _EXPLAINS, _RARELY_OFF = 0.8, 0.5, 0.05


@dataclass(frozen=True, repr=False)
class LocalCheck:
    """What `saltus.check` found: print it, or read `trustworthy`, `advice`, `random` and `typical` (each a `LocalFit`).

    blind_sites: sites with predictions of exactly 0 at every state looked at, though f changes there.
    evaluations: of log_prob, with or without its gradient.
    """

    target: str
    model: str  # "gradient", "exact differences", ...
    random: LocalFit
    typical: LocalFit
    trustworthy: bool
    advice: str
    blind_sites: tuple[int, ...]
    evaluations: int
    by_construction: bool = False  # the model evaluates f, so there was nothing to compare

    def __str__(self) -> str:
        verdict = textwrap.wrap(
            f"{'Yes' if self.trustworthy else 'No'}. {self.advice}", WIDTH - 2, initial_indent="  ", subsequent_indent="  "
        )
        head = textwrap.wrap(f"Can the {self.model} of {self.target!r} be trusted?", WIDTH)
        judged = not self.by_construction and self.random.num_moves + self.typical.num_moves
        table = _table(self.random, self.typical) if judged else []
        return escaped("\n".join([*head, *table, *verdict]))

    __repr__ = __str__


def judge(target: Target, seen: Seen, history: np.ndarray, evaluations: int) -> LocalCheck:
    n = len(seen.drawn)
    random, typical = seen.fit(slice(n)), seen.fit(slice(n, None))
    blind, num_sites = seen.blind_sites()
    trusted, verdict = _verdict(target, seen, random, typical, blind, num_sites)
    notes = [_undefined(seen), _impossible(random, typical), _rising(history), _size_of_changes(typical)]
    return LocalCheck(
        target=repr(target),
        model=target.differences.words,
        by_construction=target.differences.evaluates,
        random=random,
        typical=typical,
        trustworthy=trusted,
        advice=" ".join(sentence for sentence in [verdict, *(notes if typical.num_moves else [])] if sentence),
        blind_sites=tuple(int(i) for i in blind),
        evaluations=evaluations,
    )


def _verdict(
    target: Target, seen: Seen, random: LocalFit, typical: LocalFit, blind: np.ndarray, num_sites: int
) -> tuple[bool, str]:
    """Whether to trust the model, and the one thing to know about it."""
    model = target.differences
    name, exact = model.words, model.evaluates
    if not typical.num_states:
        return exact, _nowhere(seen)
    if not typical.num_moves and not typical.unpredicted:
        return exact, _no_neighbour(typical)
    if not np.ptp(seen.values):
        alike = f"log_prob is the same at every state looked at ({significant(float(seen.values[0]))}): nothing to predict"
        return typical.trustworthy, f"{alike}. If that is not meant, check that it depends on s."
    if exact:
        return True, "Exact by construction: every change is evaluated."
    if typical.unpredicted or random.unpredicted:
        return False, _unpredicted(target, random, typical)
    if not seen.changes.any():
        size = significant(float(np.abs(seen.values).max()))
        lost = f"The changes of log_prob are lost in its rounding: it is about {size} in size, and no change is larger than "
        way_out = "subtract a constant from log_prob, or use jax.config.update('jax_enable_x64', True)"
        return False, f"{lost}{significant(typical.largest_change)}. Nothing can be judged: {way_out}."
    if model.exact and _holds(target, seen):
        return True, "The closed form is exact, as declared, at every move looked at."
    if model.exact:
        off = significant(max(random.largest_error, typical.largest_error))
        wrong = f"The differences are declared exact and are not: off by up to {off}"
        return False, f"{wrong}. Gibbs would sample another distribution. Correct the closed form, or leave out exact=True."
    if typical.judged.zero_share >= BLIND:
        return False, _blind(target, name, typical.judged.zero_share, blind, num_sites)
    return typical.trustworthy, _quality(target, name, random, typical) + _some_blind(target, blind, num_sites)


def _holds(target: Target, seen: Seen) -> bool:
    """A claim of exactness, to float32's rounding in both precisions (a log_prob may hold float32 constants)."""
    largest = np.abs(seen.values).max()
    slack = 2 * float(np.finfo(np.float32).eps) * (8 * largest + 4 * target.space.size)
    error = np.abs(np.where(seen.compared, seen.true - seen.predicted, 0))
    return bool((error <= slack + 1e-3 * np.abs(np.where(seen.compared, seen.true, 0)).max()).all())


def _nowhere(seen: Seen) -> str:
    tried = f"all of {ATTEMPTS * len(seen.drawn)} random states tried"
    if np.isnan(seen.drawn).all():
        return f"log_prob is NaN at {tried}: look for 0/0, the log of a negative number, or missing data."
    return f"log_prob is not finite at {tried}: pass initial=, a state that is possible, or Target(..., initial=codes)."


def _no_neighbour(typical: LocalFit) -> str:
    what = "impossible (-inf)" if typical.impossible else "undefined (NaN or +inf)"
    return (
        f"Every state one site away from those looked at is {what}: single-site changes say nothing here, and samplers that "
        "change one site at a time (GWG, Gibbs) cannot move. Write the constraint into the space, or as a finite penalty."
    )


def _unpredicted(target: Target, random: LocalFit, typical: LocalFit) -> str:
    bad = random.unpredicted + typical.unpredicted
    of = bad + random.num_moves + typical.num_moves
    says = f"The {target.differences.words} is NaN or infinite at {bad} of {of} moves whose log_prob is finite"
    if not target.differences.differentiates:
        return f"{says}: correct it, or use {_way_out(target)}."
    cause = "jnp.where does not stop the derivative of the branch not taken (log(0), sqrt(0), 0/0)"
    return f"{says}: {cause}; make that branch safe too, or use {_way_out(target)}."


def _blind(target: Target, name: str, zero_share: float, blind: np.ndarray, num_sites: int) -> str:
    where = f"{len(blind)} of {num_sites} sites" if len(blind) else f"{_percent(zero_share)} of sites, not always the same,"
    says = f"The {name} is zero at {where} though log_prob changes there"
    if not target.differences.differentiates:
        return f"{says}: correct it, or use {_way_out(target)}."
    cause = "an integer cast, indexing, rounding or a comparison blocks it" if len(blind) else "it is flat at these values"
    return f"{says}: {cause}; use {_way_out(target)}, or write log_prob as sums and products of s."


def _some_blind(target: Target, blind: np.ndarray, num_sites: int) -> str:
    if not len(blind):
        return ""
    which = listed([target.names[i] if target.names else i for i in blind])
    says = f" It is zero at {len(blind)} of {num_sites} sites though log_prob changes there ({which})"
    return f"{says}: is something cast or indexed? To see them: {_way_out(target)}."


def _way_out(target: Target) -> str:
    evaluations = ExactDifferences().evaluations_on(target)
    if evaluations <= 10**4:
        return f"target.replace(differences='exact') ({counted(evaluations, 'evaluation')} a step), or saltus.Gibbs()"
    return f"saltus.Gibbs(), which needs no gradient (differences='exact' would take {evaluations} evaluations a step)"


def _quality(target: Target, name: str, random: LocalFit, typical: LocalFit) -> str:
    """How good the predictions are where chains spend their time."""
    fit, far = typical.judged, typical.nearby is not None and typical.judged is not typical
    moves = "moves of one hop" if far else "moves"
    if fit.rank_correlation is None:
        if fit.r_squared == 1:
            return f"The {name} is right, though all {moves} looked at change log_prob alike."
        return f"All {moves} looked at change log_prob alike, and the {name} is off by up to {significant(fit.largest_error)}."
    ranks = f"rank correlation {_correlation(fit.rank_correlation)} at typical states"
    if not typical.trustworthy:
        return _distrust(target, name, random, fit, ranks)
    if fit.rank_correlation < _RANKS_WELL:
        says = f"The {name} is a rough guide ({ranks}, {_percent(fit.far_off)} of {moves} off by more than {FAR_OFF:g}): "
        return says + f"better than none. To compare: {_way_out(target)}."
    if fit.far_off > _RARELY_OFF or (fit.r_squared or 0) < _EXPLAINS:
        return f"The {name} ranks {moves} well ({ranks}) but {_wrong_size(fit)}. To compare: {_way_out(target)}."
    says = f"The {name} predicts {moves} well ({ranks}, largest error {significant(fit.largest_error)})."
    if far and (typical.rank_correlation or 0) < _RANKS_WELL:
        says += f" Not so distant moves ({_correlation(typical.rank_correlation or 0)} over all): steps will have to be small."
    return says


def _distrust(target: Target, name: str, random: LocalFit, fit: LocalFit, ranks: str) -> str:
    if (fit.rank_correlation or 0) >= RANKS:
        says = f"The {name} ranks moves ({ranks}) but {_wrong_size(fit)}: proposals will be refused"
    else:
        better = random.judged.rank_correlation
        elsewhere = f", {_correlation(better)} at random ones" if better is not None and better >= _RANKS_WELL else ""
        says = f"The {name} is a bad guide here ({ranks}{elsewhere})"
    return f"{says}; use {_way_out(target)}."


def _wrong_size(fit: LocalFit) -> str:
    scale = fit.scale or 1.0
    verb = "overshoots" if scale >= 1.5 else "undershoots" if scale <= 2 / 3 else "gets sizes wrong"
    average = "" if verb == "gets sizes wrong" else f"its changes are {significant(scale)} times the true ones; "
    off = f"{_percent(fit.far_off)} of them are off by more than {FAR_OFF:g}, up to {significant(fit.largest_error)}"
    if fit.worse_than_none:
        return f"{verb} ({average}{f'{off}; ' if fit.far_off else ''}R-squared {_cut(fit.r_squared or 0)}, worse than none)"
    none = f"none is off by more than {FAR_OFF:g}, so little is lost"
    return f"{verb} ({average}{off if fit.far_off else none})"


def _undefined(seen: Seen) -> str:
    bad, of = int(seen.undefined.sum()), int(seen.undefined.size)
    if not bad:
        return ""
    return (
        f"log_prob is NaN or +inf after {bad} of {of} moves. Samplers refuse and count them: if such states are impossible "
        "return -inf there, else look for 0/0 or the log of a negative number."
    )


def _impossible(random: LocalFit, typical: LocalFit) -> str:
    said = []
    if not random.num_states:
        said.append("No random state was found to be possible; only typical ones were looked at.")
    if typical.impossible:
        of = typical.impossible + typical.num_moves + typical.undefined + typical.unpredicted
        said.append(f"{typical.impossible} of {of} moves from typical states are impossible (-inf) and were left out.")
    return " ".join(said)


def _rising(history: np.ndarray) -> str:
    """Whether typical states are typical yet, from f (steps, chains)."""
    steps, chains = history.shape
    if chains < 4 or steps < 8 or not np.isfinite(history[steps // 2 :]).all():
        return ""
    late = history[steps // 2 :].astype(np.float64)
    rise = late[len(late) // 2 :].mean(axis=0) - late[: len(late) // 2].mean(axis=0)
    spread = max(float(late.std(axis=0).mean()), float(np.abs(late).max()) * 1e-6)
    if rise.mean() <= 3 * rise.std() / math.sqrt(chains) or rise.mean() <= max(spread, 0.5):
        return ""
    return f"log_prob was still rising after {steps} steps: typical states may be elsewhere (num_steps={10 * steps} looks further)."


def _size_of_changes(typical: LocalFit) -> str:
    size = typical.largest_change
    if 0 < size < 1e-3:
        return f"No change of log_prob is larger than {significant(size)}: the target is all but uniform, and any sampler will do."
    if size > 1e6:
        return f"Changes of log_prob reach {significant(size)}: such moves are never made, or always. Check its units."
    return ""


def _table(random: LocalFit, typical: LocalFit) -> list[str]:
    rows: list[tuple[str, Callable[[LocalFit], str]]] = [
        ("states, moves compared", lambda fit: f"{fit.num_states}, {fit.num_moves}"),
        ("rank correlation", lambda fit: _correlation(fit.rank_correlation)),
        ("  moves of one hop", lambda fit: _correlation(fit.judged.rank_correlation)),
        ("R-squared", lambda fit: "-" if fit.r_squared is None else _cut(fit.r_squared)),
        ("  moves of one hop", lambda fit: "-" if fit.judged.r_squared is None else _cut(fit.judged.r_squared)),
        ("sites wrongly zero", lambda fit: _percent(fit.zero_share)),
        (f"off by more than {FAR_OFF:g}", lambda fit: _percent(fit.far_off)),
        ("largest error", lambda fit: significant(fit.largest_error)),
        ("largest true change", lambda fit: significant(fit.largest_change)),
    ]
    if random.nearby is None:
        rows = [row for row in rows if not row[0].startswith(" ")]
    cells = [(label, *(say(fit) if fit.num_moves else "-" for fit in (random, typical))) for label, say in rows]
    return [f"  {a:<24}{b:>16}{c:>16}" for a, b, c in [("", "random states", "typical states"), *cells]]


def _correlation(x: float | None) -> str:
    return "-" if x is None else f"{round(x, 2) + 0.0:.2f}"


def _cut(r_squared: float) -> str:
    return _correlation(r_squared) if r_squared > -10 else "below -10"


def _percent(share: float) -> str:
    return "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
