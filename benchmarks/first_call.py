"""The first call, from process start to result, against a lean hand-written script: NCG with one step size, 2000 steps.

    python -m benchmarks.first_call             five rounds of every target, in turn with the lean script
    python -m benchmarks.first_call 1 poly2     one round of one

Ratios of wall-clock and of processor time; the median over rounds. "again": the same call in the same process, seconds besides
sampling.
"""

import resource
import statistics
import subprocess
import sys
import time

LEAN = """
import jax, jax.numpy as jnp
n, eps = 100, 0.5
J = jnp.zeros((n, n)).at[jnp.arange(n - 1), jnp.arange(1, n)].set(0.4)
f = lambda s: s @ J @ s
def scores(s, g):
    return -g * s - 2.0 / eps
def step(s, key):
    a, b = jax.random.split(key)
    v, g = jax.value_and_grad(f)(s)
    p = jax.nn.sigmoid(scores(s, g))
    flip = jax.random.uniform(a, s.shape) < p
    t = jnp.where(flip, -s, s)
    w, h = jax.value_and_grad(f)(t)
    q = jax.nn.sigmoid(scores(t, h))
    forward = jnp.sum(jnp.log(jnp.where(flip, p, 1 - p)))
    back = jnp.sum(jnp.log(jnp.where(flip, q, 1 - q)))
    s = jnp.where(jnp.log(jax.random.uniform(b)) < w - v + back - forward, t, s)
    return s, s
@jax.jit
def run(key):
    start = jnp.sign(jax.random.normal(key, (4, n)))
    keys = jax.random.split(key, 2000)
    return jax.vmap(lambda s, k: jax.lax.scan(step, s, jax.vmap(lambda x: jax.random.fold_in(x, k))(keys))[1])(start, jnp.arange(4))
print(run(jax.random.key(0)).mean())
"""
OURS = """
import warnings
import jax.numpy as jnp, numpy as np, saltus, time
warnings.simplefilter("ignore")
w = jnp.asarray(np.random.default_rng(0).normal(size=50))
target = {target}
run = saltus.sample(target, seed=0, progress=False)
began = time.perf_counter()
again = saltus.sample(target, seed=1, progress=False)
sampling = again.attrs["sampling_seconds"] + again.attrs["warmup_seconds"]
"""
AGAIN = 'print(run.attrs["sampler"], "|", run.attrs["sampling_seconds"], "|", time.perf_counter() - began - sampling)'
TARGETS = {
    "ising": "saltus.targets.ising((10, 10), 0.4)",
    "function": "saltus.Target(lambda s: jnp.tanh(s @ w) * 3 - 0.1 * (s.sum() - 20) ** 2, saltus.Binary(50))",
    "regression": "saltus.targets.sparse_regression()",
    "poly2": "saltus.targets.polynomial_mixture(2, 20)",
}


def timed(code):
    """(seconds, seconds of the processor, what it printed) of a fresh process."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, told


def main(rounds, names):
    for name in names:
        ours = OURS.format(target=TARGETS[name])
        first = ours[: ours.index("began =")]
        pairs = [(timed(LEAN), timed(first)) for _ in range(rounds)]
        wall, cpu = (statistics.median(b[i] / a[i] for a, b in pairs) for i in (0, 1))
        sampler, sampling, again = timed(ours + AGAIN)[2].split("|")
        lean, own = (statistics.median(pair[i][0] for pair in pairs) for i in (0, 1))
        figures = (
            f"{own:>7.2f} s, lean {lean:.2f} s: ratio {wall:.2f} (processor {cpu:.2f}); again {float(again):.2f} s besides sampling"
        )
        print(f"{name:<12}{figures}   {sampler.strip()}, sampling {float(sampling):.2f} s", flush=True)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main(numbers[0] if numbers else 5, [word for word in sys.argv[1:] if word in TARGETS] or list(TARGETS))
