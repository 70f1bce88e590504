"""How the cost grows: with chains, sites, values and devices."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import saltus
from saltus import Kernel, Target

from .clock import ratio, seconds_per_step
from .lines import Line
from .loops import Loop, bare_loop, sampler_loop, start
from .references import rolled_ising
from .workloads import WORKLOADS, torus_edges

SIDES = (100, 316, 1000)  # 10^4, 10^5 and 10^6 spins
Problem = tuple[Kernel, Target]


def chains() -> list[Line]:
    """W1, NCG: time per chain and step with ten times the chains, over that with as many."""
    target, counts = WORKLOADS["W1"](), (1, 10, 100, 1000, 10_000)
    times = seconds_per_step({str(n): sampler_loop(saltus.NCG(2.0), target, n) for n in counts})
    per_chain = {n: times[str(n)] / n for n in counts}
    pairs = itertools.pairwise(counts)
    lines = [Line(f"{b} chains / {a} chains, per chain", ratio(per_chain[b], per_chain[a]), 1.15) for a, b in pairs]
    note = ", ".join(f"{1e6 * np.median(each):.2g}" for each in per_chain.values()) + " µs a chain"
    return [*lines[:-1], replace(lines[-1], note=note)]


def _grows(what: str, problem: Callable[[int], Problem], num_chains: int = 100, sizes: tuple[int, ...] = SIDES) -> list[Line]:
    """Time per site, the largest over the smallest of three sizes; memory per site, that of a size over that of the one before."""
    made = {size: problem(size) for size in sizes}
    loops = {str(size): sampler_loop(kernel, target, num_chains) for size, (kernel, target) in made.items()}
    times = seconds_per_step(loops, repeats=5)
    sites = {size: made[size][1].space.num_sites for size in sizes}
    per_site = np.stack([times[str(size)] / sites[size] for size in sizes])
    memory = np.array([loops[str(size)].bytes() / sites[size] for size in sizes])
    told = _listed(1e9 / num_chains * np.median(per_site, axis=1))
    note = f"the slowest of 10^4, 10^5, 10^6 sites / the fastest; {told} ns a site and chain"
    return [
        Line(f"{what}: time a site", ratio(per_site.max(0), per_site.min(0)), 1.5, note=note),
        Line(f"{what}: bytes a site", (float((memory[1:] / memory[:-1]).max()),), 1.5, note=f"{_listed(memory)} bytes a site"),
    ]


def _listed(values: np.ndarray) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def _ising(kernel: Kernel, side: int) -> Problem:
    return kernel, saltus.targets.ising((side, side), 0.4)


def _ising_graph(kernel: Kernel, side: int) -> Problem:
    return kernel, saltus.targets.ising(torus_edges(side), 0.4)


def _potts(kernel: Kernel, side: int) -> Problem:
    return kernel, saltus.targets.potts((side, side), 3, 0.5)


def _potts_graph(kernel: Kernel, side: int) -> Problem:
    return kernel, saltus.targets.potts(torus_edges(side), 3, 0.5)


def lattices() -> list[Line]:
    return [
        *_grows("lattice, NCG", partial(_ising, saltus.NCG(1.0))),
        *_grows("lattice, coloured Gibbs", partial(_ising, saltus.Gibbs("coloured"))),
        *_grows("lattice, BlockGibbs", partial(_ising, saltus.BlockGibbs())),
        *_grows("Potts lattice, NCG", partial(_potts, saltus.NCG(1.0))),
    ]


def graphs() -> list[Line]:
    """The same lattice given as a list of edges."""
    return [
        *_grows("graph, NCG", partial(_ising_graph, saltus.NCG(1.0))),
        *_grows("graph, coloured Gibbs", partial(_ising_graph, saltus.Gibbs("coloured"))),
        *_grows("graph, BlockGibbs", partial(_ising_graph, saltus.BlockGibbs())),
        *_grows("Potts graph, NCG", partial(_potts_graph, saltus.NCG(1.0))),
    ]


def _low_rank(side: int) -> Problem:
    rng, d = np.random.default_rng(0), side * side
    factor = jnp.asarray(rng.normal(size=(d, 32)) / np.sqrt(d), jnp.float32)
    return saltus.PAVG(1.0, saltus.LowRank(np.zeros(d), factor)), saltus.targets.ising((side, side), 0.4)


def low_rank() -> list[Line]:
    """PAVG with a preconditioner of rank 32, 16 chains; at 10^5 sites against the bare gradient."""
    kernel, target = _low_rank(316)
    times = seconds_per_step({"pavg": sampler_loop(kernel, target, 16), "bare": bare_loop(rolled_ising(316), 16)}, repeats=5)
    note = f"bare gradient {1e3 * np.median(times['bare']):.1f} ms"
    line = Line("PAVG, LowRank(32), d = 10^5: step / gradient", ratio(times["pavg"], times["bare"]), 10, note=note)
    return [line, *_grows("PAVG, LowRank(32)", _low_rank, num_chains=16)]


def values() -> list[Line]:
    """NCG on an ordinal space: time per step with n times the values, over that with 50, is at most n."""
    sizes = (50, 500, 5000)

    def loop(k: int) -> Loop:
        target = saltus.Target(lambda s: -jnp.sum(s**2) - 0.5 * jnp.sum(s[1:] * s[:-1]), saltus.Ordinal(20, np.linspace(-2, 2, k)))
        return sampler_loop(saltus.NCG(0.1), target, 20)

    times = seconds_per_step({str(k): loop(k) for k in sizes}, repeats=5)
    return [Line(f"ordinal, {k} values / 50 values", ratio(times[str(k)], times["50"]), k / 50) for k in sizes[1:]]


def differences() -> list[Line]:
    """All single-site changes of a regression with d columns: one evaluation for each, over the closed form."""
    lines = []
    for d in (10, 100, 1000):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(20, d))
        closed = saltus.targets.sparse_regression(X, X[:, 0] + rng.normal(size=20), differences="exact")
        brute = closed.replace(differences="exact")
        chains = 10 if d < 1000 else 1
        times = seconds_per_step({"closed": _table_loop(closed, chains), "brute": _table_loop(brute, chains)}, repeats=5)
        note = f"closed form {1e3 * np.median(times['closed']) / chains:.2g} ms a state"
        lines.append(Line(f"exact differences, d = {d}: brute / closed", ratio(times["brute"], times["closed"]), note=note))
    return lines


def _table_loop(target: Target, num_chains: int) -> Loop:
    """The whole local model at one state after the other."""

    def body(constants: tuple, t: jax.Array, codes: jax.Array) -> jax.Array:
        (target,) = constants
        scores = jax.vmap(lambda c: target.moves(target.point(c)).scores)(codes)
        return jnp.where(scores > jnp.median(scores), 1 - codes, codes)

    return Loop(body, start(target, num_chains), target)


_THROUGHPUT = """
import json, sys, jax, saltus
target = saltus.targets.conv_ebm()
asked = dict(num_chains=50, num_warmup=10, thin=1, keep="draws", progress=False)
times = []
for draws in (60,) * 5:
    run = saltus.sample(target, saltus.NCG(0.2), num_draws=draws, **asked)
    times.append(draws * 50 / run.attrs["sampling_time"])
