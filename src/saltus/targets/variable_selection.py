"""Bayesian variable selection: which columns of X explain y."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.scipy.special import betaln, digamma, gammaln
from scipy import special

from .._record import as_size, default_float
from ..errors import TargetError
from ..spaces import Binary
from ..target import Target

_MOST_COUNTS = 10**6  # terms of the sum behind `truth`


def sparse_regression(
    X: Any = None,
    y: Any = None,
    *,
    num_copies: int = 4,
    num_appended: int | None = None,
    seed: int = 0,
    g: float | None = None,
    penalty: float = 0.001,
    inclusion: tuple[float, float] = (0.001, 10.0),
    noise: tuple[float, float] = (0.1, 0.1),
    appended_probability: float = 0.001,
) -> Target:
    r"""Sparse Bayesian regression: s_i = 1 where column i of X (N, D) is used; weights and noise are integrated out.

    $$ y \sim N(X_s ω, σ^2 I), \quad ω \sim N(0, g σ^2 (X_s^T X_s + λI)^{-1}), \quad σ^2 \sim IG(α_σ, β_σ), \quad
       X_s = X \operatorname{diag}(s), \quad s_i \sim \text{Bernoulli}(π), \quad π \sim \text{Beta}(α_π, β_π) $$

    X, y: your data, neither centred nor scaled here. Without them: the paper's design, 20 x 5 whole numbers 0..2 drawn
    from `seed` and repeated `num_copies` times, and y the sum of the five columns.
    g: N unless given. penalty: λ. inclusion: (α_π, β_π). noise: (α_σ, β_σ).
    num_appended: independent Bernoulli(appended_probability) sites after those of X; 80 for the paper's design, else 0.

    `truth` is a `RegressionTruth` where at most 10^6 counts of identical columns are possible, else None.
    The likelihood is flat in s_i both at 0 and at 1, so the gradient of f is that of the prior to O(λ). At s = 0 that
    is about -1/α_π at every site and gradient samplers never leave: start at `initial`, or sample
    `target.replace(differences="exact")`.
    """
    if X is None and y is None:
        base = np.random.default_rng(seed).integers(0, 3, (20, 5))
        X, y = np.tile(base, (1, as_size(num_copies, "num_copies", TargetError))), base.sum(axis=1)
        num_appended = 80 if num_appended is None else num_appended
    elif X is None or y is None:
        found = "y alone" if X is None else "X alone"
        raise TargetError("X and y come together.", expected="both, or neither for the paper's design", found=found)
    X = _numbers(X, "X", "a table (rows, columns) of finite numbers", (None, None))
    N, D = X.shape
    y = _numbers(y, "y", f"{N} finite numbers, one per row of X", (N,))
    g = _numbers(N if g is None else g, "g", "a number above 0", (), above=0)
    penalty = _numbers(penalty, "penalty", "a number above 0", (), above=0)
    inclusion = _numbers(inclusion, "inclusion", "two numbers above 0", (2,), above=0)
    noise = _numbers(noise, "noise", "two numbers above 0", (2,), above=0)
    q = _numbers(appended_probability, "appended_probability", "a number between 0 and 1", (), above=0, below=1)
    num_appended = as_size(num_appended or 0, "num_appended", TargetError, least=0)

    distinct, group = np.unique(X, axis=1, return_inverse=True)
    group = group.ravel()
    rotation, columns = np.linalg.qr(distinct)  # keeps every inner product, in no more rows than distinct columns
    total = 2 * noise[1] + y @ y
    response = rotation.T @ y / math.sqrt(total)
    constants = {
        "columns": columns.T,
        "response": response,
        "unexplained": max(1 - response @ response, 2 * noise[1] / total),
        "groups": np.eye(distinct.shape[1])[group].T,
        "power": noise[0] + N / 2,
        "g": g,
        "penalty": penalty,
        "inclusion": inclusion,
        "log_odds": special.logit(q),
        "offset": num_appended * math.log1p(-q) - special.betaln(*inclusion),
    }
    params = {name: jnp.asarray(value, default_float()) for name, value in constants.items()}
    initial = np.arange(D + num_appended) == min(1, D - 1)
    countable = math.prod(int(size) + 1 for size in np.bincount(group)) <= _MOST_COUNTS
    truth = _truth(constants, group, np.full(num_appended, q)) if countable else None
    return Target(log_posterior, Binary(D + num_appended), params, initial=initial.astype(np.int32), truth=truth)


def log_posterior(params: dict, s: jax.Array) -> jax.Array:
    r"""f(s) = log p(s) + log p(y | s) / p(y | 0), with p(s) = B(n + α_π, D - n + β_π) / B(α_π, β_π) and n = Σ_i s_i.

    s enters the likelihood as X_s X_s^T = Σ_j c_j x_j x_j^T alone, a sum over the *distinct* columns x_j of X, where
    c_j is Σ s_i^2 over the copies of x_j.
    """
    D = params["groups"].shape[1]
    used, appended = s[:D], s[D:]
    n = jnp.sum(used)
    log_prior = log_beta(n + params["inclusion"][0], D - n + params["inclusion"][1]) + params["offset"]
    c = jnp.matmul(params["groups"], used**2, precision="highest")
    return log_prior + jnp.sum(appended) * params["log_odds"] + log_bayes_factor(params, c)


@jax.custom_jvp
def log_beta(a: jax.Array, b: jax.Array) -> jax.Array:
    """log B(a, b). betaln is right to 1e-6 only; three gammaln are right to 1e-12 but lose 1e-3 in float32 at b = 1000.

    The derivatives are given because XLA recomputes those of betaln for every site, at more than the cost of the rest.
    """
    return gammaln(a) + gammaln(b) - gammaln(a + b) if a.dtype == jnp.float64 else betaln(a, b)


log_beta.defjvps(
    lambda t, _, a, b: t * (digamma(a) - digamma(a + b)),
    lambda t, _, a, b: t * (digamma(b) - digamma(a + b)),
)


@jax.custom_jvp
def log_bayes_factor(params: dict, c: jax.Array) -> jax.Array:
    r"""log p(y | s) / p(y | 0) as a smooth function of the counts c (p,), accurate in float32 too.

    $$ \tfrac12 \log |I + K/λ| - \tfrac12 \log |I + (1+g) K/λ| - (α_σ + N/2) \log \frac{1 + g (u + r)}{1 + g} $$

    with K = Σ_j c_j x_j x_j^T and r = y^T (I + (1+g) K/λ)^{-1} y, scaled such that u + r = 1 at c = 0. The fraction is
    the paper's 2β_σ + y^T y - g y^T X_s B^{-1} X_s^T y over its value at c = 0, without the cancellation. The print
    lacks the inverse and both halves (docs/deviations.md).
    """
    return _value_and_slope(params, c)[0]


def _value_and_slope(params: dict, c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`log_bayes_factor` and its gradient in c.

    For a = 1 and a = 1 + g at once, all rows sqrt(a/λ) x_j and y are multiplied by a root of (I + aK/λ)^-1, one term
    of K after the other: (I + c x x^T)^(-1/2) v = v - c (x.v) / (d + sqrt d) x with d = 1 + c x.x. Lengths shrink by
    1e3 on the way, and the squares of which a Cholesky factor of K + λI is made by 1e6, too much for float32.
    """
    g, columns = params["g"], params["columns"]
    scale = jnp.sqrt(jnp.stack([jnp.ones_like(g), 1 + g]) / params["penalty"])[:, None, None]
    response = jnp.broadcast_to(params["response"], (2, 1, columns.shape[1]))

    def absorb(state: tuple, term: tuple) -> tuple:
        rows, log_ratio = state
        j, c_j = term
        x = jax.lax.dynamic_index_in_dim(rows, j, axis=1)
        d = 1 + c_j * jnp.sum(x * x, axis=2, keepdims=True)
        along = jnp.sum(rows * x, axis=2, keepdims=True)
        return (rows - c_j / (d + jnp.sqrt(d)) * along * x, log_ratio + jnp.log(d[0, 0, 0] / d[1, 0, 0])), None

    rows = jnp.concatenate([scale * columns, response], axis=1)
    (rows, log_ratio), _ = jax.lax.scan(absorb, (rows, jnp.zeros_like(g)), (jnp.arange(len(c)), c))

    x, y = rows[:, :-1], rows[1, -1]
    misfit = 1 + g * (params["unexplained"] + jnp.sum(y * y))
    value = 0.5 * log_ratio - params["power"] * jnp.log(misfit / (1 + g))
    leverage = jnp.sum(x * x, axis=2)  # d log|I + aK/λ| / dc_j; and dr/dc_j = -(x_j.y)^2
    slope = 0.5 * (leverage[0] - leverage[1]) + params["power"] * g / misfit * jnp.sum(x[1] * y, axis=1) ** 2
    return value, slope


