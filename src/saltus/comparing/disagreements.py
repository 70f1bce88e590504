"""Samplers of one target must agree about its means; which do not."""

from __future__ import annotations

import numpy as np
from scipy.stats import ttest_ind

_SURE = 1e-6  # the p-value below which two samplers are said to disagree


def disagreements(means: dict[str, dict[str, np.ndarray]]) -> dict[str, str]:
    """{sampler: what is wrong} from {sampler: {statistic: (chains,) means}}, of those that disagree with most others.

    Means of chains are independent of each other however slowly a chain moves: Welch's test asks no more of them.
    """
    found: dict[str, str] = {}
    for name, own in means.items():
        against = {other: _differs(own, theirs) for other, theirs in means.items() if other != name}
        wrong = {other: statistic for other, statistic in against.items() if statistic}
        if 2 * len(wrong) > len(against):
            other, statistic = next(iter(wrong.items()))
            told = f"{own[statistic].mean():.4g} against {means[other][statistic].mean():.4g}"
            found[name] = f"disagrees with {other} about the mean {statistic}, {told}"
    return found


def _differs(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> str:
    """The first statistic whose means are apart, or nothing."""
    for name in a:
        if name in b and np.ptp(np.concatenate([a[name], b[name]])) > 0 and _p_value(a[name], b[name]) < _SURE:
            return name
    return ""


def _p_value(a: np.ndarray, b: np.ndarray) -> float:
    if np.ptp(a) == 0 and np.ptp(b) == 0:  # the same in all chains, and not the same in both
        return 0.0
    return float(ttest_ind(a, b, equal_var=False).pvalue)
