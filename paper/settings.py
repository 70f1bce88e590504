"""How long everything runs at each scale."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Length:
    """Chains side by side, steps of each that are thrown away, and steps that are kept."""

    chains: int
    burn_in: int
    kept: int


@dataclass(frozen=True)
class Network:
    """The convolutional model of Table 2 and its three stages: learn a model, sample it, learn its quadratic part again."""

    width: int
    sampler: str  # of the first stage
    num_steps: int
    first_updates: int
    pace: float  # of the network's learning in the first stage, in parts of that of J and b
    refresh: int  # steps of NCG after the first stage, before its chains are taken as data
    updates: int  # of the third stage
    images: str  # "usps": needs its file; "any": the file where there is one, else synthetic digits
    rows: int  # of synthetic digits
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Training:
    """Settings of the training experiments; `columns` are the values of K that head the paper's tables."""

    updates: int
    rows: int  # of data drawn from the lattice
    sweeps: int  # behind each of them
    buffer: int
    columns: tuple[int, ...]
    exponents: tuple[int, ...]  # of the step-size sensitivity
    network: Network
    seeds: int


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
    training: Training


def with_columns(scale: Scale, columns: tuple[int, ...]) -> Scale:
    """With these values of K in place of the scale's own."""
    training = scale.training
    return replace(scale, training=replace(training, columns=columns, network=replace(training.network, columns=columns)))


_ALPHAS = tuple(i / 10 for i in range(-5, 6))
_SOME = ("pavg exact", "pavg tuned", "ncg exact", "ncg tuned", "ncg exact-tuned", "avg exact", "avg tuned", "gwg exact", "auto")
_QUICK = Training(
    *(2200, 10_000, 500, 5000, (1, 5), (-4, -2, 0, 2, 4)),
    Network(4, "ncg", 10, 500, 0.1, 60, 1500, "any", 7000, (5, 20)),
    seeds=1,
)
_FULL = Training(
    *(2200, 10_000, 500, 5000, (1, 5, 10, 15, 20), tuple(range(-5, 6))),
    Network(16, "gwg", 50, 5220, 1.0, 0, 2200, "usps", 0, (5, 10, 15, 20)),
    seeds=3,
)
_TINY = Training(*(4, 200, 20, 100, (1, 5), (0, 2)), Network(1, "ncg", 2, 3, 1.0, 2, 3, "any", 200, (5,)), seeds=1)
_MOST = (*_SOME[:-1], "pavg exact-tuned", "avg exact-tuned", "auto")
SCALES = {
    # 3000 and 2000 steps in all: the settings for which independent reference numbers exist.
    "quick": Scale(Length(40, 500, 2500), Length(30, 300, 1700), Length(50, 500, 2000), _ALPHAS, 20_000, _SOME, 1, _QUICK),
    # The paper's 100 chains, a tenth of it burn-in; lengths meant to last about ten minutes each on two cores.
    "full": Scale(
        Length(100, 60_000, 540_000),
        Length(100, 180_000, 1_620_000),
        Length(100, 20_000, 180_000),
        _ALPHAS,
        200_000,
        _MOST,
        5,
        _FULL,
    ),
    # For tests.
    "tiny": Scale(Length(3, 100, 100), Length(3, 100, 100), Length(3, 100, 100), (0.0,), 100, (), 1, _TINY),
}
