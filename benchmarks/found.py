"""What finding structure costs and brings: `python -m benchmarks.found`.

Times of building a target (CPU seconds of the second of two like it, so that what is compiled once a process is left out),
a Gibbs sweep of a dense spin glass against a step of NCG on it, and coloured sweeps of a plain function against targets.ising.
Ratios are of one run, the two sides in turn.
"""

from __future__ import annotations

import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

import saltus

from .internals import find


def plain_lattice(side: int):
    """f(s) by rolls: a new function each time, so that it is read and compiled anew."""

    def log_prob(s):
        x = s.reshape(side, side)
        return 0.4 * jnp.sum(x * (jnp.roll(x, 1, 0) + jnp.roll(x, 1, 1)))

    return log_prob


def plain_matrix(matrix: np.ndarray):
    return lambda s: 0.5 * s @ matrix @ s


def lattice_matrix(side: int, coupling: float) -> np.ndarray:
    index = np.arange(side * side).reshape(side, side)
    matrix = np.zeros((side * side, side * side), np.float32)
    for axis in (0, 1):
        matrix[index.ravel(), np.roll(index, 1, axis).ravel()] = coupling
    return matrix + matrix.T


def building(make, space) -> tuple[float, float]:
    """CPU seconds of (building with structure found, of that the reading)."""
    for _ in range(2):
        f, start = make(), time.process_time()
        jax.block_until_ready(jax.tree.leaves(saltus.Target(f, space)))
        whole = time.process_time() - start
    jaxpr, start = jax.make_jaxpr(f)(space.abstract()), time.process_time()
    find(f, space, None, jaxpr)
    return whole, time.process_time() - start


def in_turn(*sides, **asked) -> list[float]:
    """Microseconds a step of (target, kernel), medians of rounds taken in turn."""
    return [statistics.median(found) for found in in_rounds(*sides, **asked)]


def in_rounds(*sides, num_chains: int = 100, num_steps: int = 100, rounds: int = 7) -> list[list[float]]:
    """The same, round by round."""
    loops = [_loop(target, kernel, num_chains, num_steps) for target, kernel in sides]
    times: list[list[float]] = [[] for _ in sides]
    for number in range(rounds + 1):
        for loop, found in zip(loops, times, strict=True):
            start = time.perf_counter()
            loop(jax.random.key(number))
            found.append((time.perf_counter() - start) / num_steps * 1e6)
    return [found[1:] for found in times]


def _loop(target, kernel, num_chains, num_steps):
    x = jax.vmap(lambda c: kernel.init(target, c))(jnp.zeros((num_chains, target.space.num_sites), jnp.int8))

    @jax.jit
    def run(target, x, key):
        def step(x, key):
            keys = jax.random.split(key, num_chains)
            return jax.vmap(lambda k, x: kernel.step(k, target, x)[0])(keys, x), None

        return jax.lax.scan(step, x, jax.random.split(key, num_steps))[0]

    return lambda key: jax.block_until_ready(run(target, x, key))


def main() -> None:
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(1000, 1000)).astype(np.float32)
    for name, make, sites in (
        ("lattice of 32 x 32 by rolls", lambda: plain_lattice(32), 32 * 32),
        ("dense matrix of 1000 sites", lambda: plain_matrix(dense), 1000),
        ("lattice of 316 x 316 by rolls", lambda: plain_lattice(316), 316 * 316),
    ):
        whole, reading = building(make, saltus.Spin(sites))
        print(f"{name}: reading {reading:.3f} s, with b, H and the test at random states {whole:.3f} s (CPU)", flush=True)
    glass = rng.normal(size=(200, 200)).astype(np.float32) / 14
    target = saltus.Target(plain_matrix((glass + glass.T) / 2), saltus.Spin(200))
    ncg, sweep = in_turn((target, saltus.NCG(0.5)), (target, saltus.Gibbs("systematic")))
    print(f"dense glass of 200 sites, 100 chains: sweep {sweep:.0f} us / NCG step {ncg:.0f} us = {sweep / ncg:.2f}", flush=True)
    plain = saltus.Target(plain_matrix(lattice_matrix(10, 0.4)), saltus.Spin(100))
    sides = ((saltus.targets.ising((10, 10), 0.4), saltus.Gibbs("coloured")), (plain, saltus.Gibbs("coloured")))
    ours, theirs = in_turn(*sides)
    print(f"10 x 10, 100 chains: sweeps a second of the plain function / targets.ising = {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
