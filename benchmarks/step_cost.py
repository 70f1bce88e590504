"""The cost of a step, computed against measured: rank correlation over twelve targets and all samplers.

    python -m benchmarks.step_cost              measure what is not in benchmarks/results/step_cost.json yet, and print
    python -m benchmarks.step_cost --table      print what was measured
    python -m benchmarks.step_cost --fit        the constants of saltus.race.cost that fit the measured times best

A measured time is the median over SHORT runs of a compiled loop, in seconds of the processor, so that neighbours count little.
"""

import json
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import nnls
from scipy.stats import spearmanr

import saltus

from .internals import SECONDS, begin, first_setting, samplers, seconds_of, step_chains, work_of_step
from .race import TARGETS as TEN

RESULTS = Path(__file__).parent / "results" / "step_cost.json"
SHORT, SLICE = 15, 0.01  # runs, and seconds of each
CHAINS = (4,)
PULL = 0.3


def dense_glass():
    """200 spins, all pairs coupled, as a plain function."""
    J = np.triu(np.random.default_rng(4).normal(size=(200, 200)), 1) * 0.5 / np.sqrt(200)
    return saltus.Target(lambda s: s @ jnp.asarray(J, s.dtype) @ s, saltus.Spin(200))


def network():
    """60 sites seen by a network of one hidden layer: a plain function without structure."""
    rng = np.random.default_rng(5)
    A, b = jnp.asarray(rng.normal(size=(60, 64)) / 8), jnp.asarray(rng.normal(size=64))
    return saltus.Target(lambda s: 3 * jnp.sum(jnp.tanh(s @ A.astype(s.dtype)) * b.astype(s.dtype)), saltus.Binary(60))


TARGETS = {**TEN, "dense glass": dense_glass, "network": network}


def measure(kernel, target, num_chains):
    """Seconds of one step of so many chains."""
    words = jax.random.split(jax.random.key(1), num_chains)

    @jax.jit
    def start(kernel, target, keys):
        codes = jax.vmap(lambda k: target.space.random(k).astype(target.space.code_dtype))(keys)
        return jax.vmap(lambda k, c: begin(kernel, target, c, k))(keys, codes)

    @jax.jit
    def walk(kernel, target, keys, states, first, stop):
        return jax.lax.fori_loop(first, stop, lambda t, x: step_chains(kernel, target, keys, t, x)[0], states)

    states, steps = start(kernel, target, words), 1
    states = jax.block_until_ready(walk(kernel, target, words, states, 0, steps))
    times, at = [], 0
    while len(times) < SHORT:
        began = time.process_time()
        states = jax.block_until_ready(walk(kernel, target, words, states, at, at + steps))
        took, at = time.process_time() - began, at + steps
        if took < SLICE and steps < 2**20:
            steps *= 2
            continue
        times.append(took / steps)
        if sum(times) * steps > 2:
            break
    return float(np.median(times))


def everything():
    """{"target / sampler / chains": {"seconds", "work"}} of all that applies; what was measured before is kept."""
    told = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, make in TARGETS.items():
        target = None
        for label, kind in samplers().items():
            for chains in CHAINS:
                key = f"{name} / {label} / {chains}"
                if key in told and "--again" not in sys.argv:
                    continue
                target = target or make()
                try:
                    kernel = first_setting(kind, target)
                    kernel.check_settings(target)
                    work = work_of_step(kernel, target, chains)
                except saltus.SaltusError:
                    continue
                told[key] = {"seconds": measure(kernel, target, chains), "work": dict(work)}
                print(f"{key:<50}{told[key]['seconds'] * 1e6:>10.1f} µs{seconds_of(work) * 1e6:>10.1f} computed", flush=True)
                RESULTS.write_text(json.dumps(told, indent=1))
    return told


def fit(told):
    """Constants with the least relative errors, each drawn a little towards the one it was."""
    names, rows = list(SECONDS), [row for key, row in told.items() if "/ pas /" not in key]  # its loop ends by what it computes
    n = np.array([[row["work"].get(name, 0.0) for name in names] for row in rows])
    y, before = np.array([row["seconds"] for row in rows]), np.array(list(SECONDS.values()))
    k = before
    for _ in range(30):  # weighted anew, so that too little counts like too much
        weight = 1 / np.sqrt(y * np.maximum(n @ k, 1e-9))
        given, asked = np.diag(PULL / before), np.full(len(names), PULL)
        k = nnls(np.vstack([n * weight[:, None], given]), np.concatenate([y * weight, asked]))[0]
    print("SECONDS = {" + ", ".join(f'"{name}": {x:.2g}' for name, x in zip(names, k, strict=True)) + "}")
    return dict(zip(names, k, strict=True))


def table(told, constants):
    computed = np.array([sum(constants[c] * n for c, n in row["work"].items()) for row in told.values()])
    measured = np.array([row["seconds"] for row in told.values()])
    for key, a, b in zip(told, measured, computed, strict=True):
        print(f"{key:<50}{a * 1e6:>12.1f} µs measured{b * 1e6:>12.1f} µs computed{b / a:>8.2f}")
    off = np.exp(np.abs(np.log(computed / measured)))
    print(f"{len(told)} pairs of target and sampler: rank correlation {spearmanr(measured, computed).statistic:.3f}")
    print(f"computed / measured: off by a factor {np.median(off):.2f} (median), {np.quantile(off, 0.9):.2f} (nine of ten)")
    within = [
        spearmanr(*np.array([(a, b) for k, a, b in zip(told, measured, computed, strict=True) if k.startswith(f"{t} /")]).T)
        for t in TARGETS
    ]
    print(f"within one target: rank correlation {np.median([w.statistic for w in within]):.2f} (median)")


if __name__ == "__main__":
    told = json.loads(RESULTS.read_text()) if "--table" in sys.argv else everything()
    table(told, fit(told) if "--fit" in sys.argv else SECONDS)
