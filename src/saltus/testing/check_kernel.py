"""check_kernel: every instrument of exactness that a kernel allows."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

from .._record import default_float
from ..errors import CheckError
from ..spaces import Space
from ..target import Target
from .enumeration import Enumeration, enumerate_states, offers
from .report import Finding, Report, compare, p_value
from .targets import rugged

EXACT = 1e-12
NUM_Z = 3


def check_kernel(kernel: Any, target_or_space: Target | Space, *, seed: int = 0, num_chains: int = 2**16) -> Report:
    """Certify a kernel on a small target; on a space alone, on a rugged target made for it.

    Needs `kernel.step(key, target, x)` (without `init`, Points come from saltus.evaluate). Where a kernel offers more,
    more is run:

        propose + log_definition        definition: the proposal is its equation, normalised by enumeration
        propose + log_ratio             invariance: p K = p and detailed balance, by enumeration in float64
        noise + condition               the same at fixed auxiliary z against p(s | z), and the law of the noise
        step                            coherence: what is cached equals what is recomputed, after every step
        step                            stationary: exact draws stay exact after 1 and 3 steps, in your own precision
        step + propose + log_ratio      transition: steps go where the matrix says

    Returns a Report; raises CheckError with the report where an instrument fails. Works with x64 on or off.
    """
    target = rugged(target_or_space) if isinstance(target_or_space, Space) else target_or_space
    if not isinstance(target, Target) or isinstance(kernel, type) or not hasattr(kernel, "step"):
        raise CheckError(
            "Nothing to check.", expected="a kernel instance and a saltus.Target or space", found=f"{kernel!r} and {target!r}"
        )
    kernel = kernel if hasattr(kernel, "init") else _Evaluating(kernel)
    key = jax.random.key(seed)
    with jax.enable_x64(True):
        every = Enumeration(kernel, target)
        p = every.stationary()
        exact, K = _exact_instruments(every, p, key)
        findings = [*exact, _noise_law(every, key)]
    findings += _running_instruments(kernel, target, p, K, key, num_chains)
    return Report(f"check_kernel: {kernel!r} on {target.space}", tuple(findings)).raise_if_failed()


class _Evaluating:
    """A user's kernel with `step` alone: Points come from the target."""

    def __init__(self, kernel: Any):
        self.kernel, self.step = kernel, kernel.step

    def init(self, target: Target, codes: jax.Array) -> Any:
        return target.point(codes)

    def __repr__(self) -> str:
        return repr(self.kernel)


def _exact_instruments(every: Enumeration, p: np.ndarray, key: jax.Array) -> tuple[list[Finding], np.ndarray | None]:
    """Definition, invariance and period; and the transition matrix where there is one."""
    kernel = every.kernel
    if every.continuous and not offers(kernel, "condition"):
        missing = "the kernel draws noise: needs condition(target, z, x) to fix it"
        return [Finding(name, "not run", missing) for name in ("definition", "invariance", "period")], None
    zs: Any = every.auxiliaries(key, NUM_Z) if every.continuous else []
    tables = [every.tables(noise) for noise in every.noises(zs)]
    findings = [_definition(tables)]
    if "log_q" not in tables[0] or "log_ratio" not in tables[0]:
        missing = "needs propose(target, x, noise) and log_ratio(target, x, y, noise)"
        return [*findings, Finding("invariance", "not run", missing), Finding("period", "not run", missing)], None
    matrices = [every.matrix_from(t) for t in tables]
    if every.continuous:
        found = [_leaves(K, every.conditional(z), "p(.|z)") for K, z in zip(matrices, zs, strict=True)]
        worst = next((f for f in found if f.status == "FAILED"), found[0])
        return [*findings, worst, Finding("period", "not run", "the chain at fixed z says nothing about it")], None
    K = kernel.compose(matrices) if offers(kernel, "compose") else matrices[0]
    return [*findings, _leaves(K, p, "p", getattr(kernel, "reversible", True)), _period(K, p)], K


def _definition(tables: list[dict[str, np.ndarray]]) -> Finding:
    if not {"log_q", "log_definition"} <= set(tables[0]):
        return Finding("definition", "not run", "needs propose and log_definition(target, x, codes, noise)")
    gap = max(np.max(np.abs(np.exp(t["log_q"]) - np.exp(t["log_definition"]))) for t in tables)
    total = max(np.max(np.abs(np.exp(t["log_q"]).sum(1) - 1)) for t in tables)
    meaning = "a wrong factor, sign or boundary in the proposal: it may still be invariant, but it is not this sampler"
    return compare("definition", "largest gap between proposal and equation", float(max(gap, total)), EXACT, meaning)