def _differentiate(primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
    """The slope in c comes with the value; in params, of which samplers never ask it, differentiate step by step."""
    if all(isinstance(t, SymbolicZero) for t in jax.tree.leaves(tangents[0])):
        value, slope = _value_and_slope(*primals)
        return value, jnp.sum(slope * tangents[1])
    dense = jax.tree.map(lambda x, t: jnp.zeros_like(x) if isinstance(t, SymbolicZero) else t, primals, tangents)
    return jax.jvp(lambda *args: _value_and_slope(*args)[0], primals, dense)


log_bayes_factor.defjvp(_differentiate, symbolic_zeros=True)


@dataclass(frozen=True)
class RegressionTruth:
    """The exact posterior, summed over how many columns of each group of identical ones are used."""

    marginals: np.ndarray  # (d,) P(s_i = 1), appended sites last
    pairs: np.ndarray  # (d, d) P(s_i = 1 and s_j = 1)
    size_probabilities: np.ndarray  # (D + 1,) P(n columns of X are used)
    log_normaliser: float  # log Σ_s exp f(s) = log p(y) / p(y | no column)


def _truth(k: dict, group: np.ndarray, appended: np.ndarray) -> RegressionTruth:
    D, sizes, g = len(group), np.bincount(group), k["g"]
    counts = np.indices(tuple(sizes + 1)).reshape(len(sizes), -1)
    n = counts.sum(axis=0)
    (log_det, _), (log_det_g, r) = _eliminate(k, sizes, 1.0), _eliminate(k, sizes, 1 + g)
    log_p = 0.5 * (log_det - log_det_g) - k["power"] * np.log((1 + g * (k["unexplained"] + r)) / (1 + g))
    log_p += special.betaln(n + k["inclusion"][0], D - n + k["inclusion"][1]) - special.betaln(*k["inclusion"])
    log_p += np.log(special.comb(sizes[:, None], counts)).sum(axis=0)
    log_normaliser = special.logsumexp(log_p)
    p = np.exp(log_p - log_normaliser)

    mean, second = counts @ p, (counts * p) @ counts.T
    together = second / np.outer(sizes, sizes)
    np.fill_diagonal(together, (np.diag(second) - mean) / np.maximum(sizes * (sizes - 1), 1))
    marginals = np.concatenate([(mean / sizes)[group], appended])
    pairs = np.outer(marginals, marginals)
    pairs[:D, :D] = together[np.ix_(group, group)]
    np.fill_diagonal(pairs, marginals)
    return RegressionTruth(marginals, pairs, np.bincount(n, p, minlength=D + 1), float(log_normaliser))


def _eliminate(k: dict, sizes: np.ndarray, a: float) -> tuple[np.ndarray, np.ndarray]:
    """log |I + aK/λ| and r for all counts: Gaussian elimination, group by group, branching over its count."""
    rows = np.vstack([k["columns"] * np.sqrt(a / k["penalty"]), k["response"]])
    schur, log_det = (rows @ rows.T)[None], np.zeros(1)
    for size in sizes:
        c = np.arange(size + 1)
        pivot = 1 + c * schur[:, :1, 0]
        drop = (c / pivot)[:, :, None, None] * (schur[:, 1:, :1] * schur[:, :1, 1:])[:, None]
        schur = (schur[:, None, 1:, 1:] - drop).reshape(-1, *drop.shape[2:])
        log_det = (log_det[:, None] + np.log(pivot)).ravel()
    return log_det, schur[:, 0, 0]


def _numbers(value: Any, name: str, expected: str, shape: tuple, above: float = -np.inf, below: float = np.inf) -> Any:
    """`value` in float64: of this shape (None: any length), finite, strictly between the two bounds."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise TargetError(f"`{name}` is not numeric.", expected=expected, found=repr(value)[:80]) from cause
    if array.ndim != len(shape) or array.size == 0 or (shape and shape[0] not in (None, len(array))):
        raise TargetError(f"`{name}` has the wrong shape.", expected=expected, found=f"shape {array.shape}")
    wrong = ~((above < array) & (array < below))
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        where = f" at {first}; {wrong.sum()} of {array.size} entries are wrong" if first else ""
        hint = "drop or fill in rows with missing values first" if np.isnan(array).any() else ""
        raise TargetError(f"`{name}` is out of range.", expected=expected, found=f"{array[first]:g}{where}", hint=hint)
    return array
