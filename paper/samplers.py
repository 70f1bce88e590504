"""The paper's seven samplers as data: how each is drawn everywhere, and its hand-tuned kernel on every problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import saltus


@dataclass(frozen=True)
class Look:
    """A name for people, a colour of Okabe and Ito's colour-blind safe palette, and a line style."""

    label: str
    colour: str
    line: Any = "-"


LOOKS = {
    "pavg": Look("PAVG", "#D55E00"),
    "ncg": Look("NCG", "#0072B2"),
    "avg": Look("AVG", "#009E73"),
    "gibbs": Look("Gibbs", "#000000", (0, (5, 2))),
    "gwg-ordinal": Look("ordinal GWG", "#E69F00", (0, (5, 2))),
    "uniform-mh": Look("uniform MH", "#CC79A7", (0, (2, 1.5))),
    "gwg": Look("GWG", "#56B4E9", (0, (5, 2))),
    "block-gibbs": Look("block-Gibbs", "#B8A800"),
    "auto": Look("auto", "#666666", (0, (6, 1.5, 1, 1.5))),
}
VARIANTS: dict[str, Any] = {
    "": "-",
    "exact": (0, (1, 1.2)),
    "tuned": (0, (4, 1.5, 1, 1.5)),
    "exact-tuned": (0, (5, 2)),
    "fixed": (0, (1, 1.2)),
    "retuned": (0, (1, 1.2)),
}


def look(name: str) -> Look:
    """Of a sampler, or of its variant such as "ncg exact": the same colour, another line."""
    base, _, variant = name.partition(" ")
    known = LOOKS[base]
    told = "γ = 1" if variant == "fixed" else variant.replace("-", ", ")
    return Look(f"{known.label}, {told}", known.colour, VARIANTS[variant]) if variant else known


Make = Callable[[saltus.Target], saltus.Kernel]


def _negative_precision(step_size: float) -> Make:
    """PAVG with Σ the Hessian of the Gaussian that has the target's exact covariance."""
    return lambda target: saltus.PAVG(step_size, -np.linalg.inv(target.truth.covariance))


def _covariance(step_size: float, scale: float) -> Make:
    """PAVG with Σ a multiple of the exact covariance of a binary target."""

    def make(target: saltus.Target) -> saltus.Kernel:
        p, pairs = target.truth.marginals, target.truth.pairs
        return saltus.PAVG(step_size, pairs - np.outer(p, p), scale)

    return make


KERNELS: dict[str, dict[str, Make]] = {
    "poly2": {
        "pavg": _negative_precision(1000.0),
        "ncg": lambda _: saltus.NCG(0.05),
        "avg": lambda _: saltus.AVG(0.02),
        "gibbs": lambda _: saltus.Gibbs(),
        "uniform-mh": lambda _: saltus.UniformMH(2),
        "gwg-ordinal": lambda _: saltus.GWG(16),
        "gwg": lambda _: saltus.GWG(1),
    },
    "poly4": {
        "pavg": _negative_precision(0.06),
        "ncg": lambda _: saltus.NCG(0.05),
        "avg": lambda _: saltus.AVG(0.02),
        "gibbs": lambda _: saltus.Gibbs(),
        "uniform-mh": lambda _: saltus.UniformMH(1),
        "gwg-ordinal": lambda _: saltus.GWG(8),
        "gwg": lambda _: saltus.GWG(1),
    },
    "regression": {
        "pavg": _covariance(1000.0, 8.0),
        "ncg": lambda _: saltus.NCG(0.3),  # printed as 0.03, with which it never moves
        "avg": lambda _: saltus.AVG(1000.0),
        "gwg": lambda _: saltus.GWG(),
        "gibbs": lambda _: saltus.Gibbs(),
    },
}
BEYOND = {  # the regression's variants that are not in the paper, by the sampler they vary
    "pavg": ("pavg exact", "pavg tuned", "pavg exact-tuned"),
    "ncg": ("ncg exact", "ncg tuned", "ncg exact-tuned"),
    "avg": ("avg exact", "avg tuned", "avg exact-tuned"),
    "gwg": ("gwg exact",),
}
