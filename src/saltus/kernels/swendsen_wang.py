"""SwendsenWang: bonds between sites that agree with their coupling make clusters, and every cluster is drawn anew."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .. import random
from .._record import default_float, fill, record
from ..errors import KernelError
from ..preconditioners import Sparse, as_preconditioner
from ..structure import SiteQuadratic
from ..target import Point, Target
from .base import Kernel
from .clusters import Pairs, components, fits_pairs, frustrated, pairs_of
from .declarations import VALUES, Needs
from .metropolis import Info, metropolis


@record
class SwendsenWang(Kernel):
    r"""Swendsen & Wang (1987): clusters of an Ising model with couplings of any sign, or of a Potts model, with fields.

    $$ P(\text{bond}_{ij}) = 1 - e^{-2 |J_{ij}|} \text{ where } J_{ij} x_i x_j > 0, \qquad
       P(\text{flip } C) = 1 \big/ \big(1 + e^{2 \sum_{i \in C} h_i x_i}\big) $$
    $$ \text{Potts: } P(\text{bond}_{ij}) = 1 - e^{-J_{ij}} \text{ where } c_i = c_j,\ J_{ij} > 0, \qquad
       P(c_C = v) \propto e^{\sum_{i \in C} h_i(v)}, \qquad \log\alpha = \text{rest}' - \text{rest} $$

    Reads couplings and fields from the target's `saltus.Quadratic` structure; rest is what the bonds leave out, nothing but Potts
    couplings below 0. coupling: for a target that is more than its pairs, H of the part ½ sᵀHs that clusters shall take care
    of (`saltus.Sparse`, with copies=k on categories, or an array on two values); rest is then f less that part, and all
    clusters are accepted or refused together.
    """

    simplicity = 5
    cites = ("swendsen1987",)
    coupling: Any = None

    def __post_init__(self) -> None:
        if self.coupling is not None:
            fill(self, coupling=as_preconditioner(self.coupling))

    @classmethod
    def enters(cls, target: Target) -> bool:
        """Where couplings are few and no ring of them is frustrated: clusters of a spin glass fill it, and all flip together."""
        coupling = target.find(SiteQuadratic).coupling
        return isinstance(coupling, Sparse) and coupling.edges.num_edges > 0 and not frustrated(target.space, coupling)

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        return Needs(structure=SiteQuadratic) if self.coupling is None else VALUES

    @property
    def uses_local_model(self) -> bool:  # type: ignore[override]
        return False

    def pairs(self, target: Target) -> Pairs:
        """What is made of bonds and clusters."""
        if self.coupling is not None:
            return pairs_of(target.space, self.coupling, 0.0)
        quadratic = target.find(SiteQuadratic)
        return pairs_of(target.space, quadratic.coupling, quadratic.potentials)

    def step(self, key: jax.Array, target: Target, x: Point) -> tuple[Any, Info]:
        bond_key, cluster_key, accept_key = random.split(key, 3)
        pairs = self.pairs(target)
        u = random.unit(bond_key, pairs.J.shape, pairs.J.dtype)
        labels = components(pairs.incidence, u < self.bond_probability(pairs, x.codes))
        y = self.init(target, self.drawn(cluster_key, pairs, x.codes, labels))
        return metropolis(accept_key, target.space, x, y, self.log_ratio(target, x, y))

    def bond_probability(self, pairs: Pairs, codes: jax.Array) -> jax.Array:
        """(m,) 1 - exp(-attraction) on pairs that are satisfied, 0 on others."""
        return -jnp.expm1(-jnp.maximum(pairs.attraction(codes), 0))

    def cluster_scores(self, pairs: Pairs, codes: jax.Array, labels: jax.Array) -> jax.Array:
        """(d, k) at the label of each cluster, log of the weights of what it may become: staying and flipping, or each value."""
        each = pairs.fields
        if self._flips(pairs):
            each = jnp.where(codes[:, None] == 0, each, each[:, ::-1])  # as it is, and turned
        return jnp.zeros_like(each).at[labels].add(each, mode="promise_in_bounds")

    def _flips(self, pairs: Pairs) -> bool:
        return pairs.fields.shape[1] == 2

    def drawn(self, key: jax.Array, pairs: Pairs, codes: jax.Array, labels: jax.Array) -> jax.Array:
        """New codes: every cluster drawn from its weights."""
        scores = self.cluster_scores(pairs, codes, labels)
        weights = jnp.exp(scores - jnp.max(scores, axis=1, keepdims=True)).T
        chosen = random.categorical(key, weights)[labels].astype(codes.dtype)
        return codes ^ chosen if self._flips(pairs) else chosen

    def log_ratio(self, target: Target, x: Point, y: Point, noise: None = None, forward: Any = None) -> jax.Array:
        """rest' - rest."""
        pairs = self.pairs(target)
        if self.coupling is None:
            return (pairs.rest(y.codes) - pairs.rest(x.codes)).astype(default_float())
        return y.log_prob - x.log_prob - (pairs.handled(y.codes) - pairs.handled(x.codes))

    def evaluations(self, target: Target) -> int:
        return 1

    def check_settings(self, target: Target) -> None:
        found = target.find(SiteQuadratic)
        coupling = self.coupling if self.coupling is not None else found.coupling if found is not None else None
        if coupling is None:
            raise KernelError(
                "Clusters need to know which sites attract each other.",
                expected="structure=saltus.Quadratic(b, H), or SwendsenWang(coupling=H)",
                found=f"{target} without that structure",
                hint="saltus.targets.ising and saltus.targets.potts have it",
            )
        if not fits_pairs(target.space, coupling) or coupling.size != target.space.size:
            raise KernelError(
                "Clusters need pairs of two-valued sites, or of categories that prefer to be equal.",
                expected="a space of two numbers and H of size d, or one-hot categories and saltus.Sparse(..., copies=k)",
                found=f"{coupling!r} on {target.space}",
            )
