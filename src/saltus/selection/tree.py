"""The visits of a `Selection` as an xarray DataTree, with the groups of every saltus run."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

DRAWS = 1000  # of each chain, resampled


def tree(found: Any) -> xr.DataTree:
    """posterior: 0/1 by column, resampled so that it may be averaged; weighted_posterior: model, log_weight, log_prob of
    every visit.
    """
    a, names = found._answer, found.names
    models, data = a.models, found._data
    if a.exact:
        rng = np.random.default_rng(0)
        picked = rng.choice(len(models), size=(1, DRAWS), p=models.frequency / models.frequency.sum())
        raw = None
    else:
        picked = np.stack([_resampled(m, w) for m, w in zip(a.draws.model, a.draws.weight, strict=True)])
        raw = a.draws
    included = np.zeros((*picked.shape, len(names)), np.int8)
    included[..., data.always] = 1
    for chain, draw in np.ndindex(picked.shape):
        included[chain, draw, data.entering[models.columns(picked[chain, draw])]] = 1
    coords = {"chain": np.arange(picked.shape[0]), "draw": np.arange(picked.shape[1]), "column": names}
    groups: dict[str, Any] = {
        "posterior": xr.Dataset({"included": (("chain", "draw", "column"), included)}, coords=coords),
        "sample_stats": xr.Dataset(
            {"log_prob": (("chain", "draw"), models.log_posterior[picked])}, coords={k: coords[k] for k in ("chain", "draw")}
        ),
    }
    if raw is not None:
        where = ("chain", "visit")
        groups["weighted_posterior"] = xr.Dataset(
            {
                "model": (where, raw.model),
                "log_weight": (where, np.log(raw.weight)),
                "log_prob": (where, models.log_posterior[raw.model]),
            }
        )
    result = xr.DataTree.from_dict(groups)
    told = {k: v for k, v in found.told.items() if isinstance(v, (str, int, float)) and not isinstance(v, bool)}
    result.attrs.update(told, notes="; ".join(found.told["notes"]))
    return result


def _resampled(model: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Systematically, in order."""
    num = min(DRAWS, len(model))
    cumulative = np.cumsum(weight) / weight.sum()
    return model[np.minimum(np.searchsorted(cumulative, (np.arange(num) + 0.5) / num), len(model) - 1)]
