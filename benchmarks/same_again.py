"""The same call in fresh processes, half of them beside a busy neighbour: how many draw something else?

    python -m benchmarks.same_again             20 repetitions of each of four default calls
    python -m benchmarks.same_again 6 ising     6 of one

A line a target: the sampler and thinning that were chosen, and in how many repetitions draws differed from the first.
"""

import os
import subprocess
import sys

TARGETS = {
    "ising": "saltus.targets.ising((10, 10), 0.4)",
    "function": "saltus.Target(lambda s: jnp.tanh(s @ w) * 3 - 0.1 * (s.sum() - 20) ** 2, saltus.Binary(50))",
    "regression": "saltus.targets.sparse_regression()",
    "poly2": "saltus.targets.polynomial_mixture(2, 20)",
}
CALL = """
import hashlib, warnings
import jax.numpy as jnp, numpy as np, saltus
warnings.simplefilter("ignore")
w = jnp.asarray(np.random.default_rng(0).normal(size=50))
run = saltus.sample({target}, seed=0, progress=False)
told = hashlib.sha256(run.posterior.s.values.tobytes() + run.sample_stats.lp.values.tobytes()).hexdigest()[:16]
print(run.attrs["sampler"], "thin", run.attrs["thin"], told)
"""
BUSY = "while True: sum(range(10**6))"


def drawn(target, busy):
    neighbours = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range((os.cpu_count() or 1) if busy else 0)]
    try:
        command = [sys.executable, "-c", CALL.format(target=target)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    finally:
        for each in neighbours:
            each.kill()
            each.wait()


def main(repetitions, names):
    for name in names:
        told = [drawn(TARGETS[name], busy=bool(i % 2)) for i in range(repetitions)]
        others = sum(each != told[0] for each in told)
        print(f"{name:<12}{told[0]:<60}{others} of {repetitions} repetitions differ", flush=True)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main(numbers[0] if numbers else 20, [word for word in sys.argv[1:] if word in TARGETS] or list(TARGETS))
