"""What running chains refute: types, coherence, stationarity, transitions, motion, states that are never connected."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from ..target import Target
from .exact import Proof
from .power import chi_square_rows
from .report import OBSERVED, Finding, p_value
from .running import Walk, step_shapes

_WIDE = 1e-11  # of a float64 leaf: rounding only, also after hundreds of steps


def check_types(kernel: Any, target: Target) -> Finding:
    """What comes out of `step` is of the types and shapes that went in: a run carries it from step to step."""
    x, y = step_shapes(kernel, target)
    meaning = "arithmetic that widens: return codes.astype(x.codes.dtype)"
    before, after = str(jax.tree.structure(x)), str(jax.tree.structure(y))
    if before != after:
        return Finding("codes", "FAILED", f"step returns {after} for {before}", how=OBSERVED)
    for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(x), jax.tree.leaves(y), strict=True):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            name = jax.tree_util.keystr(path).strip(".")
            text = f"step returns {name} of {b.dtype}{list(b.shape)} where {a.dtype}{list(a.shape)} went in"
            return Finding("codes", "FAILED", text, meaning, OBSERVED)
    return Finding("codes", "passed", f"{target.space.code_dtype} in and out", how=OBSERVED)


def check_inside(walks: list[Walk], finding: Finding) -> Finding:
    """`finding`, unless a chain has left the space."""
    outside = max(float((walk.states < 0).mean()) for walk in walks)
    if not outside:
        return finding
    meaning = "codes below 0 or beyond the last value: arithmetic that wraps around, or a kernel for fewer or for more values"
    return Finding("codes", "FAILED", f"{outside:.3g} of the states seen are outside the space", meaning, OBSERVED)


def check_coherence(walks: list[Walk], wide: Walk | None) -> Finding:
    """Cached against recomputed: after 1, 3 and many steps; `wide`: the same in float64, where a slow drift shows."""
    meaning = "a state whose log_prob or local model belongs to another one: take all of it from init(target, codes)"
    worst, limit, leaf = 0.0, 0.0, "log_prob"
    for walk in [*walks, *([wide] if wide else [])]:
        for name, (gap, nan, dtype) in walk.gaps.items():
            if nan:
                return Finding("coherence", "FAILED", f"NaN in {name}, or recomputed there, but not both", meaning, OBSERVED)
            allowed = _allowed(dtype)
            if gap - allowed > worst - limit or (gap > allowed and worst <= limit):
                worst, limit, leaf = gap, allowed, f"{name}{' (in float64)' if walk is wide else ''}"
    text = f"cached against recomputed, {leaf} = {worst:.2g} (limit {limit:.0e})"
    if worst <= limit:
        return Finding("coherence", "passed", text, how=OBSERVED)
    rounding = wide is not None and all(not nan and gap <= _allowed(dtype) for gap, nan, dtype in wide.gaps.values())
    if rounding:
        meaning = "rounding that adds up in what is kept from step to step: compute it anew now and then"
    return Finding("coherence", "FAILED (rounding)" if rounding else "FAILED", text, meaning, OBSERVED)


def _allowed(dtype: Any) -> float:
    if not jnp.issubdtype(dtype, jnp.floating):
        return 0.0
    return _WIDE if dtype == jnp.float64 else 100 * float(jnp.finfo(dtype).eps)


def check_transition(proof: Proof, walk: Walk) -> Finding:
    if proof.matrix is None:
        return Finding("transition", "not run", "needs a transition matrix without continuous noise", how=OBSERVED)
    n = len(proof.matrix)
    leaving = np.bincount(walk.start, minlength=n)
    expected = leaving[:, None] * np.maximum(proof.matrix, 0)
    observed = np.bincount(walk.start.astype(np.int64) * n + walk.states[0], minlength=n**2).reshape(n, n)
    meaning = "`step` does something else than propose and log_ratio say: a key used twice, sites accepted one by one"
    return p_value("transition", "steps against the matrix", chi_square_rows(observed, expected), meaning, how=OBSERVED)


def edges(walks: list[Walk], num_states: int) -> tuple[np.ndarray, np.ndarray]:
    """(before, after) the pairs of states that chains were seen in, one look after the other."""
    seen = np.zeros(num_states**2, bool)
    for walk in walks:
        for before, after in itertools.pairwise([walk.start, *walk.states]):
            seen[before.astype(np.int64) * num_states + after] = True
    return np.divmod(np.flatnonzero(seen), num_states)


def check_connected(proof: Proof, p: np.ndarray, walks: list[Walk]) -> Finding | None:
    """Sets of states between which no chain was seen to pass; None where a matrix has proved more."""
    if proof.matrix is not None:
        return None
    before, after = edges(walks, len(p))
    graph = scipy.sparse.coo_matrix((np.ones(len(before)), (before, after)), shape=(len(p), len(p)))
    _, part = connected_components(graph, connection="weak")
    share = np.sort(np.bincount(part, p))[::-1]
    large = share[share > 0.01]
    if len(large) < 2:
        return Finding("connected", "passed", "chains passed between all states that have mass", how=OBSERVED)
    moving = max(float((walk.states[-1] != walk.start).mean()) for walk in walks)
    text = f"{len(large)} sets of states that no chain left, the two largest with mass {large[0]:.3g} and {large[1]:.3g}"
    meaning = "moves that keep something fixed: the chain stays where it starts"
    broken = moving > 0.1 and not proof.complete and (p > 0).all()
    return Finding("connected", "FAILED" if broken else "warning", text, meaning, OBSERVED)


def check_motion(states: np.ndarray, p: np.ndarray, walks: list[Walk]) -> Finding:
    """A chain that stays put, or never enters some value, is invariant too: warn of it."""
    before, after = edges(walks, len(p))
    if (before == after).all():
        meaning = "a step size that is far too small, or a step that forgets its result"
        return Finding("motion", "warning", "no chain moved", meaning, OBSERVED)
    entered = np.zeros((states.shape[1], states.max() + 1), bool)
    for site, (old, new) in enumerate(zip(states[before].T, states[after].T, strict=True)):
        entered[site, new[old != new]] = True
    likely = np.array([[p[states[:, i] == v].sum() for v in range(entered.shape[1])] for i in range(entered.shape[0])]) > 0.01
    missing = np.argwhere(likely & ~entered)
    if len(missing):
        text = f"site {missing[0][0]} never entered its value {missing[0][1]}"
        return Finding(
            "motion", "warning", text, "part of the support is out of reach, or the step size is far too small", OBSERVED
        )
    return Finding("motion", "passed", "every site entered every value that has mass", how=OBSERVED)
