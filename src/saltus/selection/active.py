r"""The active set: every change of R² from a model of at most m columns, and what a change costs: one rank-one update.

For the model γ with columns X_γ (slots, at most m, padded), kept in a `Fit`:

    rows  T = (X_γᵀX_γ)⁻¹ X_γᵀX        (m, p)        inverse  B = (X_γᵀX_γ)⁻¹        (m, m)
    left  v_j = |x_j - projection|²     (p,)          along    e_j = x_j · residual   (p,)
    beta  B X_γᵀy                       (m,)          Q = 1 - R²,  logdet = log |X_γᵀX_γ|

Columns are scaled to x_jᵀx_j = 1 and y to yᵀy = 1; for the prior "independent" to x_jᵀx_j = the slab's variance, with 1
added to the diagonal
of every matrix above. Adding j: Q falls by e_j²/v_j; deleting i: it rises by β_i²/B_ii; both are a pivot (`move`).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .._record import record, static


@record
class Columns:
    """The data as the chains see it, scaled. Either `gram` (p, p) or `rows` (p, n), a column of X in each row, is there.

    xy: (p,) x_jᵀy. squares: (p,) x_jᵀx_j plus the ridge. ridge: 0, or 1 for independent slabs. tolerance: a column with less
    than this
    share of its square left is a combination of the others.
    """

    xy: jax.Array
    squares: jax.Array
    gram: Any = None
    rows: Any = None
    ridge: float = static(default=0.0)
    tolerance: float = static(default=1e-7)

    def products(self, j: Any) -> jax.Array:
        """(p,) x_jᵀX, without the ridge."""
        if self.gram is not None:
            return self.gram[j]
        return jnp.matmul(self.rows, self.rows[j], precision="highest").astype(self.xy.dtype)

    def block(self, slots: Any) -> jax.Array:
        """(m, p) X_γᵀX, without the ridge."""
        if self.gram is not None:
            return self.gram[slots]
        return jnp.matmul(self.rows[slots], self.rows.T, precision="highest").astype(self.xy.dtype)


@record
class Fit:
    """A model and everything its neighbours need; see above. slots: (m,) columns, p where empty. size: how many."""

    slots: jax.Array
    size: jax.Array
    rows: jax.Array
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
    block = jnp.where(there[:, None], columns.block(safe), 0)
    eye = jnp.eye(m, dtype=block.dtype)
    inner = jnp.where(there[:, None] & there[None, :], block[:, safe], 0)
    inner = inner + eye * jnp.where(there, columns.ridge, 1.0).astype(block.dtype)
    root = jnp.linalg.cholesky(inner)
    half = jax.scipy.linalg.solve_triangular(root, jnp.concatenate([block, eye], axis=1), lower=True)
    A, inverse_root = half[:, :p], half[:, p:]
    c = inverse_root @ jnp.where(there, columns.xy[safe], 0)
    inside = jnp.zeros(p, bool).at[slots].set(True, mode="drop")
    is_slot = slots[:, None] == jnp.arange(p, dtype=slots.dtype)
    rows = jnp.where(inside, is_slot.astype(block.dtype), inverse_root.T @ A)
    return Fit(
        slots,
        jnp.sum(there).astype(jnp.int32),
        rows,
        jnp.where(there[:, None] & there[None, :], inverse_root.T @ inverse_root, 0),
        jnp.where(inside, 0, columns.squares - jnp.sum(A * A, axis=0)),
        jnp.where(inside, 0, columns.xy - c @ A),
        inverse_root.T @ c,
        1 - c @ c,
        2 * jnp.sum(jnp.log(jnp.diagonal(root))),
    )


def move(columns: Columns, x: Fit, slot: Any, j: Any, deletes: Any, adds: Any, lazy: bool = False) -> Fit:
    """The column in `slot` goes out where `deletes`, column j comes in where `adds`: two pivots in one pass over the rows.

    A pivot is a rank-one update along c (m,) and t (p,) with d = -B_aa, η = -β_a for a column that goes out, d = v_j, η =
    e_j for one
    that comes in: T - c tᵀ, B + c cᵀ/d, v - d t², e - η t, β - c η/d, Q - η²/d. lazy: x_jᵀX is computed only where `adds`.
    """
    p = x.left.shape[0]
    places = jnp.arange(x.slots.shape[0])
    gone = (places == slot) & deletes
    d1 = jnp.where(deletes, -x.inverse[slot, slot], 1)
    c1 = jnp.where(deletes, x.inverse[slot], 0)
    t1 = jnp.where(deletes, -x.rows[slot] / d1, 0)
    eta1 = jnp.where(deletes, -x.beta[slot], 0)
    left, along = x.left - d1 * t1 * t1, x.along - eta1 * t1
    slots = jnp.where(gone, p, x.slots)

    j = jnp.where(adds, j, 0)
    products = jax.lax.cond(adds, columns.products, lambda j: jnp.zeros_like(x.left), j) if lazy else columns.products(j)
    inside = jnp.where(slots < p, products[jnp.minimum(slots, p - 1)], 0)
    d2 = jnp.where(adds, left[j], 1)
    r = products - inside @ x.rows + (inside @ c1) * t1
    at_j = (jnp.arange(p) == j) & adds
    t2 = jnp.where(adds & (left > 0), jnp.where(at_j, 1, r / d2), 0)
    new = (places == jnp.argmax(slots == p)) & adds
    c2 = jnp.where(new, -1, jnp.where(adds, x.rows[:, j] - c1 * t1[j], 0))
    eta2 = jnp.where(adds, along[j], 0)

    gone &= ~new
    stays = ~gone
    along_both = jnp.matmul(jnp.stack([c1, c2], axis=1), jnp.stack([t1, t2]), precision="highest")  # a product is not fused
    inverse = x.inverse + c1[:, None] * (c1 / d1) + c2[:, None] * (c2 / d2)
    beta = x.beta - c1 * (eta1 / d1) - c2 * (eta2 / d2)
    return Fit(
        jnp.where(new, j.astype(slots.dtype), slots),
        x.size + adds.astype(x.size.dtype) - deletes.astype(x.size.dtype),
        jnp.where(gone[:, None], 0, x.rows - along_both),
        jnp.where(stays[:, None] & stays[None, :], inverse, 0),
        jnp.where(at_j, 0, jnp.maximum(left - d2 * t2 * t2, 0)),
        jnp.where(at_j, 0, along - eta2 * t2),
        jnp.where(gone, 0, beta),
        x.Q - eta1 * eta1 / d1 - eta2 * eta2 / d2,
        x.logdet + jnp.log(jnp.abs(d1)) + jnp.log(d2),
    )


@record
class Flips:
    """Every column's own two states, the rest of the model as it is: (p,) each.

    inside: whether it is in. coefficient: its least-squares (or ridge) coefficient when it is in. left: 1 over its entry of
    the inverse
    when it is in. Q_in, Q_out: unexplained shares with and without. size_out, logdet_out: of the model without it. possible:
    False for
    combinations of the columns that are in.
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
    p = x.left.shape[0]
    inside = jnp.zeros(p, bool).at[x.slots].set(True, mode="drop")
    own = 1 / jnp.where(x.slots < p, jnp.diagonal(x.inverse), 1)
    left = x.left.at[x.slots].set(own, mode="drop")
    possible = inside | (left > columns.tolerance * columns.squares)
    left = jnp.where(possible, left, 1)
    coefficient = (x.along / left).at[x.slots].set(x.beta, mode="drop")
    gain = coefficient * coefficient * left
    return Flips(
        inside,
        coefficient,
        left,
        jnp.where(inside, x.Q, x.Q - gain),
        jnp.where(inside, x.Q + gain, x.Q),
        x.size - inside.astype(x.size.dtype),
        x.logdet - jnp.where(inside, jnp.log(left), 0),
        possible,
    )


def without(columns: Columns, x: Fit, slot: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """All replacements of one column: (Q, logdet, possible), each (p,), of the model with column j in place of that in `slot`.

    j may be that column itself. Columns that stay in are not possible.
    """
    p = x.left.shape[0]
    own = jnp.where(x.slots[slot] < p, x.inverse[slot, slot], 1)
    t = x.rows[slot] / own
    left = x.left + own * t * t
    along = x.along + x.beta[slot] * t
    stays = jnp.zeros(p, bool).at[x.slots].set(True, mode="drop") & (jnp.arange(p) != x.slots[slot])
    possible = ~stays & (left > columns.tolerance * columns.squares)
    left = jnp.where(possible, left, 1)
    Q = x.Q + x.beta[slot] ** 2 / own - along * along / left
    return Q, x.logdet + jnp.log(own) + jnp.log(left), possible
