r"""The path of annealing: from independent sites, uniform or with given marginals, to the target.

    f_β = β f + (1 - β) log p_0,        V = f - log p_0,        p_0(s) = Π_i m_i(s_i)

Weights are sums of (β_t - β_{t-1}) V. With uniform p_0 the constant log |S| is left to the end: V = f, f_β = β f.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import as_array, default_float, record, shown
from ..errors import SaltusError, TrainingError
from ..local import Differences
from ..spaces import Space
from ..structure import Graph
from ..target import Point, Target

_SUM = 1e-3  # how far from 1 the marginals of a site may add up


@record
class Path:
    """target: where it ends. log_base: (d, k) log m_i(v), or None for uniform sites."""

    target: Target
    log_base: Any = None

    @property
    def log_start(self) -> float:
        """What is added to the weights: log of the number of states where those of p_0 are not normalised."""
        return float(np.sum(np.log(self.target.space.num_values_per_site))) if self.log_base is None else 0.0

    def draw(self, key: jax.Array) -> jax.Array:
        """Codes from p_0."""
        space = self.target.space
        if self.log_base is None:
            return space.random(key).astype(space.code_dtype)
        below = jnp.cumsum(jnp.exp(self.log_base), axis=1)[:, :-1]
        u = random.unit(key, (space.num_sites,), below.dtype)
        return jnp.sum(u[:, None] > below, axis=1).astype(space.code_dtype)

    def gain(self, codes: jax.Array) -> jax.Array:
        """V."""
        return self.target.value(codes) - self.base(codes)

    def base(self, codes: jax.Array) -> Any:
        """log p_0, 0 where it is uniform."""
        return 0.0 if self.log_base is None else chosen(self.log_base, codes)

    def at(self, beta: Any) -> Target:
        """The target exp(f_β). Where p_0 is not uniform it knows who interacts and exact differences, if the target does."""
        target = self.target
        if self.log_base is None:
            return target.tempered(beta)
        params = {"inner": target, "log_base": self.log_base, "beta": jnp.asarray(beta, default_float())}
        graph = target.find(Graph)
        exact = Differences(_differences, exact=True) if target.differences.exact else "gradient"
        structure = None if graph is None else lambda params: graph
        return Target(_log_prob, target.space, params, differences=exact, structure=structure, verify=False)


def read_base(base: Any, space: Space, name: str = "base", error: type[SaltusError] = TrainingError) -> jax.Array | None:
    """(d, k) log-marginals of a base, the argument `name`; an error where they are none, or exclude a possible value."""
    if base is None:
        return None
    if (space.num_values_per_site != space.num_values).any() or not hasattr(space, "values"):
        raise error(f"`{name}` needs sites that have the same values.", expected="no product of spaces", found=str(space))
    expected = f"marginals, shape ({space.num_sites}, {space.num_values})"
    expected += f", or probabilities of {space.labels[1]}, shape ({space.num_sites},)" if space.num_values == 2 else ""
    given = as_array(base, name, error, expected)
    if np.shape(given) not in ((space.num_sites, space.num_values), *([(space.num_sites,)] if space.num_values == 2 else [])):
        raise error(f"`{name}` does not fit the space.", expected=expected, found=f"shape {np.shape(base)}")
    return jnp.asarray(np.log(read_marginals(given, name, error, space.labels)), default_float())


def read_marginals(given: Any, name: str, error: type[SaltusError], labels: Any = None) -> np.ndarray:
    """(d, k) marginals that add up to 1, in float64, from such, or from (d,) probabilities of the second of two values."""
    expected = "marginals, shape (sites, values), or probabilities of the second of two values, shape (sites,)"
    given = np.asarray(as_array(given, name, error, expected), np.float64)
    given = np.stack([1 - given, given], axis=1) if given.ndim == 1 else given
    if given.ndim != 2:
        raise error(f"`{name}` is not a table.", expected=expected, found=f"shape {given.shape}")
    usable = np.isfinite(given).all(axis=1) & (given >= 0).all(axis=1) & (abs(given.sum(axis=1) - 1) <= _SUM)
    if not usable.all():
        at = int(np.argmin(usable))
        found = f"{shown(given[at].tolist())} at site {at}"
        raise error(f"`{name}` is not made of probabilities.", expected="marginals that add up to 1 at every site", found=found)
    if (given == 0).any():
        site, value = np.argwhere(given == 0)[0]
        raise error(
            f"`{name}` excludes a possible value.",
            expected="probabilities above 0",
            found=f"0 for {value if labels is None else labels[value]} at site {site}",
            hint="smooth them: (counts + 0.5) / (draws + 0.5 k)",
        )
    return given / given.sum(axis=1, keepdims=True)


def chosen(table: jax.Array, codes: jax.Array) -> jax.Array:
    return jnp.sum(jnp.take_along_axis(table, codes[:, None].astype(jnp.int32), axis=1))


def _log_prob(params: dict, s: jax.Array) -> jax.Array:
    """f_β of a real state. log p_0 is linear in s as far as it can be, so that gradients see it; the rest is looked up."""
    inner, table, beta = params["inner"], params["log_base"], params["beta"]
    space = inner.space
    values = np.asarray(space.values).reshape(space.num_values, -1)
    design = np.column_stack([values, np.ones(len(values))])
    slopes = jnp.matmul(table, jnp.asarray(np.linalg.pinv(design).T, table.dtype), precision="highest")  # (d, m + 1)
    s_flat = s.reshape(space.num_sites, -1)
    base = jnp.sum(s_flat * slopes[:, :-1]) + jnp.sum(slopes[:, -1])
    if np.linalg.matrix_rank(design) < len(values):
        apart = jnp.sum((s_flat[:, None, :] - jnp.asarray(values, s_flat.dtype)) ** 2, axis=2)
        rest = table - jnp.matmul(slopes, jnp.asarray(design.T, table.dtype), precision="highest")
        base = base + chosen(rest, jnp.argmin(apart, axis=1))
    return beta * inner.log_prob_of(s) + (1 - beta) * base


def _differences(params: dict, s: jax.Array, codes: jax.Array) -> jax.Array:
    inner, beta = params["inner"], params["beta"]
    sites = jnp.arange(inner.space.num_sites, dtype=jnp.int32)
    own = codes.astype(inner.space.code_dtype)
    rows, _ = inner.exact_rows(Point(own, jnp.zeros((), default_float())), sites)
    return beta * rows + (1 - beta) * params["log_base"]
