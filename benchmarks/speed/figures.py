"""How long a step takes, beside the bare gradient, textbook code and plain linear algebra: one function per group of lines."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import saltus

from .clock import ratio, seconds_per_step
from .lines import Line
from .loops import bare_loop, sampler_loop
from .references import cholesky_regression, plain_network
from .textbook import textbook_ncg
from .workloads import STEP_SIZES, WORKLOADS, num_chains, samplers

_ROOT = Path(__file__).parents[2]  # where fresh processes find this package
STEP_GOALS = {"NCG": 3.0, "GWG": 3.5, "AVG": 4.5, "PAVG": 6.0}


def over_gradient(workload: str, goals: dict[str, float], repeats: int = 7) -> list[Line]:
    """Step time of each sampler over that of the bare value-and-gradient of the same log_prob."""
    target, chains = WORKLOADS[workload](), num_chains(workload)
    kernels = samplers(workload, target)
    loops: dict[str, Any] = {name: sampler_loop(kernels[name], target, chains) for name in goals}
    times = seconds_per_step({**loops, "bare": bare_loop(target, chains)}, repeats)
    lines = [Line(f"step / gradient: {name}, {workload}", ratio(times[name], times["bare"]), goal) for name, goal in goals.items()]
    return [*lines[:-1], replace(lines[-1], note=f"bare gradient {1e6 * np.median(times['bare']):.0f} µs")]


def steps() -> list[Line]:
    return over_gradient("W1 dense", STEP_GOALS)


def network() -> list[Line]:
    """W5: samplers over the gradient, and the gradient over that of plain convolutions."""
    lines = over_gradient("W5", dict.fromkeys(STEP_GOALS, 1.2))
    ours, plain = WORKLOADS["W5"](), plain_network()
    times = seconds_per_step({"ours": bare_loop(ours, 50), "plain": bare_loop(plain, 50)})
    note = f"ours {1e3 * np.median(times['ours']):.1f} ms"
    return [*lines, Line("network gradient: lax convolutions / ours", ratio(times["plain"], times["ours"]), 4, False, note)]


def textbook(goals: dict[str, float] | None = None, repeats: int = 7) -> list[Line]:
    """NCG as one would first write it, over ours, on the same log_prob."""
    lines = []
    for name, goal in (goals or {"W1": 3.0, "W3": 5.0, "W6": 3.0}).items():
        target, chains = WORKLOADS[name](), num_chains(name)
        loops = {
            "textbook": textbook_ncg(target, STEP_SIZES[name], chains),
            "ours": sampler_loop(samplers(name, target)["NCG"], target, chains),
        }
        times = seconds_per_step(loops, repeats)
        note = f"{1 / np.median(times['ours']):.0f} steps/s"
        lines.append(Line(f"textbook NCG / ours: {name}", ratio(times["textbook"], times["ours"]), goal, False, note))
    return lines


def regression() -> list[Line]:
    """W4: the posterior's gradient against Cholesky factors in float64; its accuracy; and no hang in fresh processes."""
    ours = WORKLOADS["W4"]()
    loops: dict[str, Any] = {"ours": bare_loop(ours, 100)}
    with jax.enable_x64(True):
        loops["float64"] = bare_loop(cholesky_regression(), 100)
    times = seconds_per_step({"ours": loops["ours"], "float64": _in_x64(loops["float64"])})
    note = f"ours {1e3 * np.median(times['ours']):.2f} ms"
    return [
        Line("regression: Cholesky in float64 / ours", ratio(times["float64"], times["ours"]), 2, False, note),
        Line("regression: error of f(s') - f(s) in float32", (regression_error(ours),), 1e-3),
        Line("regression: fresh processes that hang, of 20", (float(hanging(20)),), 0),
    ]


def _in_x64(loop: Any) -> Any:
    def call(number: int) -> None:
        with jax.enable_x64(True):
            loop(number)

    return call


def regression_error(ours: saltus.Target, states: int = 200) -> float:
    """Of f(s') - f(s) between neighbours in a list of random states, sparse and dense ones, against float64."""
    codes = np.random.default_rng(0).random((states, 100)) < np.random.default_rng(1).random((states, 1))
    single = np.asarray(jax.jit(jax.vmap(ours.value))(jnp.asarray(codes, jnp.int32)), np.float64)
    with jax.enable_x64(True):
        double = np.asarray(jax.vmap(cholesky_regression().value)(jnp.asarray(codes, jnp.int32)))
    return float(np.abs(np.diff(single) - np.diff(double)).max())


_POSTERIOR = """
import saltus
from benchmarks.speed.loops import bare_loop
bare_loop(saltus.targets.sparse_regression(), 100)(20)
"""


def hanging(processes: int, seconds: float = 60.0) -> int:
    """How many of so many fresh processes do not come back from the regression's batched gradient."""
    return sum(not _returns(seconds) for _ in range(processes))


def _returns(seconds: float) -> bool:
    try:
        subprocess.run([sys.executable, "-c", _POSTERIOR], check=True, timeout=seconds, cwd=_ROOT)
    except subprocess.TimeoutExpired:
        return False
    return True


_IMPORT = "import time; began = time.perf_counter(); import {}; print(time.perf_counter() - began)"


def imports(repeats: int = 7) -> list[Line]:
    """`import saltus` over `import jax`, in fresh processes, in turn."""

    def seconds(module: str) -> float:
        out = subprocess.run([sys.executable, "-c", _IMPORT.format(module)], check=True, capture_output=True, text=True)
        return float(out.stdout)

    seconds("saltus")  # files into memory
    values = tuple(seconds("saltus") / seconds("jax") for _ in range(repeats))
    return [Line("import saltus / import jax", values, 1.15)]


_COMPILE = """
import sys, jax, saltus
seconds = dict.fromkeys(("jaxpr_to_mlir_module", "backend_compile"), 0.0)
def listen(event, duration, **_):
    for part in seconds:
        seconds[part] += duration * (part + "_duration" in event)
from benchmarks.internals import advance
from benchmarks.speed.workloads import WORKLOADS, samplers
target = WORKLOADS[sys.argv[1]]()
kernel = {**samplers(sys.argv[1], target), "Gibbs": saltus.Gibbs(), "UniformMH": saltus.UniformMH(1)}[sys.argv[2]]
jax.monitoring.register_event_duration_secs_listener(listen)
run = saltus.sample(target, kernel, num_chains=100, num_draws=20, num_warmup=20, thin=1, progress=False)
print(run.attrs["compile_seconds"], advance._cache_size(), seconds["jaxpr_to_mlir_module"], seconds["backend_compile"])
"""


def compiling() -> list[Line]:
    """Seconds of compilation of a run, the slowest sampler of each workload, each in a fresh process."""
    lines = []
    for name in ("W1", "W2", "W3", "W4"):
        seconds, told, times = {}, {}, 0
        for kernel in (*STEP_GOALS, "Gibbs", "UniformMH"):
            out = subprocess.run(
                [sys.executable, "-c", _COMPILE, name, kernel], check=True, capture_output=True, text=True, cwd=_ROOT
            )
            seconds[kernel], compiled, lowering, xla = map(float, out.stdout.split())
            told[kernel] = f"{kernel}; in the whole run XLA took {xla:.1f} s and lowering {lowering:.1f} s"
            times = max(times, int(compiled))
        slowest = max(seconds, key=lambda kernel: seconds[kernel])
        lines += [
            Line(f"compilation, slowest sampler: seconds, {name}", (seconds[slowest],), 3, note=told[slowest]),
            Line(f"compilations of the steps of a run, {name}", (float(times),), 1),
        ]
    return lines
