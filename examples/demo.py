"""A first look: sample a small model, compare with the exact answer, say what happened."""

import time

import jax
import jax.numpy as jnp
import numpy as np

import saltus

NUM_CHAINS, WARMUP, STEPS = 64, 500, 2000


def chain_means(kernel, target, key):
    """(chains, d) mean state of each chain, and the mean acceptance and jump."""

    def step(carry, key):
        x, total = carry
        x, info = jax.vmap(lambda k, x: kernel.step(k, target, x))(saltus.random.split(key, NUM_CHAINS), x)
        return (x, total + target.space.embed(x.codes)), (info.acceptance_rate.mean(), info.jump.mean())

    start_key, warmup_key, run_key = saltus.random.split(key, 3)
    codes = jax.vmap(target.space.random)(saltus.random.split(start_key, NUM_CHAINS))
    x = jax.vmap(lambda c: kernel.init(target, c))(codes)
    run = jax.jit(lambda carry, keys: jax.lax.scan(step, carry, keys))
    zero = jnp.zeros((NUM_CHAINS, target.space.num_sites))
    (x, _), _ = run((x, zero), saltus.random.split(warmup_key, WARMUP))
    (x, total), (acceptance, jump) = run((x, zero), saltus.random.split(run_key, STEPS))
    return np.asarray(total) / STEPS, float(acceptance.mean()), float(jump.mean())


def main():
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4), (4, 5), (5, 0)]
    weights = [0.9, -0.7, 0.8, 0.4, -0.6, 1.1, 0.5, -0.9]
    target = saltus.targets.ising(edges, weights, field=[0.3, -0.2, 0.1, 0.0, 0.4, -0.1])
    p = saltus.testing.stationary(target)
    exact = p @ np.asarray(target.space.embed(saltus.testing.enumerate_states(target)))

    print(f"saltus {saltus.__version__} on jax {jax.__version__}")
    print("An Ising model of 6 spins on a frustrated graph: 64 states, so the exact mean of every spin is known.")
    print(f"Each sampler: {NUM_CHAINS} chains, {WARMUP} steps of warm-up, {STEPS} steps kept; the seed is fixed.\n")
    print(f"{'sampler':<36}{'acceptance':>11}{'jump':>7}{'largest error':>15}{'in std errors':>15}{'seconds':>9}")
    for kernel in (saltus.NCG(3.0), saltus.AVG(3.0), saltus.GWG(), saltus.BlockGibbs(), saltus.Gibbs("coloured")):
        began = time.perf_counter()
        means, acceptance, jump = chain_means(kernel, target, jax.random.key(0))
        error = np.abs(means.mean(0) - exact)
        z = error / (means.std(0, ddof=1) / np.sqrt(NUM_CHAINS))
        seconds = time.perf_counter() - began
        print(f"{kernel!r:<36}{acceptance:>11.2f}{jump:>7.2f}{error.max():>15.4f}{z.max():>15.1f}{seconds:>9.1f}")
    print("\nErrors within about 3 standard errors are Monte-Carlo noise. (Seconds include compilation.)\n")

    print("Is the sampler exact? The checker enumerates its transition matrix and starts chains in exact stationarity:\n")
    print(saltus.testing.check_kernel(saltus.NCG(3.0), target))
    print("\nNext: README.md for your own log-probability; CONTRIBUTING.md to write a sampler and certify it.")


if __name__ == "__main__":
    main()
