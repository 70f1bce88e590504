"""The cost of a step, computed: loops count as often as they run, work grows with what there is to do, no clock is read."""

import time
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np

import saltus
from saltus.race.cost import SECONDS, seconds_of, step_seconds, work_of, work_of_step


def work(fun, *shapes):
    return work_of(jax.make_jaxpr(fun)(*(jnp.zeros(shape) for shape in shapes)).jaxpr)


def test_what_is_counted():
    assert work(jnp.exp, (5, 7)) == {"transcendental": 35}
    assert work(lambda x: x + 1, (6,)) == {"simple": 6}
    assert work(lambda a, b: a @ b, (3, 4), (4, 5))["product"] == 60
    assert work(jnp.sum, (12,))["sum"] == 12
    assert work(lambda x: x[jnp.array([2, 0])], (9,))["looked up"] == 2


def test_bodies_of_loops_count_as_often_as_they_run():
    once = work(lambda x: x * 2 + 1, (8,))["simple"]
    for loop in (
        lambda x: jax.lax.fori_loop(0, 30, lambda i, x: x * 2 + 1, x),
        lambda x: jax.lax.scan(lambda x, _: (x * 2 + 1, None), x, length=30)[0],
        lambda x: jax.jit(lambda x: jax.lax.fori_loop(0, 30, lambda i, x: jax.jit(lambda x: x * 2 + 1)(x), x))(x),
    ):
        found = work(loop, (8,))
        assert found["turn"] == 30
        assert 30 * once <= found["simple"] <= 30 * once + 60  # and its counter
    nested = work(lambda x: jax.lax.fori_loop(0, 4, lambda i, x: jax.lax.fori_loop(0, 5, lambda j, x: x * 2, x), x), (8,))
    assert nested["simple"] >= 160
    counted = work(lambda x: jax.lax.while_loop(lambda c: c[0] < 30, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1], (8,))
    assert counted["turn"] == 30


def test_of_two_branches_the_dearer_counts():
    found = work(lambda x: jax.lax.cond(x[0] > 0, jnp.exp, lambda x: x, x), (50,))
    assert found["transcendental"] == 50


def test_more_to_do_costs_more():
    small, large = saltus.targets.ising((4, 4), 0.3), saltus.targets.ising((32, 32), 0.3)
    for kernel in (saltus.NCG(0.5), saltus.Gibbs("coloured"), saltus.GWG()):
        assert step_seconds(kernel, small, 4) < step_seconds(kernel, large, 4)
        assert step_seconds(kernel, large, 4) < step_seconds(kernel, large, 64)
    plain = small.replace(structure=None, differences="gradient")
    assert step_seconds(saltus.Informed(saltus.NCG(0.5)), plain, 4) > step_seconds(saltus.NCG(0.5), plain, 4)


def test_clocks_do_not_matter(monkeypatch):
    target, kernel = saltus.targets.ising((6, 6), 0.3), saltus.NCG(0.5)
    before = work_of_step(kernel, target, 4)
    for name in ("perf_counter", "monotonic", "time", "process_time"):
        real = getattr(time, name)
        monkeypatch.setattr(time, name, lambda real=real: 1e6 * real())
    assert work_of_step(kernel, target, 4) == before
    assert seconds_of(before) == seconds_of(Counter(before))


def test_every_class_has_a_constant():
    assert all(seconds > 0 for seconds in SECONDS.values())
    target = saltus.testing.rugged(saltus.Ordinal(4, np.arange(3.0)))
    for kernel in (saltus.NCG(0.5), saltus.PAS(2), saltus.TGS(), saltus.UniformMH(1), saltus.Tempered(saltus.Gibbs(), [0, 0.5, 1])):
        assert set(work_of_step(kernel, target, 3)) <= set(SECONDS)
