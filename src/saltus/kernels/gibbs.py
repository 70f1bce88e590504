"""Gibbs: sites drawn from their exact conditionals, one at a time or a colour at a time."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_choice, record, static
from ..errors import KernelError
from ..structure import Graph, LocalTerms
from ..target import Target
from .declarations import VALUES, Needs
from .heat_bath import HeatBath

SCANS = ("random", "systematic", "coloured")
_LONGEST_SWEEP = 5000  # evaluations of f: beyond, one site a step is a better start


@record
class Gibbs(HeatBath):
    r"""Heat-bath updates from the true conditionals; values of f only, never a gradient, no accept step.

    $$ s'_i \sim \mathrm{softmax}_v f(s \text{ with } s_i = v) $$

    scan: "random" updates one site a step, chosen uniformly; "systematic" sweeps over all sites in order; "coloured" (for
    targets with a `saltus.Graph`) sweeps over colours, the sites of one colour at once. Sweeps leave the target invariant
    but are not reversible. A target's closed-form exact differences are used where it has them.
    """

    simplicity = 0
    cites = ("geman1984",)

    scan: str = static(default="random")

    def __post_init__(self) -> None:
        as_choice(self.scan, "scan", SCANS, KernelError)

    @classmethod
    def first(cls, target: Target, states: Any = None) -> Gibbs:
        """A sweep by colours where sites that interact are known, by sites where it is affordable, or a single site a step."""
        if target.find(Graph) is not None:
            return cls("coloured")
        start = cls("systematic")
        affordable = start.sweep(target) or target.space.num_sites * (target.space.num_values - 1) <= _LONGEST_SWEEP
        return start if affordable else cls("random")

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        return Needs(structure=Graph) if self.scan == "coloured" else VALUES

    def sweep(self, target: Target) -> Any:
        return None if self.scan == "random" else target.differences.sweep(target, in_order=self.scan == "systematic")

    def noise(self, key: jax.Array, target: Target) -> jax.Array:
        """The blocks of sites this step updates, in order: (number of blocks, sites in a block)."""
        if self.scan == "random":
            return jax.random.randint(key, (1, 1), 0, target.space.num_sites, jnp.int32)
        return self.blocks(target)

    def blocks(self, target: Target) -> jax.Array:
        """Every block this scan knows, one per row."""
        if self.scan == "coloured":
            return target.find(Graph).blocks
        return jnp.arange(target.space.num_sites, dtype=jnp.int32)[:, None]

    def compose(self, matrices: list[np.ndarray]) -> np.ndarray:
        """The transition matrix of a step from those of its blocks: their mean, or their product in order."""
        return np.mean(matrices, axis=0) if self.scan == "random" else functools.reduce(np.matmul, matrices)

    @property
    def reversible(self) -> bool:
        return self.scan == "random"

    def evaluations(self, target: Target) -> int:
        sites = 1 if self.scan == "random" else target.space.num_sites
        blocks = sites if self.scan != "coloured" else self.blocks(target).shape[0]
        if target.differences.closed_form or self.sweep(target):
            return 1
        if self.scan == "coloured" and target.find(LocalTerms) is not None:  # a block's terms as they are, and moved; f at its end
            return blocks * (target.space.num_values + 1)
        return sites * (target.space.num_values - 1) + (blocks if blocks < sites else 0)

    def check_settings(self, target: Target) -> None:
        if self.scan == "coloured" and target.find(Graph) is None:
            told = dict(expected="structure=saltus.Graph(neighbours)", found=f"{target!r} without that structure")
            hint = "Gibbs('systematic') sweeps any target, one site after the other"
            raise KernelError("Coloured Gibbs needs to know which sites interact.", **told, hint=hint)
