"""check_kernel: every instrument of exactness that a kernel allows."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from .._record import as_size
from ..engine.arguments import read_flag, read_seed
from ..errors import CheckError
from ..spaces import Space
from ..target import Target
from . import enumeration, running
from .battery import trials
from .enumeration import Enumeration, widen
from .exact import Proof, prove
from .info import check_info
from .laws import check_noise, check_proposal
from .observed import check_coherence, check_connected, check_inside, check_motion, check_transition, check_types
from .power import DISTANCE, chains_needed, hidden, of_averages
from .protocol import protocol
from .report import OBSERVED, Finding, Report
from .running import AT_ONCE, Walk, as_a_run_compiles, joined, walk
from .stationary_start import MOST_CELLS, causes, check_stationary, with_rounding
from .targets import rugged

CHAINS = 2**16
MANY = tuple(range(10, 301, 10))  # steps
LATE = tuple(range(300, 1201, 5))  # for kernels that are known by their steps alone: small errors have added up


def check_kernel(
    kernel: Any, target_or_space: Target | Space, *, seed: int = 0, num_chains: int | None = CHAINS, battery: bool = True
) -> Report:
    """Certify a kernel on a small target; on a space alone, on a rugged target made for it.

    Needs `kernel.step(key, target, x)` (without `init`, Points come from saltus.evaluate). Where a kernel offers more,
    more is run. What enumeration shows is proved, in float64:

        propose + log_definition        definition: the proposal is its equation, normalised by enumeration
        propose + log_ratio             invariance: p K = p and detailed balance; connected; period
        noise + condition               the same at fixed auxiliary z against p(s | z)

    What running chains show is not refuted. They run as in `saltus.sample`, in your own precision and on the space's small codes:

        step                            codes: what comes out has the types that went in
        propose                         proposal: sample() draws what log_prob says
        noise + condition               noise: its law is the one that the ratio assumes
        step                            coherence: what is cached equals what is recomputed, also in float64
        step                            stationary start: exact draws stay exact after 1, 3 and up to 300 steps
        step + propose + log_ratio      transition: steps go where the matrix says
        step                            info: what a step says of itself is so

    A kernel that is known by its `step` alone has only these. It then runs as many chains as see every law 0.5 % away in total
    variation with probability 0.99: independent draws after 1 and 3 steps (1.5 million for 125 states), and after 300 steps
    and more time averages of fewer chains, which see as much (`saltus.testing.power.of_averages`) unless the kernel is so slow
    that 65536 chains do not. The report's last line says what could still be hidden.

    seed: of the chains. num_chains: how many; by default 65536, or what a kernel that is known by its `step` alone needs.
    battery: repeat it on small targets with two, three, 64 and 100 values, five sites, a large constant in f, impossible
    states with NaN gradients; False leaves that out.

    Returns a Report; raises CheckError with the report where an instrument fails. Works with x64 on or off.

    kernel: an instance, such as saltus.NCG(0.5). target_or_space: a small target, or a space such as saltus.Binary(3).
    """
    target = rugged(target_or_space) if isinstance(target_or_space, Space) else target_or_space
    if not isinstance(target, Target) or isinstance(kernel, type) or not hasattr(kernel, "step"):
        raise CheckError(
            "Nothing to check.", expected="a kernel instance and a saltus.Target or space", found=f"{kernel!r} and {target!r}"
        )
    if num_chains is not None:
        num_chains = as_size(num_chains, "num_chains", CheckError)
    battery, seed = read_flag(battery, "battery"), read_seed(seed)
    forget_programs()
    check = _Check(protocol(kernel), num_chains, seed)
    findings, notes = check.on(target, thorough=True)
    subject = f"check_kernel: {kernel!r} on {target.space}"
    Report(subject, tuple(findings), tuple(notes)).raise_if_failed()
    if battery:
        findings += check.battery()
    return Report(subject, tuple(findings), tuple(notes)).raise_if_failed()


def forget_programs() -> None:
    """What was compiled for other checks: methods of a kernel may have been changed since."""
    enumeration.forget()
    running.forget()


class _Check:
    """One call: the kernel, and how many chains it runs."""

    def __init__(self, kernel: Any, num_chains: int | None, seed: int):
        self.kernel, self.key = kernel, jax.random.key(seed)
        self.num_chains = None if num_chains == CHAINS else num_chains

    def battery(self) -> list[Finding]:
        """One finding for each target of the battery, and what failed on it."""
        found = []
        for trial in trials(self.kernel):
            if trial.kernel is None:
                found.append(Finding("battery", "not run", f"{trial.name}: {trial.whose}", how=OBSERVED))
                continue
            findings, _ = self.on(trial.target, False, protocol(trial.kernel), trial.optimised)
            failed = [f.on(trial.name) for f in findings if f.failed]
            text = f"{trial.name}, {trial.whose}: {'passed' if not failed else 'FAILED'}"
            found += [Finding("battery", "FAILED" if failed else "passed", text, _FOR_OTHERS, OBSERVED), *failed]
        return found

    def on(self, target: Target, thorough: bool, kernel: Any = None, optimised: bool = True) -> tuple[list[Finding], list[str]]:
        """(findings, notes) on one target; thorough: also over long walks and in float64; optimised: steps compiled as in a run."""
        kernel = self.kernel if kernel is None else kernel
        with jax.enable_x64(True):
            every = Enumeration(kernel, target)
            p = every.stationary()
            proof = prove(every, p, self.key)
        with as_a_run_compiles():
            findings, notes = self._observe(kernel, target, every, p, proof, thorough, optimised)
        return [*proof.findings, *findings], notes

    def _observe(
        self, kernel: Any, target: Target, every: Enumeration, p: np.ndarray, proof: Proof, thorough: bool, optimised: bool
    ) -> tuple[list[Finding], list[str]]:
        types = check_types(kernel, target)
        if types.failed:
            return [types], []
        states = np.asarray(every.codes)
        short, long, stops = self._walks(kernel, target, states, p, proof, thorough, optimised)
        walks = [short, long]
        types = check_inside(walks, types)
        laws = [check_noise(kernel, target, every, self.key)] if thorough or every.continuous else []
        laws += [check_proposal(kernel, target, every, p, proof, self.key)] if thorough or every.continuous else []
        if types.failed:
            return [types, *laws], []
        refuted = any(f.failed for f in proof.findings)  # then nothing is repeated in float64
        coherence = check_coherence(walks, self._wide(kernel, target, states, p) if thorough and not refuted else None)
        meaning = causes(kernel, target, proof, not coherence.failed)
        stationary, unseen = check_stationary(p, short, long, stops, meaning)
        if not refuted and not coherence.failed:
            stationary = with_rounding(stationary, kernel, target, states, p, walks, self.key, stops)
        connected = check_connected(proof, p, walks)
        findings = [types, *laws, coherence, *stationary, check_transition(proof, short)]
        findings += [*([connected] if connected else []), check_motion(states, p, walks)]
        return [*findings, check_info(kernel, target, states, short, proof)], [
            _note(proof, min(unseen, hidden(len(p), short.chains)) if proof.complete else unseen)
        ]

    def _walks(
        self, kernel: Any, target: Target, states: np.ndarray, p: np.ndarray, proof: Proof, thorough: bool, optimised: bool
    ) -> tuple[Walk, Walk, tuple[int, ...]]:
        """A short walk of many chains, and a long one of fewer."""
        rng = np.random.default_rng(np.asarray(jax.random.key_data(self.key)).tolist())
        keys = jax.random.split(jax.random.fold_in(self.key, 1), 3)

        def go(num: int, key: jax.Array, stops: tuple[int, ...]) -> Walk:
            return walk(kernel, target, states[rng.choice(len(p), size=num, p=p)], key, stops, optimised)

        alone = thorough and not proof.complete
        stops = (LATE if alone else MANY) if thorough else (30,)
        many, few = self._sizes(int((p > 0).sum()), proof, thorough)
        short, long = go(many, keys[0], (1, 3)), go(few, keys[1], stops)
        if alone and self.num_chains is None and len(p) <= MOST_CELLS and long.states.min() >= 0:
            short_of = (of_averages(long.states.T, p)[1] / DISTANCE) ** 2 * 1.02  # more chains by this factor see enough
            more = min(math.ceil(few * short_of / AT_ONCE) * AT_ONCE, CHAINS) - few
            long = joined([long, go(more, keys[2], stops)]) if more > 0 else long
        return short, long, stops

    def _sizes(self, num_states: int, proof: Proof, thorough: bool) -> tuple[int, int]:
        """Chains of the short and of the long walk, in whole blocks."""
        if self.num_chains is not None:
            return self.num_chains, self.num_chains
        if proof.complete or not thorough:
            return CHAINS if thorough or not proof.complete else AT_ONCE, AT_ONCE
        return math.ceil(chains_needed(num_states, DISTANCE) / AT_ONCE) * AT_ONCE, 2 * AT_ONCE

    def _wide(self, kernel: Any, target: Target, states: np.ndarray, p: np.ndarray) -> Walk | None:
        """A few chains in float64, for a drift that float32 would hide."""
        start = np.random.default_rng(2).choice(len(p), size=256, p=p)
        with jax.enable_x64(True):
            wide = widen(kernel), widen(target)
            try:
                failed = check_types(*wide).failed
            except (TypeError, ValueError):
                return None
            return None if failed else walk(*wide, states[start], self.key, (1, 3, 300), optimised=False)


_FOR_OTHERS = "an error that the target you gave does not show; for a kernel that is made for it alone: battery=False"


def _note(proof: Proof, unseen: float) -> str:
    if proof.complete:
        return f"could still be hidden: an error of `step` alone, less than {100 * unseen:.2g} % in total variation"
    return f"could still be hidden: a law less than {100 * unseen:.2g} % away in total variation (nothing was proved)"
