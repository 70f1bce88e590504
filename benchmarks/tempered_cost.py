"""What a step of Tempered costs beside as many steps of its kernel: python -m benchmarks.tempered_cost [repeats].

Tempered with M rungs above β = 0 on 8 chains, against the kernel on 8 M chains, in turn, in one process; the median ratio of
the repeats with its quartiles. The goal is at most 1.3 for M + 1 rungs, the drawn rung and all swaps included.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import saltus

CHAINS, STEPS = 8, 100


def stepper(kernel: Any, target: Any, num_chains: int) -> Any:
    """A function that makes STEPS steps of so many chains and waits for them."""
    keys = jax.random.split(jax.random.key(0), num_chains)
    codes = jax.vmap(lambda key: target.space.random(key).astype(target.space.code_dtype))(keys)
    states = jax.jit(jax.vmap(lambda c, key: kernel.init(target, c, key)))(codes, keys)

    @jax.jit
    def walk(states: Any) -> Any:
        def step(t: Any, states: Any) -> Any:
            own = jax.vmap(lambda key: jax.random.fold_in(key, t))(keys)
            return jax.vmap(lambda key, x: kernel.step(key, target, x)[0])(own, states)

        return jax.lax.fori_loop(0, STEPS, step, states)

    return lambda: jax.block_until_ready(walk(states))


def ratio(kernel: Any, target: Any, rungs: int, repeats: int) -> np.ndarray:
    ladder = jnp.linspace(0, 1, rungs + 1)
    ladders, plain = stepper(saltus.Tempered(kernel, ladder), target, CHAINS), stepper(kernel, target, CHAINS * (rungs + 1))
    found = []
    for turn in range(repeats + 1):
        times = []
        for walk in (ladders, plain):
            began = time.perf_counter()
            walk()
            times.append(time.perf_counter() - began)
        found += [times[0] / times[1]] if turn else []  # the first turn compiles
    return np.quantile(found, (0.25, 0.5, 0.75))


def main(repeats: int = 15) -> None:
    cases = {
        "Ising 32 x 32, coloured Gibbs": (saltus.Gibbs("coloured"), saltus.targets.ising((32, 32), 0.4)),
        "Ising 32 x 32, NCG": (saltus.NCG(2.0), saltus.targets.ising((32, 32), 0.4)),
        "glass 6^3, coloured Gibbs": (saltus.Gibbs("coloured"), saltus.targets.edwards_anderson((6, 6, 6))),
    }
    for name, (kernel, target) in cases.items():
        low, middle, high = ratio(kernel, target, 12, repeats)
        print(f"{name}, 13 rungs: a Tempered step / 13 steps {middle:.2f} ({low:.2f} to {high:.2f})", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
