"""Who enters the race of `sampler="auto"`: the simplest first, in two stages, and why others stay out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..kernels import AVG, GWG, NCG, PAVG, BlockGibbs, Gibbs, Informed, Kernel, UniformMH
from ..local import ExactDifferences
from ..structure import Graph, SiteQuadratic
from ..target import Target

_MOST_DIFFERENCES = 1000  # evaluations of f a step: beyond, exact differences are not affordable
_LONGEST_SWEEP = 5000  # evaluations of f: beyond, Gibbs updates one site a step


_SIMPLEST_FIRST = [Gibbs, BlockGibbs, NCG, GWG, AVG, UniformMH, PAVG]


@dataclass(frozen=True)
class Entrant:
    """A sampler, and the local model it looks through; None: the target's own."""

    kind: Any
    differences: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    last_resort: bool = False  # enters only where no other moves

    @property
    def name(self) -> str:
        own = ", ".join(str(value) for value in self.settings.values())
        name = f"{self.kind.__name__}({own})" if own else self.kind.__name__
        return name if self.differences is None else f"{name} by {self.differences} differences"

    def seen(self, target: Target) -> Target:
        """The target through this entrant's local model."""
        return target if self.differences is None else target.through(self.differences)

    @property
    def simplicity(self) -> tuple[bool, int]:
        """Smaller is simpler: the target's own local model first, then by how much there is to tune and understand."""
        return self.differences is not None, _SIMPLEST_FIRST.index(self.kind)

    def kernel(self) -> Kernel:
        """Of a sampler that has nothing to tune."""
        return self.kind(**self.settings)

    def frozen(self, kernel: Kernel) -> Kernel:
        """The tuned kernel as the run will use it, on the target as it was given."""
        return kernel if self.differences is None else Informed(kernel, self.differences)


@dataclass
class Field:
    """first: what the target's structure offers, NCG and Gibbs. others: for when those are slow. out: {name: why not}."""

    first: list[Entrant]
    others: list[Entrant]
    out: dict[str, str]
    doubt: str = ""


def find_entrants(target: Target, doubt: str, usable: bool = True) -> Field:
    """doubt: why the target's own local model cannot be trusted, nothing where it can; usable: whether there is one at all."""
    space, out, exact = target.space, {}, _exact(target)
    if exact is None and not target.differences.exact:
        evaluations = ExactDifferences().evaluations(space)
        out["exact differences"] = f"{evaluations} evaluations a step are more than {_MOST_DIFFERENCES}"
    models: list[str | None] = ([None] if usable else []) + ([exact] if exact else [])
    if doubt:
        models.reverse()  # samplers with a bad guide are slow, not wrong: they enter last
    informed = [[Entrant(kind, model) for kind in (NCG, GWG, AVG, PAVG)] for model in models]
    gibbs, structured = [gibbs_entrant(target)], [Entrant(BlockGibbs)] if target.find(SiteQuadratic) is not None else []
    ncg = [group[0] for group in informed[:1]]
    first = gibbs + structured + ncg if target.find(Graph) is not None else structured + ncg + gibbs
    baseline = [Entrant(UniformMH, last_resort=space.diameter == 1)]
    return Field(first, [e for group in informed for e in group if e not in first] + baseline, out, doubt)


def _exact(target: Target) -> str | None:
    """Exact differences, where the target has none of its own and they are affordable."""
    if target.differences.exact or ExactDifferences().evaluations(target.space) > _MOST_DIFFERENCES:
        return None
    return "exact"


def gibbs_entrant(target: Target) -> Entrant:
    """Nothing to tune, and always there: a sweep by colours, by sites, or a single site a step."""
    if target.find(Graph) is not None:
        return Entrant(Gibbs, settings={"scan": "coloured"})
    sweep = target.space.num_sites * (target.space.num_values - 1)
    return Entrant(Gibbs, settings={"scan": "systematic" if sweep <= _LONGEST_SWEEP else "random"})
