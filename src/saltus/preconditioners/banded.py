"""A sparse matrix whose entries lie on few diagonals, as those of lattices do: products by shifts, without a gather."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._fusion import stored
from .._record import fill, record, static
from .sparse import Sparse

_MOST_BANDS = 16


@record
class Banded(Sparse):
    """`Sparse`, and with it H_{i, i + o} for every offset o (modulo n) that occurs: H v = sum_o band_o * (v shifted by o)."""

    linear_in = ("weights", "diagonal", "bands")

    bands: Any  # (number of offsets, n)
    offsets: tuple[int, ...] = static()

    def __init__(self, sparse: Sparse, offsets: tuple[int, ...]):
        fill(self, weights=sparse.weights, diagonal=sparse.diagonal, edges=sparse.edges, copies=1, offsets=offsets)
        first, second = np.asarray(sparse.edges.edges).T
        n = sparse.size
        rows = [np.searchsorted(offsets, (b - a) % n) for a, b in ((first, second), (second, first))]
        places = np.concatenate([rows[0] * n + first, rows[1] * n + second])
        flat = jnp.zeros(len(offsets) * n, sparse.weights.dtype)
        twice = jnp.concatenate([sparse.weights, sparse.weights])
        fill(self, bands=flat.at[places].set(twice).reshape(len(offsets), n))

    def matvec(self, v: jax.Array) -> jax.Array:
        n, diagonal = self.size, self.diagonal[:, 0]
        twice = stored(lambda v: jnp.concatenate([v, v]), v)
        shifted = [band * jax.lax.slice_in_dim(twice, o, o + n) for o, band in zip(self.offsets, self.bands, strict=True)]
        return sum(shifted, diagonal * v)


def with_bands(sparse: Sparse) -> Sparse:
    """The same, by shifts where few diagonals hold all entries."""
    if sparse.copies != 1 or not sparse.edges.num_edges:
        return sparse
    first, second = np.asarray(sparse.edges.edges).T
    occurs = np.zeros(sparse.size, bool)
    occurs[(second - first) % sparse.size] = occurs[(first - second) % sparse.size] = True
    offsets = np.flatnonzero(occurs)
    return Banded(sparse, tuple(map(int, offsets))) if len(offsets) <= _MOST_BANDS else sparse