def _leaves(K: np.ndarray, p: np.ndarray, symbol: str, reversible: bool = True) -> Finding:
    drift = float(np.max(np.abs(p @ K - p)))
    flow = p[:, None] * K
    imbalance = float(np.max(np.abs(flow - flow.T))) if reversible else 0.0
    what = f"|{symbol} K - {symbol}| and detailed balance" if reversible else f"|{symbol} K - {symbol}| (not reversible by design)"
    meaning = "an error in the ratio: a missing q(s|s'), a reverse move centred elsewhere, a boundary left out"
    return compare("invariance", what, float(np.max([drift, imbalance, -K.min()])), EXACT, meaning)


def _period(K: np.ndarray, p: np.ndarray) -> Finding:
    """Warn of a periodic or a reducible chain on the states that have mass."""
    eigenvalues = np.linalg.eigvals(K[np.ix_(p > 0, p > 0)])
    if np.min(np.abs(eigenvalues + 1)) < 1e-6:
        meaning = "the chain is periodic: keep an odd number of steps between draws, or let it hold"
        return Finding("period", "warning", "an eigenvalue at -1", meaning)
    if np.sum(np.abs(eigenvalues - 1) < 1e-9) > 1:
        return Finding("period", "warning", "more than one eigenvalue at 1", "some states cannot be reached from others")
    second = np.sort(np.abs(eigenvalues))[-2] if len(eigenvalues) > 1 else 0.0
    return Finding("period", "passed", f"no eigenvalue at -1; second largest modulus {second:.3g}")


def _noise_law(every: Enumeration, key: jax.Array) -> Finding:
    """u ~ N(0, M) with the M that `condition` implies: for pairs of states, Δ·u ~ N(0, Δ·MΔ), MΔ = u(s) - u(s')."""
    if not every.continuous:
        return Finding("noise", "not run", "the kernel draws no continuous noise")
    if not offers(every.kernel, "condition"):
        return Finding("noise", "not run", "needs condition(target, z, x)")
    num, pairs = 2**14, 8
    u = jax.jit(jax.vmap(lambda k: every.kernel.noise(k, every.target)))(jax.random.split(key, num))
    rows = np.random.default_rng(0).integers(len(every.codes), size=(2, pairs))
    at_zero = np.asarray(every.noise_at(jnp.zeros_like(u[0])))
    s = np.asarray(every.target.space.ravel(every.target.space.embed(every.codes)))
    delta, pulled = s[rows[1]] - s[rows[0]], at_zero[rows[0]] - at_zero[rows[1]]
    variance = np.sum(delta * pulled, axis=1)
    some = variance > 1e-12
    along = np.asarray(u) @ delta[some].T / np.sqrt(variance[some])
    totals = np.sum(along**2, axis=0)
    chi = 2 * np.minimum(scipy.stats.chi2.cdf(totals, num), scipy.stats.chi2.sf(totals, num))
    shape = [scipy.stats.kstest(column, "norm").pvalue for column in along.T]
    p = float(np.min([*chi, *shape], initial=1.0))
    return p_value("noise", "noise against N(0, M)", p, "the noise has another covariance than the ratio assumes")


def _running_instruments(
    kernel: Any, target: Target, p: np.ndarray, K: np.ndarray | None, key: jax.Array, chains: int
) -> list[Finding]:
    """Coherence, stationary start and transition, in the caller's own precision: this is the kernel that runs."""
    init = jax.vmap(lambda codes: kernel.init(target, codes))

    @jax.jit
    def step(key: jax.Array, x: Any) -> tuple[Any, jax.Array]:
        x, _ = jax.vmap(lambda k, x: kernel.step(k, target, x))(jax.random.split(key, chains), x)
        return x, _gap(x, init(x.codes))

    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    start = rng.choice(len(p), size=chains, p=p)
    x = jax.jit(init)(enumerate_states(target)[start])
    weights = target.space.num_values ** np.arange(target.space.num_sites)[::-1]
    ends, gaps = [], []
    for k in jax.random.split(jax.random.fold_in(key, 1), 3):
        x, gap = step(k, x)
        ends.append(np.asarray(x.codes) @ weights)
        gaps.append(float(gap))
    states = np.asarray(enumerate_states(target))
    return [
        _coherence(max(gaps), x.log_prob.dtype),
        *_stationary_start(p, ends, chains),
        _transition(K, start, ends[0]),
        _motion(states, p, [start, *ends]),
    ]


