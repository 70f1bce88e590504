"""A lap: some steps of a frozen kernel by the run's own chains and compiled loop, and what they are worth per second."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from ..diagnostics.worth import Worth, reference_chains, series, worth
from ..engine.arguments import Settings, block_rows
from ..engine.chains import Chains
from ..engine.loop import RACING, agree
from ..engine.recording import Recording
from ..kernels import Kernel
from ..target import Target

AGREED = 1.1  # R-hat beyond which chains disagree
_FIRST_STEPS, _FEWEST_STEPS, _LEAST_SECONDS = 4, 64, 0.1
_TOO_FEW = 100  # effective draws, to say that chains disagree
_HOPELESS = 5  # times slower than the leader
_MOST_STEPS = 2**18


@dataclass
class Lap:
    """What was measured of one kernel. ess_per_second: of all chains together, by the worst statistic."""

    worth: Worth
    steps: int
    seconds_per_step: float
    acceptance: float
    jump: float
    num_chains: int
    codes: np.ndarray  # (chains, d) where the chains ended

    @property
    def ess_per_second(self) -> float:
        return self.num_chains / (self.worth.steps * self.seconds_per_step)

    @property
    def agrees(self) -> bool:
        return self.worth.rhat <= AGREED and np.isfinite(self.worth.steps)

    @property
    def too_short(self) -> bool:
        """Whether it moved, but too little, chain by chain, to say that its chains disagree."""
        return self.jump > 0 and self.steps * self.num_chains < _TOO_FEW * self.worth.within

    def and_then(self, later: Lap) -> Lap:
        """Both laps as one: effective draws add up, and the later says whether chains agree."""
        steps = self.steps + later.steps
        each = self.steps / self.worth.steps + later.steps / later.worth.steps
        pace = (self.seconds_per_step * self.steps + later.seconds_per_step * later.steps) / steps
        return replace(later, worth=replace(later.worth, steps=steps / each), steps=steps, seconds_per_step=pace)


@dataclass
class Course:
    """The run's chains and loop, before the run: what compiles here need not compile again."""

    target: Target
    settings: Settings
    codes: np.ndarray  # (chains, d) where the next lap starts
    steps: int = 0  # of all laps, so that no key is used twice
    references: np.ndarray | None = None  # codes of `reference_chains`
    deadline: float = np.inf

    def burn_in(self, kernel: Kernel, seconds: float, evaluations: float) -> Lap:
        """Go from wherever the chains are to states worth measuring distances from."""
        lap = self.run(kernel, seconds, evaluations)
        self.codes = lap.codes
        self.references = self.codes[reference_chains(len(self.codes))]
        return lap

    def run(self, kernel: Kernel, seconds: float, evaluations: float, enough: float = np.inf, leader: float = 0.0) -> Lap:
        """Steps until they are worth `enough`, or hopeless beside the leader's effective draws a second, or all is used up.

        Enough and hopeless are judged after a tenth of a second at the earliest: the pace of fewer steps says little.
        """
        running = _Running(self, kernel)
        seconds = max(min(seconds, self.deadline - time.monotonic()), _LEAST_SECONDS)
        per_step = max(kernel.evaluations(self.target), 1) * self.settings.num_chains
        chunk = _FIRST_STEPS
        while True:
            running.advance(chunk)
            used = running.seconds
            found = running.worth()
            rate = self.settings.num_chains / (found.steps * running.seconds_per_step)
            left = min((seconds - used) / running.seconds_per_step, evaluations / per_step - running.steps)
            over = left < 1 or running.steps >= _MOST_STEPS
            if running.steps >= _FEWEST_STEPS and used >= _LEAST_SECONDS:
                over |= rate * used >= enough and found.rhat <= AGREED
                over |= used >= seconds / 4 and rate * _HOPELESS < leader
            wanted = int(min(running.steps, left))
            stop, chunk = (int(x) for x in agree(np.array([over, max(wanted, 1)])))
            if stop:
                return running.lap(found)


class _Running:
    """One kernel's chains between two chunks."""

    def __init__(self, course: Course, kernel: Kernel):
        settings, space = course.settings, course.target.space
        self.course, self.recording = course, Recording()
        self.rows = block_rows(self.recording, course.target, settings)
        self.chains = Chains(settings, self.recording, kernel, course.target, self.rows)
        self.chains.start(course.codes[np.minimum(np.arange(settings.num_chains), len(course.codes) - 1)])
        self._steps(0, 0)  # compiles
        self.steps = self.row = 0
        self.times: list[tuple[int, float]] = []
        self.statistics: dict[str, list[np.ndarray]] = {}
        self.told: list[tuple[float, float, int]] = []
        self.space = space

    def _steps(self, first: int, num: int) -> None:
        """Steps first.. of this lap; they fill the block from its beginning."""
        t = self.course.steps + first
        self.chains.step(RACING, t, num, start=t)
        self.chains.wait()

    def advance(self, num: int) -> None:
        while num > 0:
            some = min(num, self.rows)
            began = time.perf_counter()
            self._steps(self.steps, some)
            self.times.append((some, time.perf_counter() - began))
            self.steps += some
            self._note(some)
            num -= some

    def _note(self, num: int) -> None:
        names = ("lp", "s", "acceptance_rate", "jump")
        chains = self.course.settings.num_chains
        block = self.chains.rows_of([{name: own[name] for name in names} for own in self.chains.block], 0, num)
        references = self.course.references if self.course.references is not None else self.course.codes[reference_chains(chains)]
        for name, x in series(self.space, block["s"], block["lp"], references).items():
            self.statistics.setdefault(name, []).append(x)
        self.told.append((float(block["acceptance_rate"].mean()), float(block["jump"].mean()), num))

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self.times)

    @property
    def seconds_per_step(self) -> float:
        """Of the later chunks: the first are short, and timed with their overhead."""
        later = self.times[len(self.times) // 2 :]
        return max(sum(s for _, s in later) / sum(n for n, _ in later), 1e-9)

    def worth(self) -> Worth:
        """Without the first fifth, in which the chains get used to this kernel."""
        return worth({name: np.concatenate(parts, axis=1)[:, self.steps // 5 :] for name, parts in self.statistics.items()})

    def lap(self, found: Worth) -> Lap:
        self.course.steps += self.steps
        acceptance, jump, num = (np.array(column) for column in zip(*self.told, strict=True))
        chains = self.course.settings.num_chains
        return Lap(
            found,
            self.steps,
            float(agree(np.array(self.seconds_per_step))),
            float(acceptance @ num / num.sum()),
            float(jump @ num / num.sum()),
            chains,
            self.chains.codes(),
        )
