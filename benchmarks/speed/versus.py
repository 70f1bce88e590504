"""Against other packages, where they are installed: `pip install 'saltus[bench]'`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import numpy as np

import saltus
from saltus import Target
from saltus.diagnostics import ess

from .clock import ratio, seconds_per_step
from .lines import Line
from .loops import sampler_loop
from .peers import Peer, numpyro_gibbs, pymc_gibbs_ising, pymc_gibbs_regression, thrml_ising, thrml_sweeps
from .workloads import WORKLOADS

_SWEEPS = 100  # a lap
_LATTICES = {"W1": ((10, 10), 0.2), "W2": ((30, 30), 0.4)}


def thrml() -> list[Line]:
    """Two-colour sweeps of 100 chains: thrml's time per sweep over ours."""
    lines = []
    for name, (shape, coupling) in _LATTICES.items():
        theirs = thrml_sweeps(shape, coupling, 100, _SWEEPS)
        mine = sampler_loop(saltus.Gibbs("coloured"), WORKLOADS[name](), 100)
        laps = {"theirs": _laps(theirs), "ours": _laps(partial(mine, _SWEEPS))}
        times = seconds_per_step(laps)
        note = f"{_SWEEPS / np.median(times['ours']):.0f} sweeps/s"
        lines.append(Line(f"a sweep of thrml / ours: {name}", ratio(times["theirs"], times["ours"]), 3, False, note))
    return lines


def _laps(run: Callable[[], None]) -> Callable[[int], None]:
    def loop(number: int) -> None:
        for _ in range(number):
            run()

    return loop


def effective(target: Target, states: np.ndarray, reference: np.ndarray) -> float:
    """Effective draws of all chains, the fewer of the energy's and of the distance's from a reference: (chains, draws, d) codes."""
    value = jax.jit(jax.vmap(target.value))
    energy = np.stack([np.asarray(value(chain.astype(np.int32))) for chain in states])
    distance = np.abs(states.astype(np.int32) - reference).sum(-1).astype(float)
    return min(float(np.sum(ess(statistic))) for statistic in (energy, distance))


def ours(target: Target, num_draws: int) -> Peer:
    """`sampler="auto"`, every step kept; the seconds of its sampling phase."""
    run = saltus.sample(target, num_chains=100, num_draws=num_draws, thin=1, seed=0, progress=False)
    states = np.asarray(run["posterior"]["s"])
    codes = (states > 0).astype(np.int8)
    return Peer(f"saltus, {saltus.kernel_of(run)!r}", codes, float(run.attrs["sampling_time"]))


def peers() -> list[Line]:
    """Effective draws per second of the sampling phase: ours over the best peer's."""
    ising, regression = WORKLOADS["W1"](), WORKLOADS["W4"]()
    coupling = _LATTICES["W1"][1]
    runs: dict[str, tuple[Target, int, dict[str, Callable[[], Peer]]]] = {
        "W1": (
            ising,
            2000,  # as many as thrml's
            {
                "thrml": lambda: thrml_ising((10, 10), coupling),
                "numpyro": lambda: numpyro_gibbs(ising.value, 100),
                "PyMC": pymc_gibbs_ising,
            },
        ),
        "W4": (regression, 5000, {"numpyro": lambda: numpyro_gibbs(regression.value, 100), "PyMC": pymc_gibbs_regression}),
    }
    lines = []
    for name, (target, num_draws, others) in runs.items():
        rates = {each: _rates(target, run) for each, run in others.items()}
        best = max(rates, key=lambda each: float(np.median(rates[each])))
        mine = _rates(target, partial(ours, target, num_draws))
        told = ", ".join(f"{each} {np.median(rate):.3g}" for each, rate in {**rates, "saltus": mine}.items())
        lines.append(Line(f"effective draws a second, auto / {best}: {name}", ratio(mine, rates[best]), 3, False, told))
    return lines


def _rates(target: Target, run: Callable[[], Peer], repeats: int = 5) -> np.ndarray:
    """Effective draws a second, of so many runs. The reference state is the same for all."""
    reference = np.arange(target.space.num_sites) % 2
    return np.array([effective(target, made.states, reference) / made.seconds for made in (run() for _ in range(repeats))])
