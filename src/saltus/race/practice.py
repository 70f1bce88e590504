"""Tuning by the run's own compiled loop: one candidate after the other, and nothing else to compile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.arguments import Settings, block_rows
from ..engine.chains import Chains as Loop
from ..engine.keys import TUNING
from ..engine.loop import everywhere
from ..engine.recording import Recording
from ..kernels import Kernel
from ..target import Target
from ..tuning.trial import Chains, Outcome, with_values

MOST_CHAINS = 32  # beyond, all candidates at once, with fewer chains each, are faster


@dataclass
class Practice(Chains):
    """Tuning chains as many as the run has. frozen: what a kernel is in the race, on `given`, the target as it was given."""

    settings: Settings | None = None
    given: Target | None = None
    frozen: Callable[[Kernel], Kernel] = lambda kernel: kernel
    loop: Any = None

    def try_out(self, kernel: Kernel, target: Target, settings: dict[str, np.ndarray], steps: int) -> Any:
        assert self.settings is not None
        assert self.given is not None
        found, num = [], len(next(iter(settings.values())))
        for i in range(num):
            own = self.frozen(with_values(kernel, **{name: values[i] for name, values in settings.items()}))
            found.append(self._stepped(own, steps))
        self.steps += steps
        self.evaluations += num * len(self.codes) * steps * kernel.evaluations(target)
        columns: list[Any] = [np.stack(column) for column in zip(*found, strict=True)]
        return Outcome(*columns)

    def _stepped(self, kernel: Kernel, steps: int) -> tuple[Any, ...]:
        """(jump, acceptance) over the second half of the steps, and (f, codes) at the end."""
        loop = self._loop(kernel)
        loop.start(self.codes)
        told, done = [], 0
        while done < steps:
            some = min(steps - done, loop.rows)
            loop.step(TUNING, self.steps + done, some, start=self.steps + done)
            loop.wait()
            names = ("jump", "acceptance_rate", "lp")
            told.append(loop.rows_of([{name: own[name] for name in names} for own in loop.block], 0, some))
            done += some
        rows = {name: np.concatenate([own[name] for own in told]) for name in told[0]}
        jump, acceptance = (rows[name][(steps + 1) // 2 :].mean() for name in ("jump", "acceptance_rate"))
        return jump, acceptance, rows["lp"][-1], loop.codes()

    def _loop(self, kernel: Kernel) -> Any:
        """The same loop with this kernel, compiled once."""
        if self.loop is None:
            rows = block_rows(Recording(), self.given, self.settings)  # type: ignore[arg-type]
            self.loop = Loop(self.settings, Recording(), kernel, self.given, rows)  # type: ignore[arg-type]
        self.loop.kernel = everywhere(self.loop.mesh, kernel)
        return self.loop