print(json.dumps({"devices": jax.device_count(), "rates": times}))
"""


_TRAINING = """
import json, jax, numpy as np, optax, saltus
from saltus import training
data = np.random.default_rng(0).integers(2, size=(500, 256))
asked = dict(optimiser=optax.adam(1e-4), num_updates=12, num_steps=10, batch_size=50, buffer_size=500, progress=False)
model, times = training.models.conv_ebm(), []
for _ in range(5):
    found = training.pcd(model, data, saltus.NCG(0.2), **asked)
    times.append(found.num_updates / found.seconds)
print(json.dumps({"devices": jax.device_count(), "rates": times}))
"""


def devices() -> list[Line]:
    """W5, NCG, and the training of its network: speed of two devices on two cores, and of one on two, over one on one core."""
    asked = (("two devices on two cores / one on one, W5", _THROUGHPUT, 2), *_ASKED_OF_TRAINING)
    one = {code: np.array(_rates(code, 1, 1)) for code in (_THROUGHPUT, _TRAINING)}
    return [Line(words, ratio(np.array(_rates(code, num, 2)), one[code]), 1.6, False) for words, code, num in asked]


_ASKED_OF_TRAINING = (
    ("training: two devices on two cores / one on one", _TRAINING, 2),
    ("training: one device on two cores / on one", _TRAINING, 1),
)


def _rates(code: str, num_devices: int, num_cores: int) -> list[float]:
    flags = f"--xla_force_host_platform_device_count={num_devices}"
    flags += " --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    environment = {**os.environ, "XLA_FLAGS": flags, "OMP_NUM_THREADS": "1"}
    cores = sorted(os.sched_getaffinity(0))[:num_cores]
    code = f"import os; os.sched_setaffinity(0, {cores})\n{code}"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return json.loads(out.stdout)["rates"]
