r"""The active set: every change of R² from a model of at most m columns, and what a change costs: a pass over m rows.

For the model γ with columns X_γ (slots, at most m, padded), kept in a `Fit`:

    gram  G = X_γᵀX  (m, p)        inverse  B = (X_γᵀX_γ)⁻¹  (m, m)        beta  B X_γᵀy  (m,)
    left  v_j = |x_j - projection|²  (p,)        along  e_j = x_j · residual  (p,)        Q = 1 - R²,  logdet = log |X_γᵀX_γ|

Columns are scaled to x_jᵀx_j = 1 and y to yᵀy = 1; for the prior "independent" to x_jᵀx_j = the slab's variance, with 1 added to
the diagonal of every matrix above. G is copied, never updated, so that rounding cannot add up in it. With t = B_a G / B_aa,

    without a:  v + B_aa t²,  e + β_a t,  B - B_a B_aᵀ/B_aa,  β - B_a β_a/B_aa,  Q + β_a²/B_aa
    with j:     v - r²/v_j,   e - r e_j/v_j,   B + c cᵀ/v_j,   β - c e_j/v_j,    Q - e_j²/v_j,      c = B G_j, r = x_jᵀX - c G.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .._fusion import stored
from .._record import changed, record, static

FEW = 512  # columns up to which a comparison of all is faster than XLA:CPU's scatter


@record
class Columns:
    """The data as the chains see it, scaled. Either `gram` (p, p) or `rows` (p, n), a column of X in each row, is there.

    xy: (p,) x_jᵀy. squares: (p,) x_jᵀx_j plus the ridge. ridge: 0, or 1 for independent slabs. tolerance: a column with less than
    this share of its square left is a combination of the others.
    """

    xy: jax.Array
    squares: jax.Array
    gram: Any = None
    rows: Any = None
    ridge: float = static(default=0.0)
    tolerance: float = static(default=1e-7)

    def products(self, j: Any) -> jax.Array:
        """(p,) x_jᵀX, with the ridge."""
        if self.gram is not None:
            found = self.gram[j]
        else:
            found = jnp.matmul(self.rows, self.rows[j], precision="highest").astype(self.xy.dtype)
        return jnp.where(jnp.arange(len(found)) == j, self.squares[j], found)

    def block(self, slots: Any) -> jax.Array:
        """(m, p) X_γᵀX, with the ridge."""
        if self.gram is not None:
            found = self.gram[slots]
        else:
            found = jnp.matmul(self.rows[slots], self.rows.T, precision="highest").astype(self.xy.dtype)
        return jnp.where(slots[:, None] == jnp.arange(found.shape[1]), self.squares[slots][:, None], found)


@record
class Fit:
    """A model and everything its neighbours need; see above. slots: (m,) columns, p where empty. size: how many. inside: (p,)."""

    slots: jax.Array
    size: jax.Array
    inside: jax.Array
    gram: jax.Array
    inverse: jax.Array
    left: jax.Array
    along: jax.Array
    beta: jax.Array
    Q: jax.Array
    logdet: jax.Array


def fit(columns: Columns, slots: jax.Array) -> Fit:
    """From nothing, for the columns in `slots`."""
    p, m = columns.xy.shape[0], slots.shape[0]
    there = slots < p
    safe = jnp.where(there, slots, 0)
    gram = jnp.where(there[:, None], columns.block(safe), 0)
    eye = jnp.eye(m, dtype=gram.dtype)
    inner = jnp.where(there[:, None] & there[None, :], gram[:, safe], eye)
    root = jnp.linalg.cholesky(inner)
    half = jax.scipy.linalg.solve_triangular(root, jnp.concatenate([gram, eye], axis=1), lower=True)
    A, inverse_root = half[:, :p], half[:, p:]
    c = inverse_root @ jnp.where(there, columns.xy[safe], 0)
    inside = jnp.zeros(p, bool).at[slots].set(True, mode="drop")
    return Fit(
        slots,
        jnp.sum(there).astype(jnp.int32),
        inside,
        gram,
        jnp.where(there[:, None] & there[None, :], inverse_root.T @ inverse_root, 0),
        jnp.where(inside, 0, columns.squares - jnp.sum(A * A, axis=0)),
        jnp.where(inside, 0, columns.xy - c @ A),
        inverse_root.T @ c,
        1 - c @ c,
        2 * jnp.sum(jnp.log(jnp.diagonal(root))),
    )


def _product(row: jax.Array, matrix: jax.Array) -> jax.Array:
    """On its own: fused with what follows, XLA:CPU would cut it up for all cores, which costs more than it does."""
    return jnp.matmul(row, matrix, precision="highest")


def remove(x: Fit, slot: Any, really: Any = True) -> Fit:
    """The column in `slot` goes out; not `really`: nothing changes."""
    p, gone = x.left.shape[0], (jnp.arange(x.slots.shape[0]) == slot) & really
    b = jnp.where(really, x.inverse[slot], 0)
    own = jnp.where(really, x.inverse[slot, slot], 1)
    eta = jnp.where(really, x.beta[slot], 0)
    t = stored(_product, b, x.gram) / own
    inverse = x.inverse - b[:, None] * (b / own)
    stays = ~gone
    return changed(
        x,
        slots=jnp.where(gone, p, x.slots),
        size=x.size - jnp.asarray(really, x.size.dtype),
        inside=x.inside & ~((jnp.arange(p) == x.slots[slot]) & really),
        gram=x.gram.at[slot].set(jnp.where(really, 0, x.gram[slot])),
        inverse=jnp.where(stays[:, None] & stays[None, :], inverse, 0),
        left=x.left + own * t * t,
        along=x.along + eta * t,
        beta=jnp.where(gone, 0, x.beta - b * (eta / own)),
        Q=x.Q + eta * eta / own,
        logdet=x.logdet + jnp.log(own),
    )


def add(columns: Columns, x: Fit, j: Any, really: Any = True) -> Fit:
    """Column j, which is possible, comes in, to the first empty slot; not `really`: nothing changes."""
    p = x.left.shape[0]
    j = jnp.where(really, j, 0)
    at_j = (jnp.arange(p) == j) & really
    slot = jnp.argmax(x.slots == p)
    new = (jnp.arange(x.slots.shape[0]) == slot) & really
    none = lambda j: jnp.zeros_like(x.left)  # noqa: E731
    products = columns.products(j) if columns.gram is not None else jax.lax.cond(really, columns.products, none, j)
    c = jnp.where(really, x.inverse @ x.gram[:, j], 0)
    v, e = jnp.where(really, x.left[j], 1), jnp.where(really, x.along[j], 0)
    r = jnp.where(really, products - stored(_product, c, x.gram), 0)
    c = jnp.where(new, -1, c)
    return changed(
        x,
        slots=jnp.where(new, j.astype(x.slots.dtype), x.slots),
        size=x.size + jnp.asarray(really, x.size.dtype),
        inside=x.inside | at_j,
        gram=x.gram.at[slot].set(jnp.where(really, products, x.gram[slot])),
        inverse=x.inverse + c[:, None] * (c / v),
        left=jnp.where(at_j, 0, jnp.maximum(x.left - r * (r / v), 0)),
        along=jnp.where(at_j, 0, x.along - r * (e / v)),
        beta=x.beta - c * (e / v),
        Q=x.Q - e * e / v,
        logdet=x.logdet + jnp.log(v),
    )


@record
class Flips:
    """Every column's own two states, the rest of the model as it is: (p,) each.

    inside: whether it is in. coefficient: its least-squares (or ridge) coefficient when it is in. left: 1 over its entry of the
    inverse when it is in. Q_in, Q_out: unexplained shares with and without. size_out, logdet_out: of the model without it.
    possible: False for combinations of the columns that are in.
    """

    inside: jax.Array
    coefficient: jax.Array
    left: jax.Array
    Q_in: jax.Array
    Q_out: jax.Array
    size_out: jax.Array
    logdet_out: jax.Array
    possible: jax.Array


def flips(columns: Columns, x: Fit) -> Flips:
    """All additions and deletions at once."""
    within = 1 / jnp.where(x.slots < x.left.shape[0], jnp.diagonal(x.inverse), 1)
    left_in, along_in = spread(x, within, within * x.beta)
    possible = x.inside | (x.left > columns.tolerance * columns.squares)
    left = jnp.where(x.inside, left_in, jnp.where(possible, x.left, 1))
    coefficient = jnp.where(x.inside, along_in, x.along) / left
    gain = coefficient * coefficient * left
    return Flips(
        x.inside,
        coefficient,
        left,
        jnp.where(x.inside, x.Q, x.Q - gain),
        jnp.where(x.inside, x.Q + gain, x.Q),
        x.size - x.inside.astype(x.size.dtype),
        x.logdet - jnp.where(x.inside, jnp.log(left), 0),
        possible,
    )


def spread(x: Fit, *values: jax.Array) -> list[jax.Array]:
    """(p,) of each: the values (m,) of the slots at their columns, 0 elsewhere."""
    p = x.left.shape[0]
    if p <= FEW:
        here = x.slots[:, None] == jnp.arange(p, dtype=x.slots.dtype)
        return [jnp.sum(jnp.where(here, each[:, None], 0), axis=0) for each in values]
    return [jnp.zeros(p, x.left.dtype).at[x.slots].set(each, mode="drop") for each in values]
