"""What a step says about itself, against the states before and after it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import scipy.stats

from ..kernels import Info
from ..target import Target
from .enumeration import embedded
from .exact import Proof
from .power import LEVEL
from .protocol import given, offers
from .report import OBSERVED, Finding
from .running import Walk

_MEANING = "an Info that was not taken from this step: `saltus.extending.metropolis` and `describe` return the right one"


def check_info(kernel: Any, target: Target, codes: np.ndarray, walk: Walk, proof: Proof) -> Finding:
    """Recompute Info of the first step: moved, jump, changed_sites and how often moves are accepted."""
    if not isinstance(walk.infos, Info):
        return Finding("info", "not run", "step returns no saltus.Info", how=OBSERVED)
    said = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), walk.infos)
    wrong = _impossible(said, target) or _rates(said, walk, proof)
    if not wrong:
        wrong = _travel(said, target, codes, walk)
        if wrong and offers(given(kernel), "evaluations"):
            text = f"{wrong}; as `evaluations` says, a step is several moves, and Info speaks of some of them"
            return Finding("info", "warning", text, "jumps that a tuner sees are too small", OBSERVED)
    if wrong:
        return Finding("info", "FAILED", wrong, _MEANING, OBSERVED)
    return Finding("info", "passed", "moved, jump, changed_sites and acceptance as recomputed", how=OBSERVED)


def _impossible(said: Any, target: Target) -> str:
    """What no step can say."""
    for name in ("accepted", "acceptance_rate", "moved", "jump", "changed_sites"):
        if np.isnan(getattr(said, name)).any():
            return f"{name} is NaN in {np.isnan(getattr(said, name)).mean():.3g} of steps"
    rate = said.acceptance_rate
    if rate.min() < 0 or rate.max() > 1 + 1e-6:
        return f"acceptance_rate = {rate[np.argmax(np.abs(rate - 0.5))]:.4g}, not within 0 and 1"
    if (said.changed_sites < 0).any() or (said.changed_sites > target.space.num_sites).any():
        return f"changed_sites = {said.changed_sites.max():g} of {target.space.num_sites} sites"
    if ((said.moved > 0) & (said.accepted == 0)).any():
        return "a step that was refused has moved"
    return ""


def _rates(said: Any, walk: Walk, proof: Proof) -> str:
    """Moves are accepted as often as acceptance_rate says; where the ratio is known, it is that of the move."""
    rate, num = said.acceptance_rate, walk.chains
    spread = np.sqrt(np.sum(rate * (1 - rate)) + 1)
    off = np.sum(said.accepted - rate) / spread
    if abs(off) > scipy.stats.norm.isf(LEVEL / 2):
        return f"acceptance_rate is {rate.mean():.4g} on average, but {said.accepted.mean():.4g} of moves were accepted"
    if proof.alpha is None or proof.acceptance is None:
        return ""
    end = walk.states[0]
    gone = (end != walk.start) & (end >= 0)
    gap = np.abs(rate[gone] - proof.alpha[walk.start[gone], end[gone]])
    if len(gap) and gap.max() > 1e-2:
        return f"acceptance_rate is off by {gap.max():.2g} from min(1, exp(log_ratio)) of the move that was made"
    error = max(float(rate.std()), 1e-3) / np.sqrt(num)
    if abs(rate.mean() - proof.acceptance) > 6 * error + 1e-4:
        return f"acceptance_rate is {rate.mean():.4g} on average, {proof.acceptance:.4g} by enumeration"
    return ""


def _travel(said: Any, target: Target, codes: np.ndarray, walk: Walk) -> str:
    """moved, jump and changed_sites of what was accepted."""
    end = np.maximum(walk.states[0], 0)
    before, after = codes[walk.start], codes[end]
    moved = (before != after).any(1)
    if (moved != (said.moved > 0)).any():
        i = int(np.argmax(moved != (said.moved > 0)))
        return f"moved is {bool(said.moved[i])} where the state {'changed' if moved[i] else 'did not change'}"
    s = np.asarray(embedded(target.space, codes), np.float64)
    jump = np.abs(s[end] - s[walk.start]).sum(1)
    off = np.abs(jump - said.jump) > 1e-4 * (1 + jump)
    if off.any():
        return f"jump is {said.jump[off][0]:.6g} where the state moved by {jump[off][0]:.6g}"
    sites = (before != after).sum(1)
    off = moved & (sites != said.changed_sites)
    if off.any():
        return f"changed_sites is {said.changed_sites[off][0]:g} where {sites[off][0]} sites changed"
    return ""
