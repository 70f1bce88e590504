r"""f as a sum of local terms: all single-site changes from a few evaluations.

Sites of one colour share no term. Set them all to other values at once, and the change of every term belongs to one of them:

$$ f(s \text{ with } s_i = v) - f(s) = \sum_{t \ni i} \big(a_t(s') - a_t(s)\big), $$

with s' the state in which all sites of i's colour have moved. All exact differences take colours × (k - 1) evaluations in
place of d (k - 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import record, static
from ..spaces import Space
from .colouring import quick_colours
from .reading import read_rows, terms_of
from .reading.dependence import Dependence, distinct

_MOST_PAIRS = 4_000_000  # of sites that share a term
_MOST_LISTED = 4_000_000  # entries of the table of every site's terms
_AT_ONCE = 2**20  # terms of states that are evaluated together


@dataclass(frozen=True)
class TermsOf:
    """The terms of a log_prob as a function; two of the same log_prob are equal."""

    log_prob: Callable
    with_params: bool

    def __call__(self, params: Any, s: Any) -> jax.Array:
        return terms_of(self.log_prob, params, s, self.with_params)


@record
class LocalTerms:
    """A claim about log_prob: it is the sum of `terms`, and term t depends on the sites that have t in their row of `lists`.

    colours: (d,) such that no two sites of one colour share a term. lists: (d, m), padded with the number of terms.
    """

    colours: jax.Array
    lists: jax.Array
    terms: TermsOf = static()
    num_colours: int = static(default=1)
    num_terms: int = static(default=0)

    def bind(self, space: Space) -> LocalTerms:
        """It is bound already."""
        return self

    def scaled(self, beta: Any) -> LocalTerms:
        """That of β f: targets scale what they evaluate."""
        return self

    def __repr__(self) -> str:
        return f"LocalTerms({self.num_terms} terms, {self.num_colours} colours)"

    def evaluations(self, space: Space) -> int:
        """For all exact differences at one state."""
        return 1 + self.num_colours * (space.num_values - 1)

    def share_none(self, sites: jax.Array) -> jax.Array:
        """Whether all of them have one colour; a site of d (padding) has any."""
        colours = jnp.take(self.colours, sites, mode="fill", fill_value=-1)
        return jnp.all((colours == colours[0]) | (colours < 0))

    def all_changes(self, target: Any, codes: jax.Array, sizes: Any) -> jax.Array:
        """(d, k - 1) change of f when each site in turn goes on by 1..k - 1 codes. sizes: values of a site, or of each."""
        k, base = target.space.num_values, self.at(target, codes)

        def moved(index: jax.Array) -> jax.Array:
            new = (codes.astype(jnp.int32) + 1 + index % (k - 1)) % sizes
            return self.at(target, jnp.where(self.colours == index // (k - 1), new.astype(codes.dtype), codes)) - base

        num = self.num_colours * (k - 1)
        batch = max(min(num, _AT_ONCE // max(self.num_terms, 1)), 1)
        changes = jax.lax.map(moved, jnp.arange(num, dtype=jnp.int32), batch_size=batch)
        changes = jnp.pad(changes, ((0, 0), (0, 1))).reshape(self.num_colours, k - 1, -1)
        each = changes[self.colours[:, None, None], jnp.arange(k - 1)[None, :, None], self.lists[:, None, :]]
        return jnp.sum(each, axis=-1)

    def block_changes(self, target: Any, codes: jax.Array, sites: jax.Array, sizes: Any) -> jax.Array:
        """(b, k - 1) the same for some sites that share no term; a site of d (padding) changes nothing."""
        k, base = target.space.num_values, self.at(target, codes)
        now = jnp.take(codes, sites, mode="clip").astype(jnp.int32)

        def moved(hop: jax.Array) -> jax.Array:
            return self.at(target, codes.at[sites].set(((now + hop) % sizes).astype(codes.dtype), mode="drop")) - base

        changes = jax.lax.map(moved, jnp.arange(1, k, dtype=jnp.int32), batch_size=max(min(k - 1, _AT_ONCE // self.num_terms), 1))
        own = jnp.take(self.lists, sites, axis=0, mode="fill", fill_value=self.num_terms)
        return jnp.sum(jnp.pad(changes, ((0, 0), (0, 1)))[:, own], axis=-1).T

    def at(self, target: Any, codes: jax.Array) -> jax.Array:
        """(T,) the terms at these codes."""
        return target.tempering(self.terms(target.params, target.space.embed(codes)))


def find_terms(
    log_prob: Callable, space: Space, params: Any, inputs: list[Any], site_of: np.ndarray
) -> tuple[LocalTerms | None, str]:
    """The local terms of a log_prob, or why there are none. inputs: what is known of params, and what s depends on: itself."""
    terms, d = TermsOf(log_prob, params is not None), space.num_sites
    jaxpr = jax.make_jaxpr(lambda p, s: terms(p, s))(params, space.abstract())
    rows = read_rows(jaxpr.jaxpr, jaxpr.consts, inputs, space.size, site_of)
    if rows is None:
        return None, "what its terms depend on cannot be told"
    owner, site = _sites(rows, site_of, d)
    counts = np.bincount(owner, minlength=rows.num)
    if (counts.astype(np.int64) ** 2).sum() > _MOST_PAIRS:
        return None, "its terms depend on too many sites"
    colours = quick_colours(_sharing(owner, site, counts, d), d)
    if colours is None or 2 * (colours.max(initial=0) + 1) > d:
        return None, "its terms depend on too many sites to be told apart by colours"
    lists = _lists(owner, site, d, rows.num)
    if lists.size > _MOST_LISTED:
        return None, "a site has too many terms"
    own = LocalTerms(jnp.asarray(colours, jnp.int32), jnp.asarray(lists, jnp.int32), terms, int(colours.max()) + 1, rows.num)
    return own, ""


def _sites(rows: Dependence, site_of: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """(terms, sites): every pair of a term and a site that it depends on, in order of the terms."""
    return np.divmod(distinct(rows.owners() * d + site_of[rows.entries]), d)


def _sharing(owner: np.ndarray, site: np.ndarray, counts: np.ndarray, d: int) -> np.ndarray:
    """(p, 2) sites i < j that share a term."""
    first = np.cumsum(counts) - counts
    num = counts.astype(np.int64) ** 2
    within = np.arange(num.sum()) - np.repeat(np.cumsum(num) - num, num)
    base, width = np.repeat(first, num), np.repeat(np.maximum(counts, 1), num)
    low, high = site[base + within // width], site[base + within % width]
    keys = distinct((low * d + high)[low < high])
    return np.stack(np.divmod(keys, d), axis=1)


def _lists(owner: np.ndarray, site: np.ndarray, d: int, num_terms: int) -> np.ndarray:
    """(d, m) the terms of every site, padded with their number."""
    counts = np.bincount(site, minlength=d)
    order = np.argsort(site, kind="stable")
    column = np.arange(len(site)) - np.repeat(np.cumsum(counts) - counts, counts)
    lists = np.full((d, max(counts.max(initial=0), 1)), num_terms)
    lists[site[order], column] = owner[order]
    return lists
