"""The persistent buffer: where chains come from, which are visited when, and which begin anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import default_float, record, static
from ..errors import TrainingError
from ..target import Target
from .codes import read_codes
from .models.hidden import observed_space

VISITS = ("slices", "random")


@record
class Fresh:
    """Where a chain begins: at independent sites with these probabilities (k, d), or at one of these codes (m, d).

    hidden: further sites, of a part that is not observed; they begin at code 0.
    """

    weights: Any  # None where there are rows
    rows: Any
    hidden: int = static(default=0)

    def draw(self, key: jax.Array) -> jax.Array:
        """Codes of one new chain."""
        if self.rows is None:
            return self.whole(random.categorical(key, self.weights))
        return self.whole(self.rows[jax.random.randint(key, (), 0, self.rows.shape[0])].astype(jnp.int32))

    def whole(self, codes: jax.Array) -> jax.Array:
        """Codes (d,) of the observed part, as those of a state."""
        return jnp.pad(codes, (0, self.hidden)) if self.hidden else codes


def fresh_chains(target: Target, given: Any, data: np.ndarray) -> Fresh:
    """given: "uniform", "marginals" (each site as often as in the data), "data", or states, of the observed part or of all.

    data: codes of the observed part.
    """
    space = observed_space(target)
    values, hidden = np.arange(space.num_values)[:, None], target.space.num_sites - space.num_sites
    if isinstance(given, str) and given == "uniform":
        return Fresh(jnp.asarray(values < space.num_values_per_site, default_float()), None, hidden)
    if isinstance(given, str) and given == "marginals":
        return Fresh(jnp.asarray([(data == value).mean(axis=0) for value in values.ravel()]), None, hidden)
    if isinstance(given, str) and given == "data":
        return Fresh(None, jnp.asarray(data), hidden)
    if isinstance(given, str):
        raise TrainingError("`buffer` is not known.", expected='"uniform", "marginals", "data", or states', found=repr(given))
    if hidden and isinstance(given, dict):
        return Fresh(None, jnp.asarray(read_codes(target.space, given, "buffer")))
    return Fresh(None, jnp.asarray(read_codes(space, given, "buffer")), hidden)


class Visits:
    """Which rows of a table of `num_rows` each update visits: (batch,) numbers that depend on (seed, stream, update) only.

    "slices": consecutive slices of a random order, another order each pass; a last slice that is not full is left out.
    "random": `batch` different rows, drawn anew each update.
    """

    def __init__(self, kind: str, num_rows: int, batch: int, seed: int, stream: int):
        self.num_rows, self.batch, self.source = num_rows, batch, (seed, stream)
        self.at: Callable[[int], np.ndarray] = self._slice if kind == "slices" else self._random
        self._pass, self._order = -1, np.zeros(0, int)

    def rows(self, first: int, stop: int) -> np.ndarray:
        """(stop - first, batch)"""
        return np.array([self.at(update) for update in range(first, stop)], np.int32).reshape(stop - first, self.batch)

    def _slice(self, update: int) -> np.ndarray:
        through, position = divmod(update, self.num_rows // self.batch)
        if through != self._pass:
            self._pass, self._order = through, self._rng(through).permutation(self.num_rows)
        return self._order[position * self.batch : (position + 1) * self.batch]

    def _random(self, update: int) -> np.ndarray:
        return self._rng(update).choice(self.num_rows, self.batch, replace=False)

    def _rng(self, count: int) -> np.random.Generator:
        return np.random.default_rng([*self.source, count])
