"""check_space: the promises every space makes, checked on a small one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..engine.arguments import read_seed, read_space
from ..errors import SpaceError
from ..spaces import Space
from .power import chi_square
from .report import Finding, Report, compare, p_value


def check_space(space: Space, *, seed: int = 0) -> Report:
    """Certify a space (give a small one: its states are enumerated). Raises CheckError with the report on failure.

    space: an instance. seed: of the states that are looked at.
    """
    codes, seed = np.asarray(read_space(space).enumerate()), read_seed(seed)
    with jax.enable_x64(True):
        findings = [
            _states(space, codes),
            _round_trip(space, codes),
            _foreign(space),
            _hops(space),
            _moves(space, codes, jax.random.key(seed)),
            _uniform(space, codes, jax.random.key(seed)),
        ]
    return Report(f"check_space: {space}", tuple(findings)).raise_if_failed()


def _verdict(name: str, ok: bool, text: str, meaning: str) -> Finding:
    return Finding(name, "passed" if ok else "FAILED", text, meaning)


def _states(space: Space, codes: np.ndarray) -> Finding:
    s = np.asarray(space.embed(codes)).reshape(len(codes), -1)
    distinct = len(np.unique(s.round(9), axis=0)) == space.num_values**space.num_sites == len(codes)
    text = f"{len(codes)} states of shape {space.shape}"
    return _verdict("states", distinct and s.shape[1] == space.size, text, "two codes embed to the same state, or a shape is wrong")


def _round_trip(space: Space, codes: np.ndarray) -> Finding:
    shown = np.array_equal(space.encode(space.show(codes)), codes)
    embedded = np.array_equal(space.encode(np.asarray(space.embed(codes))), codes)
    text = f"encode(show(c)) == c: {shown}, encode(embed(c)) == c: {embedded}"
    return _verdict("round trip", shown and embedded, text, "labels do not increase, or `values` and `embed` disagree")


def _foreign(space: Space) -> Finding:
    shown = space.show(np.zeros(space.num_sites, int)).astype(float)
    shown[-1] = np.nan
    try:
        space.encode(shown)
    except SpaceError:
        return Finding("foreign states", "passed", "NaN is refused")
    return Finding("foreign states", "FAILED", "NaN was taken for a state", "`encode` was overridden without its checks")


def _hops(space: Space) -> Finding:
    hops = space.hop_table()
    metric = np.array_equal(hops, hops.T) and (np.diag(hops) == 0).all() and (hops + np.eye(len(hops)) > 0).all()
    reach = np.linalg.matrix_power((hops <= 1).astype(float), space.num_values) > 0
    text = f"diameter {hops.max()}"
    return _verdict(
        "hops", bool(metric and reach.all()), text, "hops must be symmetric, 0 only on the diagonal, and connect all values"
    )


def _moves(space: Space, codes: np.ndarray, key: jax.Array) -> Finding:
    """linear and quadratic scores against their definitions, for every state and every new state."""
    h, c = jax.random.normal(key, (2, space.size))
    values = jnp.asarray(space.values)
    s = values[codes].reshape(len(codes), -1)

    def scores(a: jax.Array) -> Any:
        return jax.vmap(lambda b: jnp.stack([space.linear(a, h).at(b), space.quadratic(a, c).at(b)]))(jnp.asarray(codes))

    used = np.asarray(jax.lax.map(scores, jnp.asarray(codes)))
    delta = s[None] - s[:, None]
    told = np.stack([delta @ h, delta**2 @ c], axis=-1)
    return compare(
        "moves", "scores against h·Δ and c·Δ²", float(np.abs(used - told).max()), 1e-12, "`linear` or `quadratic` is wrong"
    )


def _uniform(space: Space, codes: np.ndarray, key: jax.Array) -> Finding:
    num = 100 * len(codes)
    drawn = np.asarray(jax.vmap(space.random)(jax.random.split(key, num)))
    index = drawn @ (space.num_values ** np.arange(space.num_sites)[::-1])
    p = chi_square(np.bincount(index, minlength=len(codes)), np.full(len(codes), num / len(codes)))
    return p_value("random", "uniform draws", p, "`random` is not uniform, or leaves the space")
