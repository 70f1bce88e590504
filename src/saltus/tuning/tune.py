"""`tune`: a sampler's class in, a frozen kernel out, with the points it burnt in to and all that was measured on the way."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from ..engine.arguments import read_adaptation, read_seconds, read_seed, read_target
from ..engine.loop import seed_words
from ..engine.samplers import AUTO, check_kernel_fits, find_sampler, first_setting
from ..engine.starts import start_codes
from ..errors import KernelError
from ..kernels import Gibbs, Kernel
from ..target import Target
from .preconditioner import Candidate
from .search import Work, search_all
from .step_size import Curve
from .trial import Chains, num_tuning_chains, start_states


@dataclass
class TuningReport:
    """Everything measured: a curve per setting, the fits of a matrix, evaluations of f and seconds spent."""

    sampler: str
    curves: list[Curve] = field(default_factory=list)
    fits: list[Candidate] = field(default_factory=list)
    note: str = ""
    chosen: dict[str, float] = field(default_factory=dict)  # what was frozen of each setting
    jump: float = 0.0
    acceptance: float = 0.0
    evaluations: int = 0
    seconds: float = 0.0
    warmup: str = ""  # the sampler with which it began, where it began with another

    def __str__(self) -> str:
        if not self.curves:
            return f"{self.sampler}: {self.note}" if self.note else f"{self.sampler} has nothing to tune"
        text = f"{self.sampler}: jump {self.jump:.3g}, acceptance {self.acceptance:.2f}, tuned in {self.seconds:.1f} s"
        text += f" with {self.evaluations} evaluations of log_prob"
        return text + (f"\n  {self.note}" if self.note else "")

    def plot(self, axes: Any = None) -> Any:
        """Jump against each setting that was tuned: one panel a curve, a line where it was frozen."""
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots(1, max(len(self.curves), 1), figsize=(4.2 * max(len(self.curves), 1), 3.2), squeeze=False)
            axes = axes[0]
        last = {curve.name: i for i, curve in enumerate(self.curves)}
        for i, (ax, curve) in enumerate(zip(axes, self.curves, strict=False)):
            _plot_curve(ax, curve, by=self.sampler if last[curve.name] == i else f"{self.warmup}, with which {self.sampler} begins")
            if last[curve.name] == i and curve.name in self.chosen:
                _mark(ax, self.chosen[curve.name])
        axes[0].figure.tight_layout()
        return axes


def _plot_curve(ax: Any, curve: Curve, by: str) -> None:
    sizes = np.abs(curve.values)
    ax.plot(curve.values, curve.jump, ".", color="#0072B2", markersize=5)
    if min(curve.values) <= 0:
        ax.set_xscale("symlog", linthresh=min(sizes[sizes > 0], default=1.0))
    else:
        ax.set_xscale("log")
    ax.set_xlabel(curve.name.replace("_", " "))
    ax.set_ylabel("mean L1 jump")
    ax.set_title(by, fontsize=9, loc="left")


def _mark(ax: Any, value: float) -> None:
    ax.axvline(value, color="#D55E00", linewidth=1.2, zorder=0)
    ax.set_title(f"frozen at {value:.3g}", fontsize=9, loc="right", color="#D55E00")


@dataclass
class Tuned:
    """kernel: frozen. points: the states in which the tuning chains ended, (chains, ...). report: what was measured."""

    kernel: Kernel
    points: Any
    report: TuningReport

    def __repr__(self) -> str:
        return f"Tuned({self.kernel!r})\n{self.report}"


def tune(
    target: Target,
    sampler: Any,
    seed: int = 0,
    *,
    initial: Any = None,
    adaptation: str = "default",
    time_limit: float | None = None,
) -> Tuned:
    """Choose a sampler's settings on the mean L1 jump; nothing about the returned kernel changes afterwards.

    sampler: a class such as `saltus.NCG`, or its name; what it declares in `tunes` is searched. Of a composition such as
    `saltus.Cycle([saltus.NCG, saltus.Gibbs])` every part that is a class is tuned, by itself.
    initial: states to start from, as for `sample`.
    adaptation: "default"; "paper" for the published schedule of preconditioners; or "momentum", which also looks for a momentum,
        over-relaxed draws and another step size of AVG and PAVG, by effective draws, and keeps them where they gain a tenth.
    time_limit: seconds from the call after which to end with the best settings so far, or untuned ones; a warning says so.
    target: a `saltus.Target`. seed: an integer; the same one finds the same settings.
    Returns a `Tuned` with `kernel` and `report`. Example: `saltus.tune(target, saltus.NCG).kernel`.
    """
    began = time.monotonic()
    limit = read_seconds(time_limit, "time_limit")
    tuned, late = tune_until(began + (limit or float("inf")), target, sampler, seed, initial, adaptation)
    if late:
        warnings.warn("`time_limit` left no time for all of the tuning: these settings are a rough guess.", stacklevel=2)
    return tuned


def kernel_for(target: Target, given: Any, seed: int) -> Kernel:
    """`given` itself where it is a kernel; "auto": Gibbs, by the best sweep that there is; else a class or name, tuned."""
    if isinstance(given, Kernel):
        return given
    if isinstance(given, str) and given.lower() == AUTO:
        return Gibbs.first(target)
    return tune(target, find_sampler(given), seed).kernel


def tune_until(deadline: float, target: Any, sampler: Any, seed: Any, initial: Any, adaptation: Any) -> tuple[Tuned, bool]:
    """`tune`, cut short at the deadline (of time.monotonic), and whether it was: then the settings are a rough guess."""
    target, seed = read_target(target), read_seed(seed)
    read_adaptation(adaptation)
    if isinstance(sampler, Kernel) and not sampler.unfinished:
        raise KernelError("A kernel is tuned already.", expected=f"the class {type(sampler).__name__}", found=repr(sampler))
    kind = sampler if isinstance(sampler, Kernel) else find_sampler(sampler)
    first = first_setting(kind, target)
    check_kernel_fits(first, target)
    chains = start_chains(target, seed, initial)
    if deadline < float("inf"):
        chains.deadline = deadline
        chains.guess_pace(first, target)
    kernel, report = tune_from(target, kind, chains, adaptation)
    points = jax.jit(start_states)(kernel, target, chains.codes, seed_words(seed), np.int32(chains.steps))[0]
    return Tuned(kernel, points, report), chains.cut


def start_chains(target: Target, seed: int, initial: Any = None) -> Chains:
    """The tuning chains at the given states, over and over, or at random ones that are possible."""
    return Chains(start_codes(target, seed, initial, num_tuning_chains(target)), seed)


def tune_from(
    target: Target, kind: Any, chains: Chains, adaptation: str = "default", known: Mapping[Any, Any] | None = None
) -> tuple[Kernel, TuningReport]:
    """Tune from where these chains are, and leave them where they end.

    known: {class: kernel} of samplers tuned for this target before, for those that begin with another.
    """
    began, spent = time.perf_counter(), chains.evaluations
    work = Work(target, chains, adaptation, known or {})
    kernel = search_all(kind, work)
    name = repr(kernel) if isinstance(kind, Kernel) else kind.__name__
    untuned = "" if work.curves or not chains.cut else "not tuned: the time limit left no time"
    report = TuningReport(name, work.curves, work.fits, work.note or untuned, warmup=work.warmup)
    _finish(report, kernel)
    report.evaluations, report.seconds = chains.evaluations - spent, time.perf_counter() - began
    return kernel, report


def _finish(report: TuningReport, kernel: Any) -> None:
    """The jump and acceptance last measured nearest to what was frozen."""
    if not report.curves:
        return
    report.chosen = {c.name: float(getattr(kernel, c.name)) for c in report.curves if hasattr(kernel, c.name)}
    curve = report.curves[-1]
    value = float(getattr(kernel, curve.name, curve.values[-1]))  # of a composition its parts have it
    at = [i for i, v in enumerate(curve.values) if abs(v - value) <= 1e-6 * abs(value)] or [len(curve.values) - 1]
    report.jump = float(np.mean([curve.jump[i] for i in at[-2:]]))
    report.acceptance = float(np.mean([curve.acceptance[i] for i in at[-2:]]))
