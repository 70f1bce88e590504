"""Moves: for every site, a score for each value it could take, 0 at the current one.

A table D_i(v) of predicted changes, a noise term u_i (v - s_i), a penalty c_i (v - s_i)^2 and a neighbourhood (0 inside,
-inf outside) are all Moves around the same codes; proposals are sums of them. The forms share one interface, a space chooses
its own once, and no kernel looks inside: `Flips` (two values: one score a site), `Tables` (any number), `Joint` (parts).
"""

from .base import Moves, log_product, normaliser_gap, over_values
from .flips import Flips
from .joint import Joint
from .tables import Tables

__all__ = ["Flips", "Joint", "Moves", "Tables", "log_product", "normaliser_gap", "over_values"]
