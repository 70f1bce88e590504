"""Who enters a race: the simplest first, in two stages, and why others stay out. All of it read off what samplers declare."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..engine.samplers import AUTO, check_kernel_fits, first_setting, tunes_of
from ..errors import KernelError
from ..kernels import Informed, Kernel, samplers
from ..local import affordable_differences
from ..target import Target

_MOST_DIFFERENCES = 1000  # evaluations of f a step: beyond, exact differences are not affordable


@dataclass(frozen=True)
class Entrant:
    """A sampler, and the local model it looks through; None: the target's own.

    start: where its settings begin on this target. ready: whether it races as it is, without tuning.
    """

    kind: Any
    differences: str | None = None
    start: Any = None
    ready: bool = False
    last_resort: bool = False  # enters only where no other moves

    @property
    def name(self) -> str:
        """The class, with the settings that are words; a kernel that was given in full."""
        if self.ready:
            return repr(self.start)
        fields = dataclasses.fields(self.kind) if self.start is not None else ()
        own = ", ".join(x for f in fields if f.metadata.get("static") and isinstance(x := getattr(self.start, f.name), str))
        name = f"{self.kind.__name__}({own})" if own else self.kind.__name__
        return name if self.differences is None else f"{name} by {self.differences} differences"

    def seen(self, target: Target) -> Target:
        """The target through this entrant's local model."""
        return target if self.differences is None else target.through(self.differences)

    @property
    def simplicity(self) -> tuple[bool, int]:
        """Smaller is simpler: the target's own local model first, then by how much there is to tune and understand."""
        return self.differences is not None, self.kind.simplicity

    @property
    def guided(self) -> bool:
        """Whether it has a use for a local model."""
        return self.start.needs.local_model

    @property
    def needs_values_only(self) -> bool:
        return not self.guided and self.start.needs.structure is None

    @property
    def nothing_to_tune(self) -> bool:
        return self.ready or not tunes_of(self.kind)

    def frozen(self, kernel: Kernel) -> Kernel:
        """The tuned kernel as the run will use it, on the target as it was given."""
        return kernel if self.differences is None else Informed(kernel, self.differences)


@dataclass
class Entrants:
    """first: what must be tried. others: for when those are slow. out: {name: why not}."""

    first: list[Entrant]
    others: list[Entrant]
    out: dict[str, str]
    doubt: str = ""


def find_entrants(target: Target, doubt: str, usable: bool = True, asked: Sequence[Any] = (AUTO,)) -> Entrants:
    """Every sampler of the package that applies, where `asked` says "auto", and those it names.

    doubt: why the target's own local model cannot be trusted, nothing where it can; usable: whether there is one at all.
    asked: as `read_samplers` left it. Samplers that were asked for by name all enter; the others in two stages.
    """
    exact, evaluations = affordable_differences(target, _MOST_DIFFERENCES)
    named, ours = named_entrants(target, asked), package_entrants(target) if AUTO in asked else []
    out = {}
    if exact is None and not target.differences.exact and any(e.guided for e in (*named, *ours)):
        out["exact differences"] = f"{evaluations} evaluations a step are more than {_MOST_DIFFERENCES}"
    models: list[str | None] = ([None] if usable else []) + ([exact] if exact else [])
    if doubt:
        models.reverse()  # samplers with a bad guide are slow, not wrong: they enter last
    first, others = _stages(ours, models)
    wanted, variants = _asked_for(named, models, usable)
    return Entrants(first + wanted, others + variants, out, doubt)


def _stages(ours: list[Entrant], models: list[str | None]) -> tuple[list[Entrant], list[Entrant]]:
    """First what the target's structure offers, the simplest with a local model and the simplest without; then the others."""
    structured = [e for e in ours if e.start.needs.structure is not None]
    guided = [[dataclasses.replace(e, differences=model) for e in ours if e.guided] for model in models]
    unguided = [e for e in ours if not e.guided]
    first = structured + [e for group in guided[:1] for e in group[:1]]
    first += [e for e in unguided[:1] if e not in first]
    return first, [e for e in [*(e for group in guided for e in group), *unguided] if e not in first]


def _asked_for(named: list[Entrant], models: list[str | None], usable: bool) -> tuple[list[Entrant], list[Entrant]]:
    """(those that enter at once, the same through other local models)."""
    first: list[Entrant] = []
    others: list[Entrant] = []
    for e in named:
        seen = [None] if e.ready or not e.guided else models
        first += [dataclasses.replace(e, differences=model) for model in seen[:1]]
        others += [dataclasses.replace(e, differences=model) for model in seen[1:]]
    if named and not first:
        raise KernelError(
            "None of these samplers can be used here.",
            expected="a log_prob that can be differentiated, or exact differences that are affordable",
            found=", ".join(e.name for e in named),
        )
    return first, others


def package_entrants(target: Target) -> list[Entrant]:
    """Those of the package that race and whose needs this target meets, the simplest first."""
    found = []
    for kind in samplers().values():
        if not kind.races:
            continue
        try:
            start = first_setting(kind, target)
        except KernelError:  # this target lacks what it needs
            continue
        if kind.enters(target):
            found.append(Entrant(kind, start=start, last_resort=kind.last_resort(target.space)))
    return found


def named_entrants(target: Target, asked: Sequence[Any]) -> list[Entrant]:
    """Those asked for by name, class or kernel, in that order; KernelError where one cannot sample this target."""
    found = []
    for sampler in asked:
        if isinstance(sampler, Kernel):
            found.append(Entrant(type(sampler), start=sampler, ready=True))
        elif sampler != AUTO:
            found.append(Entrant(sampler, start=first_setting(sampler, target)))
    for entrant in found:
        check_kernel_fits(entrant.start, target)
        if entrant.start.weighted:
            raise KernelError(
                "A race cannot compare draws that carry weights.",
                expected="samplers whose draws count alike",
                found=entrant.name,
                hint=f"saltus.sample(target, {entrant.kind.__name__}) runs it alone",
            )
    return found


def simplest(target: Target, asked: Sequence[Any] = (AUTO,)) -> Entrant:
    """What to take without a race: the simplest with nothing to tune, else the simplest."""
    entrants = (package_entrants(target) if AUTO in asked else []) + named_entrants(target, asked)
    return min(entrants, key=lambda e: (not e.nothing_to_tune, e.simplicity))
