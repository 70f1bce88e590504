"""What a stream of draws leaves behind, chain by chain, for marginals, means, covariances and pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._record import as_size, changed, record, static
from ..errors import SaltusError
from ..spaces import Space
from .moves import checked_codes


@record
class Tally:
    """Sufficient statistics of each chain: how often each site had each value, and sums of products of every two sites.

    Counts are int64 and products float64, on the host whatever JAX's precision, so 10^7 draws lose nothing; a chunk is read
    chain by chain (faster than a compiled one-hot sum, and nothing larger than a chain's chunk is made).

        tally = Tally.empty(space, num_chains)
        for codes in chunks:                        # (chain, draw, site)
            tally = tally.add(codes)
    """

    counts: np.ndarray  # (chain, site, value)
    products: np.ndarray | None  # (chain, site, site) sums of (s_i - v_0)(s_j - v_0), v_0 the first value; None for categories
    space: Space = static()

    @classmethod
    def empty(cls, space: Space, num_chains: int) -> Tally:
        """No draws yet."""
        if not isinstance(space, Space):
            raise SaltusError("`space` is not a space.", expected="the space of the target, target.space", found=repr(space))
        chains, d = as_size(num_chains, "num_chains", SaltusError), space.num_sites
        products = np.zeros((chains, d, d)) if space.numeric else None
        return cls(np.zeros((chains, d, space.num_values), np.int64), products, space)

    @property
    def num_chains(self) -> int:
        return len(self.counts)

    @property
    def num_draws(self) -> int:
        """Draws of each chain."""
        return int(self.counts[0, 0].sum())

    def add(self, codes: Any) -> Tally:
        """A new tally with these draws as well: codes (chain, draw, site)."""
        codes = np.asarray(checked_codes(self.space, codes, "codes", "(chain, draw, site)", least_axes=3))
        if codes.ndim != 3 or len(codes) != self.num_chains:
            expected = f"shape ({self.num_chains}, draws, {self.space.num_sites})"
            raise SaltusError("`codes` do not fit the tally.", expected=expected, found=f"shape {codes.shape}")
        counts = self.counts + np.stack([_counts(self.space, chain) for chain in codes])
        if self.products is None:
            return changed(self, counts=counts)
        return changed(self, counts=counts, products=self.products + np.stack([_products(self.space, chain) for chain in codes]))

    @property
    def frequencies(self) -> np.ndarray:
        """(chain, site, value) shares of draws."""
        return self.counts / self._some_draws()

    @property
    def means(self) -> np.ndarray:
        """(chain, site) means of s."""
        self._products("means")
        return self.frequencies @ self.space.values

    @property
    def covariances(self) -> np.ndarray:
        """(chain, site, site) covariances of s, centred at each chain's own mean and divided by N, not by N - 1."""
        products = self._products("a covariance")
        centred = self.frequencies @ (self.space.values - self.space.values[0])
        return products / self._some_draws() - centred[:, :, None] * centred[:, None, :]

    @property
    def together(self) -> np.ndarray:
        """(chain, site, site) share of draws at which two sites both have code 1; spaces of two values."""
        products = self._products("pairs")
        if self.space.num_values != 2:
            raise SaltusError("Pairs are those of two values.", expected="Binary or Spin", found=str(self.space))
        return products / (self._some_draws() * np.ptp(self.space.values) ** 2)

    def _products(self, what: str) -> np.ndarray:
        if self.products is None:
            raise SaltusError(
                f"Categories and directions have no {what.removeprefix('a ')}.",
                expected="a space whose values are numbers: Binary, Spin or Ordinal",
                found=str(self.space),
                hint="tally.counts and marginal_kl work on every space",
            )
        return self.products

    def _some_draws(self) -> int:
        if not self.num_draws:
            hint = "tally = tally.add(codes): a new one comes back"
            raise SaltusError("The tally is empty.", expected="at least one draw", hint=hint)
        return self.num_draws

    def __repr__(self) -> str:
        return f"Tally({self.num_draws} draws of {self.num_chains} chains, {self.space})"


def _counts(space: Space, codes: np.ndarray) -> np.ndarray:
    """(site, value) of one chain."""
    d, k = space.num_sites, space.num_values
    return np.bincount((codes.astype(np.intp) + np.arange(d) * k).ravel(), minlength=d * k).reshape(d, k)


def _products(space: Space, codes: np.ndarray) -> np.ndarray:
    """(site, site) of one chain, from the first value: whole numbers stay exact, and an offset of the grid costs no digits."""
    s = (space.values - space.values[0])[codes]
    return s.T @ s
