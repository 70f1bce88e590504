"""The paper's toy of variable selection. For data of your own: `saltus.variable_selection`."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy  # its parts are imported when first used
from jax.custom_derivatives import SymbolicZero
from jax.scipy.special import betaln, digamma, gammaln

from .._record import as_size, default_float
from ..errors import TargetError
from ..local import Differences
from ..spaces import Binary
from ..target import Target
from .regression_truth import regression_truth

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
    differences: str = "gradient",
) -> Target:
    r"""The paper's sparse Bayesian regression: s_i = 1 where column i of X (N, D) is used; weights and noise are integrated out.

    For data of your own take `saltus.variable_selection`: this toy has no intercept, does not centre, and its prior
    Beta(0.001, 10) keeps almost every column out, so that it answers another question.

    $$ y \sim N(X_s ω, σ^2 I), \quad ω \sim N(0, g σ^2 (X_s^T X_s + λI)^{-1}), \quad σ^2 \sim IG(α_σ, β_σ), \quad
       X_s = X \operatorname{diag}(s), \quad s_i \sim \text{Bernoulli}(π), \quad π \sim \text{Beta}(α_π, β_π) $$

    X, y: your data, neither centred nor scaled here. Without them: the paper's design, 20 x 5 whole numbers 0..2 drawn
    from `seed` and repeated `num_copies` times, and y the sum of the five columns.
    g: N unless given. penalty: λ. inclusion: (α_π, β_π). noise: (α_σ, β_σ).
    num_appended: independent Bernoulli(appended_probability) sites after those of X; 80 for the paper's design, else 0.

    `truth` is a `RegressionTruth` where at most 10^6 counts of identical columns are possible, else None.
    The likelihood is flat in s_i both at 0 and at 1, so the gradient of f is that of the prior to O(λ). At s = 0 that
    is about -1/α_π at every site and gradient samplers never leave: start at `initial`, or take differences="exact":
    all single-site changes in closed form.
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
    num_appended = as_size(0 if num_appended is None else num_appended, "num_appended", TargetError, least=0)

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
        "log_odds": scipy.special.logit(q),
        "offset": num_appended * math.log1p(-q) - scipy.special.betaln(*inclusion),
    }
    params = {name: jnp.asarray(value, default_float()) for name, value in constants.items()}
    initial = np.arange(D + num_appended) == min(1, D - 1)
    countable = math.prod(int(size) + 1 for size in np.bincount(group)) <= _MOST_COUNTS
    truth = regression_truth(constants, group, np.full(num_appended, q)) if countable else None
    local = Differences(exact_differences, exact=True) if isinstance(differences, str) and differences == "exact" else differences
    space = Binary(D + num_appended)
    return Target(log_posterior, space, params, differences=local, initial=initial.astype(np.int32), truth=truth, structure=None)


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
    of K after the other. Lengths shrink by 1e3 on the way, and the squares of which a Cholesky factor of K + λI is made
    by 1e6, too much for float32.
    """
    g, rows = params["g"], _rows(params, params["columns"])

    def next_term(state: tuple, term: tuple) -> tuple:
        (rows, log_ratio), (j, c_j) = state, term
        rows, d = _absorb(rows, jax.lax.dynamic_index_in_dim(rows, j, axis=1), c_j)
        return (rows, log_ratio + jnp.log(d[0, 0, 0] / d[1, 0, 0])), None

    (rows, log_ratio), _ = jax.lax.scan(next_term, (rows, jnp.zeros_like(g)), (jnp.arange(len(c)), c))

    x, y = rows[:, :-1], rows[1, -1]
    misfit = 1 + g * (params["unexplained"] + jnp.sum(y * y))
    value = 0.5 * log_ratio - params["power"] * jnp.log(misfit / (1 + g))
    leverage = jnp.sum(x * x, axis=2)  # d log|I + aK/λ| / dc_j; and dr/dc_j = -(x_j.y)^2
    slope = 0.5 * (leverage[0] - leverage[1]) + params["power"] * g / misfit * jnp.sum(x[1] * y, axis=1) ** 2
    return value, slope


def _rows(params: dict, columns: jax.Array) -> jax.Array:
    """(2, p + 1, rank): sqrt(a/λ) x_j and, last, y, for a = 1 and a = 1 + g."""
    scale = jnp.sqrt(jnp.stack([jnp.ones_like(params["g"]), 1 + params["g"]]) / params["penalty"])[:, None, None]
    response = jnp.broadcast_to(params["response"], (2, 1, columns.shape[1]))
    return jnp.concatenate([scale * columns, response], axis=1)


def _absorb(rows: jax.Array, x: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(I + c x xᵀ)^(-1/2) v = v - c (x·v) / (d + sqrt d) x for every row v, and d = 1 + c x·x."""
    d = 1 + c * jnp.sum(x * x, axis=-1, keepdims=True)
    along = jnp.sum(rows * x, axis=-1, keepdims=True)
    return rows - c / (d + jnp.sqrt(d)) * along * x, d


