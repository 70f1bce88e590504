"""The same call gives the same draws: in a fresh process, on a busy machine, with the sampler and the thinning chosen by saltus."""

import os
import subprocess
import sys

import pytest

CALL = """
import hashlib
import jax.numpy as jnp, numpy as np, saltus
rng = np.random.default_rng(0)
J = jnp.asarray(np.triu(rng.normal(size=(12, 12)), 1) * 0.4)
run = saltus.sample(saltus.Target(lambda s: s @ J @ s + jnp.tanh(s.sum()), saltus.Spin(12)), seed=3, progress=False)
print(run.attrs["sampler"], run.attrs["thin"], hashlib.sha256(run.posterior.s.values.tobytes()).hexdigest())
"""
BUSY = "while True: sum(range(10**6))"


def drawn():
    return subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, check=True).stdout


def test_a_fresh_process_beside_busy_neighbours_draws_the_same():
    first = drawn()
    neighbours = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1)]
    try:
        assert drawn() == first
    finally:
        for each in neighbours:
            each.kill()
            each.wait()


@pytest.mark.parametrize("factor", [0.01, 30.0])
def test_no_choice_asks_a_clock(monkeypatch, factor):
    """With clocks that run far too fast or too slow, sampler, settings, thinning and draws stay what they are."""
    import time

    import numpy as np

    import saltus

    target = saltus.testing.rugged(saltus.Binary(6))
    settings = dict(sampler=["ncg", "gibbs"], num_draws=100, num_warmup=150, seed=0, progress=False)
    first = saltus.sample(target, **settings)
    for name in ("perf_counter", "monotonic"):
        real = getattr(time, name)
        monkeypatch.setattr(time, name, lambda real=real: factor * real())
    again = saltus.sample(target, **settings)
    assert again.attrs["sampler"] == first.attrs["sampler"]
    assert again.attrs["thin"] == first.attrs["thin"]
    assert np.array_equal(again.posterior.s, first.posterior.s)
    assert len(saltus.race_of(first).rows) > 1
    assert [row.ess_per_second for row in saltus.race_of(again).rows] == [row.ess_per_second for row in saltus.race_of(first).rows]