def _gap(x: Any, y: Any) -> jax.Array:
    """The largest relative difference between two Points."""

    def leaf(a: jax.Array, b: jax.Array) -> jax.Array:
        a, b = a.astype(default_float()), b.astype(default_float())
        same = (a == b) | (jnp.isnan(a) & jnp.isnan(b))
        return jnp.max(jnp.where(same, 0, jnp.abs(a - b) / (1 + jnp.abs(b))))

    return jnp.max(jnp.stack(jax.tree.leaves(jax.tree.map(leaf, x, y))))


def _coherence(gap: float, dtype: Any) -> Finding:
    meaning = "a Point whose log_prob or local model belongs to another state: take all of it from init(target, codes)"
    return compare("coherence", "cached against recomputed", gap, 100 * float(jnp.finfo(dtype).eps), meaning)


def _stationary_start(p: np.ndarray, ends: list[np.ndarray], chains: int) -> list[Finding]:
    meaning = "the random shell: a key used twice, sites accepted one by one, chains mixed, or a stale cache (shows after 3 steps)"
    findings = []
    for steps in (1, 3):
        p_val = chi_square(np.bincount(ends[steps - 1], minlength=len(p)), chains * p)
        findings.append(p_value("stationary start", f"{chains} exact draws, {steps} step{'s'[: steps - 1]} on", p_val, meaning))
    return findings


def _transition(K: np.ndarray | None, start: np.ndarray, end: np.ndarray) -> Finding:
    if K is None:
        return Finding("transition", "not run", "needs a transition matrix without continuous noise")
    n = len(K)
    leaving = np.bincount(start, minlength=n)
    expected = leaving[:, None] * np.maximum(K, 0)
    observed = np.bincount(start * n + end, minlength=n**2).reshape(n, n)
    rows = [_statistic(o, e) for o, e, count in zip(observed, expected, leaving, strict=True) if count >= 10]
    total, freedom = np.sum(rows, axis=0)
    p_val = float(scipy.stats.chi2.sf(total, freedom)) if freedom else 1.0
    return p_value("transition", "steps against the matrix", p_val, "`step` does something else than propose and log_ratio say")


def _motion(states: np.ndarray, p: np.ndarray, path: list[np.ndarray]) -> Finding:
    """A chain that stays put, or never enters some value, is invariant too: warn of it."""
    if all(np.array_equal(path[0], later) for later in path[1:]):
        return Finding(
            "motion", "warning", "no chain moved", "a step size that is far too small, or a step that forgets its result"
        )
    entered = np.zeros((states.shape[1], states.max() + 1), bool)
    for before, after in itertools.pairwise(path):
        for site in range(states.shape[1]):
            new = states[after, site][states[after, site] != states[before, site]]
            entered[site, new] = True
    likely = np.array([[p[states[:, i] == v].sum() for v in range(entered.shape[1])] for i in range(entered.shape[0])]) > 0.01
    missing = np.argwhere(likely & ~entered)
    if len(missing):
        text = f"site {missing[0][0]} never entered its value {missing[0][1]}"
        return Finding("motion", "warning", text, "part of the support is out of reach, or the step size is far too small")
    return Finding("motion", "passed", "every site entered every value that has mass")


def chi_square(observed: np.ndarray, expected: np.ndarray) -> float:
    """p-value of counts against their expectation; 0 where something impossible was seen."""
    total, freedom = _statistic(observed, expected)
    return float(scipy.stats.chi2.sf(total, freedom)) if freedom else 1.0


def _statistic(observed: np.ndarray, expected: np.ndarray) -> tuple[float, int]:
    """(statistic, degrees of freedom); cells expected below 10 are pooled, with the smallest others if need be."""
    if observed[expected <= 1e-9].sum() > 0:
        return np.inf, 1
    order = np.argsort(expected)
    expected, observed = expected[order], observed[order]
    pooled = int(np.searchsorted(np.cumsum(expected), 10)) + 1
    pooled = max(pooled, int(np.searchsorted(expected, 10)))
    e = np.append(expected[pooled:], expected[:pooled].sum())
    o = np.append(observed[pooled:], observed[:pooled].sum())
    return float(np.sum((o - e) ** 2 / e)), len(e) - 1
