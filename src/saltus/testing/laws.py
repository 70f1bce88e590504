"""Whether a kernel draws what its densities say: the proposal's sample against its log_prob, the noise against N(0, M)."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import scipy.stats

from .._record import default_float
from .enumeration import Enumeration
from .exact import Proof
from .power import chi_square_rows
from .protocol import offers
from .report import OBSERVED, Finding, p_value
from .running import noise, proposals

_PROPOSALS = 2**17  # draws, over all states and blocks
_NOISE = 2**19  # draws: 1 % off in scale is ten standard errors of the variance
_STATES, _PAIRS = 16, 8


def check_proposal(kernel: Any, target: Any, every: Enumeration, p: np.ndarray, proof: Proof, key: jax.Array) -> Finding:
    """Draws of propose(x).sample at some states, for every block or fixed noise, against log_prob."""
    if not proof.tables:
        return Finding("proposal", "not run", "needs propose(...).log_prob", how=OBSERVED)
    rng = np.random.default_rng(1)
    rows = np.sort(rng.choice(len(p), size=min(_STATES, int((p > 0).sum())), replace=False, p=p))
    num = max(_PROPOSALS // (len(rows) * len(proof.tables)), 256)
    codes = np.asarray(every.codes)[rows]
    p_values = []
    for i, (table, fixed) in enumerate(zip(proof.tables, proof.noises, strict=True)):
        u = None if fixed is None else _narrowed(np.asarray(fixed)[rows])
        drawn = proposals(kernel, target, codes, u, jax.random.fold_in(key, i), num)
        if (drawn < 0).any():
            return Finding("proposal", "FAILED", "sample() leaves the space", "codes that wrap around or overrun", OBSERVED)
        observed = np.stack([np.bincount(row, minlength=len(p)) for row in drawn])
        p_values.append(chi_square_rows(observed, num * np.exp(table["log_q"][rows])))
    least = min(1.0, min(p_values) * len(p_values))
    what = f"{num * len(rows) * len(p_values)} draws of sample() at {len(rows)} states against log_prob"
    return p_value("proposal", what, least, "sample() draws from another law than log_prob says", how=OBSERVED)


def _narrowed(u: np.ndarray) -> np.ndarray:
    """In the caller's precision."""
    return u.astype(default_float()) if u.dtype.kind == "f" else u


def check_noise(kernel: Any, target: Any, every: Enumeration, key: jax.Array) -> Finding:
    """u ~ N(0, M) with the M that `condition` implies: for pairs of states, Δ·u ~ N(0, Δ·MΔ), MΔ = u(s) - u(s')."""
    if not every.continuous:
        return Finding("noise", "not run", "the kernel draws no continuous noise", how=OBSERVED)
    if not offers(every.kernel, "condition"):
        return Finding("noise", "not run", "needs condition(target, z, x)", how=OBSERVED)
    u = noise(kernel, target, key, _NOISE)
    delta, variance = _directions(every, u.shape[1])
    if not len(delta):
        return Finding("noise", "not run", "M is zero", how=OBSERVED)
    along = u @ (delta / np.sqrt(variance)[:, None]).T
    totals = np.sum(along**2, axis=0)
    chi = 2 * np.minimum(scipy.stats.chi2.cdf(totals, _NOISE), scipy.stats.chi2.sf(totals, _NOISE))
    shape = [scipy.stats.kstest(column[: 2**15], "norm").pvalue for column in along.T]
    p = min(1.0, float(np.min([*chi, *shape])) * (len(chi) + len(shape)))
    ratio = float(np.sqrt(totals / _NOISE)[np.argmin(chi)])
    what = f"{_NOISE} draws of the noise against N(0, M), scale {ratio:.4f} of it"
    return p_value("noise", what, p, "the noise has another covariance than the ratio assumes", how=OBSERVED)


def _directions(every: Enumeration, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(Δ, Δ·MΔ) for pairs of states between which the noise matters."""
    with jax.enable_x64(True):
        at_zero, s = np.asarray(every.noise_at(np.zeros(size))), every.embedded()
    rows = np.random.default_rng(0).integers(len(s), size=(2, _PAIRS))
    delta, pulled = s[rows[1]] - s[rows[0]], at_zero[rows[0]] - at_zero[rows[1]]
    variance = np.sum(delta * pulled, axis=1)
    some = variance > 1e-12
    return delta[some], variance[some]
