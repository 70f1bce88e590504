"""`compare`: arguments read, samplers tuned, repetitions made in turn."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._record import as_real, as_size
from ..engine.arguments import read_flag, read_seconds, read_seed, read_target
from ..engine.progress import make_progress
from ..engine.samplers import AUTO, check_kernel_fits, read_samplers
from ..errors import KernelError, RunError, TargetError
from ..kernels import Kernel
from ..run.opening import kernel_of
from ..run.sample import sample
from ..target import Target
from ..tuning import tune
from .comparison import Comparison, Ranking
from .competitor import Competitor
from .disagreements import disagreements

_SECONDS_OF_WARMUP = 20  # repetitions: a warm-up that takes longer ends there


def compare(
    targets: Any,
    kernels: Any,
    *,
    num_chains: int = 16,
    num_warmup: int = 1000,
    repeats: int = 5,
    seconds: float = 0.5,
    num_steps: int | None = None,
    most_rhat: float = 1.05,
    seed: int = 0,
    progress: bool = True,
) -> Comparison:
    """Effective draws per second and per evaluation of several samplers, tuned and timed in turn.

    targets: a `saltus.Target`, a list of them, or {name: target}.
    kernels: a list of samplers, or {name: sampler}. A class or name is tuned on every target first; a kernel such as
        `saltus.NCG(0.5)` is used as it is; "auto" is the sampler that the race of `saltus.sample` picks. A sampler from outside
        the package is one more entry of the list.
    num_chains: chains of every sampler, at least 2, since R-hat compares chains. Default 16.
    num_warmup: steps of every sampler before anything is measured, from where tuning ended. Default 1000.
    repeats: repetitions, at least 2; in each all samplers run, one after the other, so that a busy machine slows all alike.
    seconds: of a repetition of one sampler, about. num_steps: steps of a repetition instead; then nothing depends on the clock
        but the times.
    most_rhat: a sampler whose largest R-hat, of all repetitions together, is above this is not ranked. Default 1.05.
    seed: of tuning and of all chains.

    Effective draws are those of the worst of a few statistics, the energy and distances from reference states, as in the race.
    Samplers that do not agree with the others about the mean of one of them are named: one of the two is wrong or stuck.
    Returns a `Comparison`: `print(c)` shows a table, `c.plot()` a figure, `c.rows` has the numbers, `c.best(target)` the
    fastest. Raises a saltus error where an argument makes no sense; a sampler that cannot be used on a target has a row that
    says why.

        c = saltus.compare(saltus.targets.ising((10, 10), 0.3), ["ncg", "gwg", saltus.Gibbs("coloured")], progress=False)
    """
    asked, entries = _read_targets(targets), _read_kernels(kernels)
    num_chains = as_size(num_chains, "num_chains", RunError, least=2)
    num_warmup, repeats = as_size(num_warmup, "num_warmup", RunError), as_size(repeats, "repeats", RunError, least=2)
    steps = None if num_steps is None else as_size(num_steps, "num_steps", RunError, least=16, most=2**20)
    pace = read_seconds(seconds, "seconds")
    if pace is None or math.isinf(pace):
        raise RunError("`seconds` is not usable.", expected="a positive, finite number", found=repr(seconds))
    most_rhat, seed = _read_rhat(most_rhat), read_seed(seed)
    rows: list[Ranking] = []
    with make_progress(read_flag(progress, "progress")) as shown:
        for name, target in asked.items():
            contest = _Contest(name, target, num_chains, seed, shown)
            for entry, kernel in entries.items():
                contest.enter(entry, kernel)
            contest.run(num_warmup, repeats, pace, steps)
            rows += contest.rows(most_rhat)
    if all(row.kernel is None for row in rows):
        raise KernelError("None of these samplers can be used.", expected="one that can step the target", found=rows[0].verdict)
    return Comparison(tuple(rows), most_rhat)


class _Contest:
    """All samplers on one target."""

    def __init__(self, name: str, target: Target, num_chains: int, seed: int, progress: Any):
        self.name, self.target, self.num_chains, self.seed, self.progress = name, target, num_chains, seed, progress
        self.competitors: list[Competitor] = []
        self.tuning: dict[str, float] = {}
        self.unusable: dict[str, str] = {}

    def enter(self, name: str, given: Any) -> None:
        """Tune it, where that is to be done, and start its chains; what cannot be used here is noted."""
        self.progress.say(f"{self.name}: {name}")
        began = time.perf_counter()
        try:
            kernel, codes = self._ready(given)
            self.tuning[name] = time.perf_counter() - began
            self.competitors.append(Competitor(name, self.target, kernel, self.num_chains, self.seed, codes))
        except Exception as cause:  # one that cannot be used here may be best elsewhere
            told = next(iter(str(cause).splitlines()), "")
            self.unusable[name] = f"cannot be used here: {told or type(cause).__name__}"

    def _ready(self, given: Any) -> tuple[Kernel, np.ndarray | None]:
        """The kernel, frozen, and (chains, d) codes to begin at."""
        if isinstance(given, Kernel) and not given.unfinished:
            check_kernel_fits(given, self.target)
            return given, None
        if given == AUTO:
            run = sample(self.target, num_chains=self.num_chains, num_draws=100, thin=1, seed=self.seed, progress=False)
            return kernel_of(run), None
        tuned = tune(self.target, given, seed=self.seed)
        codes = np.asarray(tuned.points.codes)
        at_codes = codes.ndim == 2 and codes.shape[1] == self.target.space.num_sites
        return tuned.kernel, np.resize(codes, (self.num_chains, codes.shape[1])).astype(np.int32) if at_codes else None

    def run(self, num_warmup: int, repeats: int, seconds: float, num_steps: int | None) -> None:
        """Warm-up, then repetitions in turn: the second in the other order, and so on."""
        for each in self.competitors:
            self.progress.say(f"{self.name}: warm-up of {each.name}")
            each.plan(seconds, each.warm_up(num_warmup, _SECONDS_OF_WARMUP * seconds), num_steps)
        references = self.competitors[0].references() if self.competitors else np.zeros(0)
        for number in range(repeats):
            self.progress.say(f"{self.name}: repetition {number + 1} of {repeats}")
            for each in self.competitors[:: 1 if number % 2 == 0 else -1]:
                each.repeat(references)

    def rows(self, most_rhat: float) -> list[Ranking]:
        rows = [Ranking.of(self.name, each, self.tuning[each.name], most_rhat) for each in self.competitors]
        told = disagreements({c.name: c.means() for c, row in zip(self.competitors, rows, strict=True) if row.ranked})
        rows = [row.but(told[row.sampler]) if row.sampler in told else row for row in rows]
        return rows + [Ranking.unusable(self.name, name, why) for name, why in self.unusable.items()]


def _read_targets(targets: Any) -> dict[str, Target]:
    expected = "a saltus.Target, a list of them, or {name: target}"
    if isinstance(targets, Target):
        targets = [targets]
    if isinstance(targets, Mapping):
        named = {str(name): read_target(target) for name, target in targets.items()}
    elif isinstance(targets, (list, tuple)):
        named = _numbered([(repr(read_target(target)).splitlines()[0], target) for target in targets])
    else:
        raise TargetError("`targets` is not usable.", expected=expected, found=type(targets).__name__)
    if not named:
        raise TargetError("`targets` is empty.", expected=expected, found=repr(targets))
    return named


def _read_kernels(kernels: Any) -> dict[str, Any]:
    if isinstance(kernels, Mapping):
        return {str(name): read_samplers([kernel])[0] for name, kernel in kernels.items()} or _no_kernels(kernels)
    if isinstance(kernels, (str, Kernel, type)):
        kernels = [kernels]
    if not isinstance(kernels, (list, tuple)) or not kernels:
        return _no_kernels(kernels)
    read = [read_samplers([kernel])[0] for kernel in kernels]
    return _numbered([(x if isinstance(x, str) else repr(x) if isinstance(x, Kernel) else x.__name__, x) for x in read])


def _no_kernels(found: Any) -> dict[str, Any]:
    expected = 'a list such as ["ncg", saltus.Gibbs("coloured"), MyKernel], or {name: sampler}'
    raise RunError("`kernels` is not usable.", expected=expected, found=repr(found))


def _numbered(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """By name; a name that comes again gets a number."""
    named: dict[str, Any] = {}
    for name, value in pairs:
        again = sum(key == name or key.startswith(f"{name} (") for key in named)
        named[f"{name} ({again + 1})" if again else name] = value
    return named


def _read_rhat(value: Any) -> float:
    found = as_real(value, "most_rhat", RunError, "a number above 1")
    if found <= 1:
        raise RunError("`most_rhat` is not usable.", expected="a number above 1", found=repr(value))
    return found
