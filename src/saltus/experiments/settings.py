"""How long everything runs at each scale."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Length:
    """Chains side by side, steps of each that are thrown away, and steps that are kept."""

    chains: int
    burn_in: int
    kept: int


@dataclass(frozen=True)
class Scale:
    """Settings of every experiment; `seeds` unless another number is asked for."""

    ordinal: Length
    regression: Length
    third_order: Length
    alphas: tuple[float, ...]
    noises: int  # auxiliary draws over which a proposal is averaged
    beyond: tuple[str, ...]  # of the regression, what is not in the paper: exact local models, tuned samplers, the race
    seeds: int


_ALPHAS = tuple(i / 10 for i in range(-5, 6))
_SOME = ("pavg exact", "pavg tuned", "ncg exact", "ncg tuned", "ncg exact-tuned", "avg exact", "avg tuned", "gwg exact", "auto")
_MOST = (*_SOME[:-1], "pavg exact-tuned", "avg exact-tuned", "auto")
SCALES = {
    # 3000 and 2000 steps in all: the settings for which independent reference numbers exist.
    "quick": Scale(Length(40, 500, 2500), Length(30, 300, 1700), Length(50, 500, 2000), _ALPHAS, 20_000, _SOME, 1),
    # The paper's 100 chains, a tenth of it burn-in; lengths meant to last about ten minutes each on two cores.
    "full": Scale(
        Length(100, 60_000, 540_000), Length(100, 180_000, 1_620_000), Length(100, 20_000, 180_000), _ALPHAS, 200_000, _MOST, 5
    ),
    # For tests.
    "tiny": Scale(Length(3, 100, 100), Length(3, 100, 100), Length(3, 100, 100), (0.0,), 100, (), 1),
}