def _differentiate(primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
    """The slope in c comes with the value; in params, of which samplers never ask it, differentiate step by step."""
    if all(isinstance(t, SymbolicZero) for t in jax.tree.leaves(tangents[0])):
        value, slope = _value_and_slope(*primals)
        return value, jnp.sum(slope * tangents[1])
    dense = jax.tree.map(lambda x, t: jnp.zeros_like(x) if isinstance(t, SymbolicZero) else t, primals, tangents)
    return jax.jvp(lambda *args: _value_and_slope(*args)[0], primals, dense)


log_bayes_factor.defjvp(_differentiate, symbolic_zeros=True)


def exact_differences(params: dict, s: jax.Array, codes: jax.Array) -> jax.Array:
    r"""(d, 2) f with site i at 0 and at 1, all others as they are, up to a constant per site: rank-one updates.

    With everything but the copies of x_j absorbed into x_j and y (`_without_each`), the factor of c copies is

    $$ \tfrac12 \log\frac{1 + c\, x_1 \cdot x_1}{1 + c\, x_g \cdot x_g}
       - (α_σ + N/2) \log\Big(1 + g \Big(u + y \cdot y - \frac{c (x_g \cdot y)^2}{1 + c\, x_g \cdot x_g}\Big)\Big) $$
    """
    D, group, g = params["groups"].shape[1], jnp.argmax(params["groups"], axis=0), params["g"]
    used, (alpha, beta) = s[:D], params["inclusion"]
    c = jnp.matmul(params["groups"], used**2, precision="highest")
    rows = _without_each(params, c)[:, group]
    x, y = rows[..., 0, :], rows[1, :, 1]
    length, along, left = jnp.sum(x * x, axis=-1), jnp.sum(x[1] * y, axis=-1), jnp.sum(y * y, axis=-1)

    def at(value: float) -> jax.Array:
        c_i, n = c[group] - used + value, jnp.sum(used) - used + value
        r = left - c_i * along**2 / (1 + c_i * length[1])
        likelihood = 0.5 * jnp.log((1 + c_i * length[0]) / (1 + c_i * length[1]))
        likelihood = likelihood - params["power"] * jnp.log1p(g * (params["unexplained"] + r))
        return likelihood + log_beta(n + alpha, D - n + beta)

    table = jnp.stack([at(0.0), at(1.0)], axis=1)
    odds = jnp.stack([jnp.zeros_like(g), params["log_odds"]])
    return jnp.concatenate([table, jnp.broadcast_to(odds, (s.shape[0] - D, 2))])


def _without_each(params: dict, c: jax.Array) -> jax.Array:
    """(2, p, 2, rank) for each x_j: x_j and y after all *other* terms of K were absorbed, for a = 1 and a = 1 + g.

    Blocks are halved until one column is left; each half absorbs the other. That takes p steps in a row and twice the
    operations of absorbing all once. To take c_j out again afterwards would lose all digits in float32.
    """
    p, rank = params["columns"].shape
    n = 1 << (p - 1).bit_length()
    columns = jnp.pad(params["columns"], ((0, n - p), (0, 0)))
    rows, c = _rows(params, columns)[:, None], jnp.pad(c, (0, n - p))[None]
    while n > 1:
        n //= 2
        halves, y = rows[:, :, :-1].reshape(2, -1, 2, n, rank), rows[:, :, None, -1:]
        y = jnp.broadcast_to(y, (*halves.shape[:3], 1, rank))
        rows = jnp.concatenate([halves[:, :, ::-1], halves, y], axis=3).reshape(2, -1, 2 * n + 1, rank)
        counts = c.reshape(-1, 2, n)
        absorbed = counts[:, ::-1].reshape(-1, n)

        def next_term(rows: jax.Array, term: tuple) -> tuple:
            j, c_j = term
            return _absorb(rows, jax.lax.dynamic_index_in_dim(rows, j, axis=2), c_j[:, None, None])[0], None

        rows, _ = jax.lax.scan(next_term, rows, (jnp.arange(n), absorbed.T))
        rows, c = rows[:, :, n:], counts.reshape(-1, n)
    return rows[:, :p]


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
