r"""Priors of the coefficients: log p(y | γ) - log p(y | no column), and how much coefficients shrink.

With an intercept, p(α) ∝ 1 and p(σ²) ∝ 1/σ², every prior here sees a model γ of k columns through two numbers only: its
unexplained share Q = 1 - R² (for "independent" that of the ridge fit) and, for "independent", a log-determinant. N is the number of
rows minus the columns that are always in, the intercept among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_choice, as_real, record, static
from ..errors import SelectionError

PRIORS = ("g", "bric", "hyper-g", "hyper-g/n", "zellner-siow", "independent", "bic", "eb-local")
LEAST_Q = 1e-10  # a smaller unexplained share counts as this
CELLS = 512  # of a table over log Q


@dataclass(frozen=True)
class CoefficientPrior:
    """A prior of the coefficients as a person names it, with its one number.

    name: one of `PRIORS`. value: g of "g", a of "hyper-g" and "hyper-g/n", the slab's variance over σ² of "independent"; None: the
    usual choice (g = n, a = 3, slab 1 for columns of standard deviation 1).
    """

    name: str
    value: float | None = None

    @property
    def ridge(self) -> bool:
        """Whether columns of any rank are fine, because every coefficient has a slab of its own."""
        return self.name == "independent"

    def told(self, n: int, p: int) -> str:
        """In words, with the number that is used."""
        number = self.number(n, p)
        return {
            "g": f"Zellner's g-prior, g = {number:g}" + (" = n" if self.value is None else ""),
            "bric": f"Zellner's g-prior, g = {number:g} = max(n, p²)",
            "hyper-g": f"hyper-g prior, a = {number:g}",
            "hyper-g/n": f"hyper-g/n prior, a = {number:g}",
            "zellner-siow": "Zellner-Siow prior",
            "independent": f"independent normal slabs of variance {number:g} σ² for columns of standard deviation 1",
            "bic": "BIC approximation",
            "eb-local": "g-prior with the best g of each model (local empirical Bayes)",
        }[self.name]

    def number(self, n: int, p: int) -> float:
        if self.value is not None:
            return self.value
        return {"g": float(n), "bric": float(max(n, p * p)), "hyper-g": 3.0, "hyper-g/n": 3.0}.get(self.name, 1.0)


def read_prior(prior: Any, value: Any = None) -> CoefficientPrior:
    """`prior` as given: a name, a number for g, or a `CoefficientPrior`; `value`: of its one number."""
    if isinstance(prior, CoefficientPrior):
        return prior
    if isinstance(prior, (int, float, np.integer, np.floating)) and not isinstance(prior, bool):
        prior, value = "g", prior
    if not isinstance(prior, str):
        expected = f"one of {', '.join(map(repr, PRIORS))}, or a number for g"
        raise SelectionError("`prior` is not known.", expected=expected, found=repr(prior)[:80])
    name = as_choice(prior, "prior", PRIORS, SelectionError)
    if value is None:
        return CoefficientPrior(name)
    if name in ("bric", "zellner-siow", "bic", "eb-local"):
        raise SelectionError(f"The prior {name!r} has no number to set.", found=f"prior_value={value!r}", hint='for g, prior="g"')
    least = 2.0 if name.startswith("hyper") else 0.0
    number = as_real(value, "prior_value", SelectionError, f"a number above {least:g}")
    if not number > least:
        raise SelectionError("`prior_value` is out of range.", expected=f"a number above {least:g}", found=repr(value))
    return CoefficientPrior(name, number)


@record
class Evidence:
    """A prior made ready for models of at most `most` columns: `log_evidence` and `shrinkage` in JAX.

    name, N, n: the prior, and its numbers of rows. number: g, a, or the slab. table: for priors with an integral over g, (most + 2,
    CELLS + 1, 4) over k and `places` of log Q: log evidence + N/2 log Q, its slope in cells, E[s], E[s²] of the shrinkage s
    = g / (1 + g); else one
    zero.
    """

    number: jax.Array
    table: jax.Array
    name: str = static()
    N: int = static()
    n: int = static()

    def log_evidence(self, k: Any, Q: Any, logdet: Any = 0.0) -> jax.Array:
        """log p(y | γ) - log p(y | no column); k, Q, logdet of any one shape."""
        k = jnp.asarray(k)
        Q = jnp.maximum(Q, LEAST_Q)
        size = k.astype(Q.dtype)
        if self.name in ("g", "bric"):
            log1g = jnp.log1p(self.number).astype(Q.dtype)
            return 0.5 * (self.N - size) * log1g - 0.5 * self.N * jnp.log(1 + self.number.astype(Q.dtype) * Q)
        if self.name == "independent":
            return -0.5 * logdet - 0.5 * self.N * jnp.log(Q)
        if self.name == "bic":
            return -0.5 * self.n * jnp.log(Q) - 0.5 * size * np.log(self.n)
        if self.name == "eb-local":
            g = best_g(self.N, size, Q)
            return 0.5 * (self.N - size) * jnp.log1p(g) - 0.5 * self.N * jnp.log(1 + g * Q)
        return self._interpolated(k, jnp.log(Q))

    def _interpolated(self, k: Any, z: Any) -> jax.Array:
        """Cubic Hermite in the place of z = log Q on the row of k."""
        cell, u = _cell(z, self.N)
        low, high = self._rows(k, cell), self._rows(k, cell + 1)
        rest = (1 + 2 * u) * (1 - u) ** 2 * low[..., 0] + u * (1 - u) ** 2 * low[..., 1]
        rest = rest + u**2 * (3 - 2 * u) * high[..., 0] + u**2 * (u - 1) * high[..., 1]
        return jnp.where(k > 0, rest - 0.5 * self.N * z, 0)

    def _rows(self, k: Any, cell: Any) -> jax.Array:
        return self.table.reshape(-1, 4)[jnp.clip(k, 0, self.table.shape[0] - 1) * (CELLS + 1) + cell]

    def shrinkage(self, k: Any, Q: Any) -> tuple[jax.Array, jax.Array]:
        """E[s], E[s²] given y and a model, s = g / (1 + g): its posterior mean is s times least squares."""
        Q = jnp.maximum(Q, LEAST_Q)
        one = jnp.ones_like(Q)
        if self.name in ("g", "bric"):
            s = (self.number / (1 + self.number)).astype(Q.dtype) * one
            return s, s * s
        if self.name in ("independent", "bic"):
            return one, one
        if self.name == "eb-local":
            g = best_g(self.N, jnp.asarray(k).astype(Q.dtype), Q)
            return g / (1 + g), (g / (1 + g)) ** 2
        cell, u = _cell(jnp.log(Q), self.N)
        both = (1 - u)[..., None] * self._rows(k, cell) + u[..., None] * self._rows(k, cell + 1)
        return both[..., 2], both[..., 3]


def best_g(N: int, k: Any, Q: Any) -> jax.Array:
    """max(F - 1, 0), F = (R²/k) / (Q/(N - k)): the g that makes y likeliest under the model."""
    left = jnp.maximum(N - k, 0.5)
    return jnp.maximum((1 - Q) * left / (jnp.maximum(k, 1) * Q) - 1, 0)


def make_evidence(prior: CoefficientPrior, n: int, N: int, p: int, most: int, dtype: Any = np.float64) -> Evidence:
    """The prior for n rows, N of them left, p columns to choose from, models of at most `most`."""
    number = prior.number(n, p)
    integral = prior.name in ("hyper-g", "hyper-g/n", "zellner-siow")
    table = _table(prior.name, number, n, N, most) if integral else np.zeros((1, 1, 4))
    return Evidence(jnp.asarray(np.asarray(number, dtype)), jnp.asarray(table.astype(dtype)), prior.name, int(N), int(n))


def _cell(z: Any, N: int) -> tuple[Any, Any]:
    """(cell, place in it from 0 to 1) of z = log Q on a grid even in log(1 - zN/2): the evidence bends within 1/N of z = 0."""
    most = np.log1p(-np.log(LEAST_Q) * N / 2)
    place = jnp.clip(jnp.log1p(-jnp.minimum(z, 0) * (N / 2)) * (CELLS / most), 0, CELLS)
    cell = jnp.minimum(place.astype(jnp.int32), CELLS - 1)
    return cell, place - cell.astype(place.dtype)


def _table(name: str, number: float, n: int, N: int, most: int) -> np.ndarray:
    """(most + 2, CELLS + 1, 4) by the trapezoid in x = log g."""
    h = np.log1p(-np.log(LEAST_Q) * N / 2) / CELLS
    t = h * np.arange(CELLS + 1)
    return np.stack([_row(name, number, n, N, k, -np.expm1(t) * 2 / N, -np.exp(t) * 2 / N * h) for k in range(most + 2)])


def _row(name: str, number: float, n: int, N: int, k: int, z: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """z: log Q; slope: of z by cells."""
    x = np.arange(-30.0, 60.0, 0.2 * min(1.0, np.sqrt(40 / max(k, 1))))
    log1g, along = np.logaddexp(0, x), np.logaddexp(0, x + z[:, None])  # log(1 + g), log(1 + gQ)
    log_f = log_density_of_log_g(name, number, n, x) + 0.5 * (N - k) * log1g - 0.5 * N * along
    top = log_f.max(axis=1, keepdims=True)
    w = np.exp(log_f - top)
    total = w.sum(axis=1)
    s = np.exp(x - log1g)
    by_z = 0.5 * N * (1 - (w * np.exp(x + z[:, None] - along)).sum(axis=1) / total)
    return np.stack(
        [top[:, 0] + np.log(total * (x[1] - x[0])) + 0.5 * N * z, by_z * slope, w @ s / total, w @ s**2 / total], axis=1
    )


def log_density_of_log_g(name: str, number: float, n: int, x: np.ndarray) -> np.ndarray:
    """log of p(g) g at g = e^x."""
    if name == "hyper-g":
        return np.log((number - 2) / 2) - number / 2 * np.logaddexp(0, x) + x
    if name == "hyper-g/n":
        return np.log((number - 2) / (2 * n)) - number / 2 * np.logaddexp(0, x - np.log(n)) + x
    return 0.5 * np.log(n / 2) - 0.5 * np.log(np.pi) - 1.5 * x - n / 2 * np.exp(-x) + x  # Zellner-Siow: 1/g ~ Gamma(1/2, n/2)
