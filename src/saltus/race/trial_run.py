"""A trial run: steps of a frozen kernel by the compiled loop of the run, and what they are worth. No clock decides its length."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..diagnostics.ess import split_rhat
from ..diagnostics.worth import ENERGY, Worth, reference_chains, series, worth
from ..engine.arguments import Settings, block_rows
from ..engine.chains import Chains
from ..engine.loop import RACING, agree
from ..engine.recording import Recording
from ..kernels import Kernel
from ..target import Target
from .cost import loop_seconds

AGREED = 1.1  # R-hat beyond which chains disagree
STARTS = 16  # chains, at least, that are asked whether they agree: four of two signs agree by chance one time in eight
_FIRST_STEPS, _FEWEST_STEPS = 16, 64
_TOO_FEW = 10  # effective draws a chain, to say that chains disagree
_HOPELESS = 5  # times slower than the leader
_MOST_STEPS = 2**18
_APART = 0x9E3779B97F4A7C15  # between the seeds of the turns


@dataclass
class TrialRun:
    """What was measured of one kernel.

    seconds_per_step: of the run's chains, computed (`cost`). codes: (starts, d) where the chains of the trial ended.
    energies_agree: whether the energies' R-hat is small; states may still be apart. told: what the kernel counted itself, or None.
    """

    worth: Worth
    steps: int
    seconds_per_step: float
    acceptance: float
    jump: float
    num_chains: int
    codes: np.ndarray
    energies_agree: bool = True
    told: Any = None

    @property
    def ess_per_second(self) -> float:
        """Effective draws of all chains of the run together, by the worst statistic."""
        return self.num_chains / (self.worth.steps * self.seconds_per_step)

    @property
    def agrees(self) -> bool:
        return self.worth.rhat <= AGREED and np.isfinite(self.worth.steps)

    @property
    def too_short(self) -> bool:
        """Whether it moved, but too little, chain by chain, to say that its chains disagree."""
        return self.jump > 0 and self.steps < _TOO_FEW * self.worth.within

    @property
    def apart(self) -> bool:
        """Whether its chains moved enough to tell, and disagree."""
        return self.jump > 0 and not self.agrees and not self.too_short

    def and_then(self, later: TrialRun) -> TrialRun:
        """Both trials as one: effective draws add up, and the later says whether chains agree."""
        steps = self.steps + later.steps
        each = self.steps / self.worth.steps + later.steps / later.worth.steps
        return replace(later, worth=replace(later.worth, steps=steps / each), steps=steps)


@dataclass
class Trials:
    """The run's compiled loop, before the run, for at least sixteen chains: the loop takes them by turns, as many as the run has.

    What compiles here need not compile again.
    """

    target: Target
    settings: Settings
    codes: np.ndarray  # (starts, d) where the next trial starts
    steps: int = 0  # of all trials, so that no key is used twice
    references: np.ndarray | None = None  # codes of `reference_chains`
    deadline: float = np.inf

    @property
    def turns(self) -> int:
        """Loops that all starts take."""
        return -(-len(self.codes) // self.settings.num_chains)

    def burn_in(self, kernel: Kernel, seconds: float) -> TrialRun:
        """Go from wherever the chains are to states worth measuring distances from. seconds: computed, at most."""
        trial = self.run(kernel, seconds, enough=0)
        self.codes = trial.codes
        self.references = self.codes[reference_chains(len(self.codes))]
        return trial

    def run(self, kernel: Kernel, seconds: float, enough: float = np.inf, leader: float = 0.0) -> TrialRun:
        """Steps until they are worth `enough`, or hopeless beside the leader's effective draws a second, or all is used up.

        seconds: of all starts, computed. Only a deadline that is over ends a trial by the clock.
        """
        running = _Running(self, kernel)
        per_step = running.seconds_per_step * self.turns
        most = int(np.clip(seconds / per_step, _FEWEST_STEPS, _MOST_STEPS))
        chunk = _FIRST_STEPS
        while True:
            running.advance(chunk)
            found = running.worth()
            rate = self.settings.num_chains / (found.steps * running.seconds_per_step)
            over = running.steps >= most or time.monotonic() > self.deadline
            if running.steps >= _FEWEST_STEPS:
                over |= len(self.codes) * running.steps >= enough * found.steps and found.rhat <= AGREED
                over |= running.steps >= most / 8 and rate * _HOPELESS < leader
            if bool(agree(np.array(over))):
                return running.trial(found)
            chunk = min(running.steps, max(most - running.steps, 1))


@dataclass
class _Running:
    """One kernel's chains between two chunks."""

    trials: Trials
    kernel: Kernel
    steps: int = 0
    statistics: dict[str, list[np.ndarray]] = field(default_factory=dict)
    moves: list[tuple[float, float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings, target, recording = self.trials.settings, self.trials.target, Recording()
        self.rows = block_rows(recording, target, settings)
        self.teams = []
        for turn in range(self.trials.turns):
            own = replace(settings, seed=(settings.seed + turn * _APART) % 2**64)
            chains = Chains(own, recording, self.kernel, target, self.rows)
            chains.start(self.trials.codes[turn * settings.num_chains :][: settings.num_chains])
            self.teams.append(chains)
        self.seconds_per_step = loop_seconds(self.teams[0])

    def advance(self, num: int) -> None:
        """Steps; they fill the block from its beginning."""
        while num > 0:
            some, t = min(num, self.rows), self.trials.steps + self.steps
            found = []
            for chains in self.teams:
                chains.step(RACING, t, some, start=t)
                chains.wait()
                found.append(_rows(chains, some))
            self.steps += some
            self._note({name: np.concatenate([own[name] for own in found], axis=1) for name in found[0]}, some)
            num -= some

    def _note(self, block: dict[str, np.ndarray], num: int) -> None:
        trials = self.trials
        references = trials.codes[reference_chains(len(trials.codes))] if trials.references is None else trials.references
        for name, x in series(trials.target.space, block["s"], block["lp"], references).items():
            self.statistics.setdefault(name, []).append(x)
        self.moves.append((float(block["acceptance_rate"].mean()), float(block["jump"].mean()), num))

    def _later(self) -> dict[str, np.ndarray]:
        """Without the first fifth, in which the chains get used to this kernel."""
        return {name: np.concatenate(parts, axis=1)[:, self.steps // 5 :] for name, parts in self.statistics.items()}

    def worth(self) -> Worth:
        return worth(self._later())

    def trial(self, found: Worth) -> TrialRun:
        self.trials.steps += self.steps
        acceptance, jump, num = (np.array(column) for column in zip(*self.moves, strict=True))
        energy = self._later()[ENERGY]
        return TrialRun(
            found,
            self.steps,
            self.seconds_per_step,
            float(acceptance @ num / num.sum()),
            float(jump @ num / num.sum()),
            self.trials.settings.num_chains,
            np.concatenate([chains.codes() for chains in self.teams]).astype(np.int32),  # as starts are: one program begins at both
            energy.shape[1] < 4 or np.ptp(energy) == 0 or float(split_rhat(energy)) <= AGREED,
            self._told(),
        )

    def _told(self) -> Any:
        """What a ladder counted of its swaps, all chains together; None of other kernels."""
        swaps = getattr(self.kernel, "swaps", None)
        if swaps is None:
            return None
        parts = [carry.states for chains in self.teams for carry in chains.carries]
        return swaps(_Counts(*(np.concatenate([np.asarray(getattr(p, n)) for p in parts]) for n in ("time", "trips", "refused"))))


@dataclass(frozen=True)
class _Counts:
    """Of the states of a ladder: what `swaps` reads."""

    time: np.ndarray
    trips: np.ndarray
    refused: np.ndarray


def _rows(chains: Chains, num: int) -> dict[str, np.ndarray]:
    names = ("lp", "s", "acceptance_rate", "jump")
    return chains.rows_of([{name: own[name] for name in names} for own in chains.block], 0, num)
