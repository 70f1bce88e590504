"""`tune`: a sampler's class in, a frozen kernel out, with the points it burnt in to and all that was measured on the way."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from ..errors import KernelError, RunError
from ..kernels import PAVG, Kernel
from ..run.loop import random_codes
from ..run.settings import find_sampler, read_seed, read_target
from ..run.start import check_given, possible_codes, repeated_codes
from ..target import Point, Target
from .preconditioner import Fit, tune_pavg
from .step_size import Curve, tune_field, unit
from .trial import Chains, num_tuning_chains

ADAPTATIONS = ("default", "paper")


@dataclass
class TuningReport:
    """Everything measured: a curve per setting, PAVG's fits, evaluations of f and seconds spent."""

    sampler: str
    curves: list[Curve] = field(default_factory=list)
    fits: list[Fit] = field(default_factory=list)
    note: str = ""
    chosen: dict[str, float] = field(default_factory=dict)  # what was frozen of each setting
    jump: float = 0.0
    acceptance: float = 0.0
    evaluations: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        if not self.curves:
            return f"{self.sampler} has nothing to tune"
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
            _plot_curve(ax, curve, by=self.sampler if last[curve.name] == i else f"AVG, with which {self.sampler} begins")
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
    """kernel: frozen. points: where the tuning chains ended, (chains, ...). report: what was measured."""

    kernel: Kernel
    points: Point
    report: TuningReport

    def __repr__(self) -> str:
        return f"Tuned({self.kernel!r})\n{self.report}"


def tune(target: Target, sampler: Any, seed: int = 0, *, initial: Any = None, adaptation: str = "default") -> Tuned:
    """Choose a sampler's settings on the mean L1 jump; nothing about the returned kernel changes afterwards.

    sampler: a class such as `saltus.NCG`, or its name. initial: states to start from, as for `sample`.
    adaptation: "default", or "paper" for PAVG's published schedule.
    """
    target, seed = read_target(target), read_seed(seed)
    if adaptation not in ADAPTATIONS:
        raise RunError("`adaptation` is not known.", expected=" or ".join(map(repr, ADAPTATIONS)), found=repr(adaptation))
    if isinstance(sampler, Kernel):
        raise KernelError("A kernel is tuned already.", expected=f"the class {type(sampler).__name__}", found=repr(sampler))
    chains = start_chains(target, seed, initial)
    kernel, report = tune_from(target, find_sampler(sampler), chains, adaptation)
    return Tuned(kernel, jax.jit(jax.vmap(lambda c: kernel.init(target, c)))(chains.codes), report)


def start_chains(target: Target, seed: int, initial: Any = None) -> Chains:
    """The tuning chains at the given states, over and over, or at random ones that are possible."""
    return Chains(start_codes(target, seed, initial, num_tuning_chains(target)), seed)


def start_codes(target: Target, seed: int, initial: Any, num: int) -> np.ndarray:
    """(num, d) codes of the given states, over and over, or of random ones that are possible."""
    codes, value = repeated_codes(target, initial, num), jax.jit(jax.vmap(target.value))
    if codes is not None:
        check_given(np.asarray(value(codes)))
    else:
        numbers = np.arange(num, dtype=np.int32)
        draw = lambda attempt: random_codes(target.space, seed, numbers, attempt)  # noqa: E731
        codes = possible_codes(draw, lambda c: np.asarray(value(c)))[0]
    return np.asarray(codes, np.int32)


def tune_from(
    target: Target, kind: Any, chains: Chains, adaptation: str = "default", averaging: Any = None, **settings: Any
) -> tuple[Kernel, TuningReport]:
    """Tune from where these chains are, and leave them where they end.

    averaging: AVG as tuned, for PAVG. settings: of a kernel that has nothing to tune, such as scan="coloured".
    """
    began, spent = time.perf_counter(), chains.evaluations
    report = TuningReport(kind.__name__)
    kernel: Any
    names = [f.name for f in dataclasses.fields(kind)]
    if issubclass(kind, PAVG):
        kernel, report.curves, report.fits, report.note = tune_pavg(target, chains, adaptation, averaging)
    elif "step_size" in names or "radius" in names:
        name = "step_size" if "step_size" in names else "radius"
        first = kind(unit(target.space)) if name == "step_size" else kind(1)
        first.check_settings(target)
        kernel, curve = tune_field(first, target, name, chains)
        report.curves = [curve]
    else:
        kernel = kind(**settings)
        kernel.check_settings(target)
    _finish(report, kernel)
    report.evaluations, report.seconds = chains.evaluations - spent, time.perf_counter() - began
    return kernel, report


def _finish(report: TuningReport, kernel: Any) -> None:
    """The jump and acceptance last measured nearest to what was frozen."""
    if not report.curves:
        return
    report.chosen = {c.name: float(getattr(kernel, c.name)) for c in report.curves}
    curve = report.curves[-1]
    value = float(getattr(kernel, curve.name))
    at = [i for i, v in enumerate(curve.values) if abs(v - value) <= 1e-6 * abs(value)] or [len(curve.values) - 1]
    report.jump = float(np.mean([curve.jump[i] for i in at[-2:]]))
    report.acceptance = float(np.mean([curve.acceptance[i] for i in at[-2:]]))
