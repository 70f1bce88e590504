"""One kernel on one target, while it is compared: its chains, how long their steps take, and what they are worth."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..diagnostics.worth import ENERGY, Worth, reference_chains, series, worth
from ..engine.arguments import block_rows, read_settings
from ..engine.chains import Chains
from ..engine.keys import DRAWS, WARMUP
from ..kernels import Kernel
from ..target import Target

_WEIGHT = "log weight"
_FEWEST_STEPS, _MOST_STEPS = 64, 2**15  # of a repetition


class Competitor:
    """Chains that go on from repetition to repetition. Only steps are timed: neither compiling nor reading what they left."""

    def __init__(self, name: str, target: Target, kernel: Kernel, num_chains: int, seed: int, codes: np.ndarray | None):
        self.name, self.target, self.kernel = name, target, kernel
        asked = dict(num_draws=1, num_warmup=1, num_chains=num_chains, seed=seed, thin=1, keep="draws", keep_warmup=False)
        settings, recording = read_settings(target.space, **asked)
        self.rows = block_rows(recording, target, settings)
        self.chains = Chains(settings, recording, kernel, target, self.rows)
        self.chains.start(codes)
        self.chains.step(DRAWS, 0, 0, start=0)  # compiles
        self.chains.wait()
        self.evaluations, self.steps, self.done = kernel.evaluations(target), 0, 0
        self.seconds: list[float] = []  # per step, of every repetition
        self.repetitions: list[dict[str, np.ndarray]] = []  # {statistic: (chains, steps)}
        self.acceptance: list[float] = []

    def warm_up(self, num_warmup: int, most_seconds: float) -> float:
        """So many steps, or as many as there are seconds for; returns the seconds of a step."""
        made, spent, chunk = 0, 0.0, 1
        while made < num_warmup and spent < most_seconds:
            chunk = min(chunk, num_warmup - made, self.rows)
            per_step = self._timed(WARMUP, made, chunk)
            made, spent = made + chunk, spent + per_step * chunk
            chunk = max(min(2 * chunk, int((most_seconds - spent) / per_step)), 1)
        return per_step

    def plan(self, seconds: float, per_step: float, num_steps: int | None) -> None:
        """How many steps a repetition has: those asked for, or those that take so many seconds."""
        self.steps = num_steps or int(np.clip(seconds / per_step, _FEWEST_STEPS, _MOST_STEPS))

    def repeat(self, references: np.ndarray) -> None:
        """Once more. references: codes of `reference_chains`, the same for all that are compared."""
        found: dict[str, list[np.ndarray]] = {}
        seconds, left = 0.0, self.steps
        while left:
            chunk = min(left, self.rows)
            seconds += chunk * self._timed(DRAWS, self.done, chunk)
            block = self.chains.rows_of(self.chains.block, 0, chunk)
            for name, x in series(self.target.space, block["s"], block["lp"], references).items():
                found.setdefault(name, []).append(x)
            if "log_weight" in block:
                found.setdefault(_WEIGHT, []).append(block["log_weight"].T.astype(np.float64))
            self.acceptance.append(float(block["acceptance_rate"].mean()))
            self.done, left = self.done + chunk, left - chunk
        self.seconds.append(seconds / self.steps)
        self.repetitions.append({name: np.concatenate(parts, axis=1) for name, parts in found.items()})

    def references(self) -> np.ndarray:
        """States to measure distances from."""
        return self.chains.codes()[reference_chains(self.chains.num)]

    def worths(self) -> list[Worth]:
        """What the steps of every repetition were worth."""
        return [worth(_unweighted(each)) for each in self.repetitions]

    def whole(self) -> dict[str, np.ndarray]:
        """{statistic: (chains, steps)} of all repetitions, as `worth` can judge them."""
        return _unweighted(self._together())

    def means(self) -> dict[str, np.ndarray]:
        """{statistic: (chains,) means}, for each chain by its own weights."""
        whole = self._together()
        weights = whole.pop(_WEIGHT, None)
        return {name: _averaged(x, _fitting(weights, name)) for name, x in whole.items()}

    def _together(self) -> dict[str, np.ndarray]:
        return {name: np.concatenate([each[name] for each in self.repetitions], axis=1) for name in self.repetitions[0]}

    def _timed(self, phase: int, first: int, num: int) -> float:
        """Seconds a step."""
        began = time.perf_counter()
        self.chains.step(phase, first, num, start=first)
        self.chains.wait()
        return max(time.perf_counter() - began, 1e-9) / num


def _unweighted(statistics: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Statistics of weighted chains as the values whose plain mean has the variance of the weighted one: w (h - mean)."""
    weights = statistics.get(_WEIGHT)
    if weights is None:
        return statistics
    found = {}
    for name, x in statistics.items():
        if name != _WEIGHT:
            w = np.exp(_fitting(weights, name) - weights.max())
            found[name] = w * (x - (w * x).sum() / w.sum())
    return found


def _averaged(x: np.ndarray, log_weights: np.ndarray | None) -> np.ndarray:
    if log_weights is None:
        return x.mean(axis=1)
    w = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return (w * x).sum(axis=1) / w.sum(axis=1)


def _fitting(log_weights: np.ndarray | None, statistic: str) -> Any:
    """Those of the chains that have this statistic: a distance from a chain's own state is left out of it."""
    if log_weights is None or statistic == ENERGY:
        return log_weights
    return np.delete(log_weights, int(statistic.rsplit(" ", 1)[1]), axis=0)
