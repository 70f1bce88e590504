"""Effective sample size of the paper's scalar, the distance to a reference state; streamed where runs are long."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._record import as_array, as_size, changed, fill, record, static
from ..errors import SaltusError
from ..spaces import Space
from .ess import ess
from .moves import distance


def distance_ess(codes_or_series: Any, space: Space | None = None, reference: Any = None) -> np.ndarray:
    """(chain,) ESS of t_n = |s_n - s_0|_1: codes (chain, draw, site) with their space and the codes of s_0 (site,).

    Floats (chain, draw) are taken for t itself. As `ess` has it, a constant chain has ESS 0, which no other chain can have.
    Of all chains together: `ess_of_chains(distance(space, codes, reference))`.

    codes_or_series: the codes, or t itself.
    """
    expected = "codes (chain, draw, site), or floats (chain, draw)"
    series = as_array(codes_or_series, "codes_or_series", SaltusError, expected)
    if series.dtype.kind in "iu":
        if space is None or reference is None:
            call, found = "distance_ess(codes, space, reference)", f"{series.dtype} {tuple(series.shape)}"
            raise SaltusError("Codes alone have no distance.", expected=call, found=found)
        series = distance(space, series, reference)
    if series.ndim != 2 or not series.size:
        raise SaltusError("`codes_or_series` has the wrong shape.", expected=expected, found=f"shape {np.shape(codes_or_series)}")
    return np.array([ess(chain) for chain in np.asarray(series, np.float64)])


@record
class DistanceSeries:
    """t_n = |s_n - s_0|_1 of a stream of draws, in bounded memory.

    reference: codes of s_0 (site,). capacity: at most so many numbers are kept per chain; beyond it every second is dropped,
    and from then on only every `stride`-th draw is kept, whatever the sizes of the chunks. `ess()` is then that of the
    thinned series, a lower bound for a stationary chain: the mean of all draws averages `stride` thinned means of equal
    variance, and is no worse.

        series = DistanceSeries(space, reference)
        for codes in chunks:                        # (chain, draw, site)
            series = series.add(codes)
    """

    values: np.ndarray | None  # (chain, kept)
    reference: np.ndarray
    num_draws: int = static()
    stride: int = static()
    capacity: int = static()
    space: Space = static()

    def __init__(self, space: Space, reference: Any, capacity: int = 2**14):
        reference = np.asarray(as_array(reference, "reference", SaltusError, "codes of shape (sites,)"))
        distance(space, reference, reference)  # refuses what is not one state
        capacity = as_size(capacity, "capacity", SaltusError, least=8)
        fill(self, values=None, reference=reference, num_draws=0, stride=1, capacity=capacity, space=space)

    def add(self, codes: Any) -> DistanceSeries:
        """A new series with these draws as well: codes (chain, draw, site)."""
        t = np.asarray(distance(self.space, codes, self.reference))
        chains = "chains" if self.values is None else len(self.values)
        if t.ndim != 2 or chains not in ("chains", len(t)):
            expected = f"codes of shape ({chains}, draws, {self.space.num_sites})"
            raise SaltusError("`codes` do not fit the series.", expected=expected, found=f"shape {np.shape(codes)}")
        stride, kept = self.stride, t[:, -self.num_draws % self.stride :: self.stride]
        values = kept if self.values is None else np.concatenate([self.values, kept], axis=1)
        while values.shape[1] > self.capacity:
            values, stride = values[:, ::2], 2 * stride
        return changed(self, values=np.ascontiguousarray(values), stride=stride, num_draws=self.num_draws + t.shape[1])

    def ess(self) -> np.ndarray:
        """(chain,) ESS of what was kept: 0 where it is constant."""
        if self.values is None:
            hint = "series = series.add(codes): a new one comes back"
            raise SaltusError("The series is empty.", expected="at least one draw", hint=hint)
        return distance_ess(self.values)

    def __repr__(self) -> str:
        return f"DistanceSeries({self.num_draws} draws, every {self.stride} kept, {self.space})"
