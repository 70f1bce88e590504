"""Programs of targets that others came after are freed: they do not gather in memory."""

import gc
import subprocess
import sys
import weakref

import jax
import jax.numpy as jnp
import pytest

import saltus
from saltus import _compiling
from saltus._compiling import program

CALLS = """
import gc, warnings
import jax.numpy as jnp
import saltus

warnings.simplefilter("ignore")

def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6

for i in range(NUM):
    target = saltus.Target(lambda s, w=0.01 * i: w * jnp.sum(s[1:] * s[:-1]), saltus.Spin(5))
    saltus.sample(target, saltus.UniformMH(1), num_draws=5, num_warmup=5, num_chains=2, thin=1, progress=False)
    if i + 1 == FIRST:
        before = resident()
print(resident() - before)
"""


def test_a_program_forgets_functions_that_others_came_after():
    @program()
    def values(target, codes):
        return jax.vmap(target.value)(codes)

    codes, seen = jnp.zeros((2, 3), jnp.int32), []
    for i in range(_compiling._MOST_FUNCTIONS + 3):
        target = saltus.Target(lambda s, w=float(i): w + jnp.sum(s), saltus.Binary(3))
        assert values(target, codes).tolist() == [i, i]
        seen.append(weakref.ref(values._for((target.log_prob,))))
        del target
    gc.collect()
    assert [jitted() is not None for jitted in seen] == [False] * 3 + [True] * _compiling._MOST_FUNCTIONS


def test_the_same_function_is_compiled_once():
    @program()
    def values(target, codes):
        return jax.vmap(target.value)(codes)

    f = lambda w, s: w * jnp.sum(s)  # noqa: E731
    target, codes = saltus.Target(f, saltus.Binary(3), jnp.asarray(1.0)), jnp.ones((2, 3), jnp.int32)
    for w in (1.0, 2.0):
        assert values(target.replace(params=jnp.asarray(w)), codes).tolist() == [3 * w, 3 * w]
    values(saltus.Target(f, saltus.Binary(3), jnp.asarray(3.0)), codes)
    assert values._cache_size() == 1


@pytest.mark.full
def test_two_hundred_fresh_functions_leave_nothing_behind():
    """At most 20 MB after the first ten; it was 9 MB a call."""
    code = CALLS.replace("NUM", "200").replace("FIRST", "10")
    grown = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert grown < 20
