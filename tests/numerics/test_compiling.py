"""`program`: a jit that asks XLA:CPU for less effort where something runs once, and does without where it cannot."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saltus import _compiling
from saltus._compiling import program


@pytest.fixture
def fresh_options():
    _compiling._options.cache_clear()
    yield
    _compiling._options.cache_clear()


def halves():
    return program(static_argnums=0)(lambda n, x: x / 2**n)


def test_it_compiles_once_for_all_values():
    halved = halves()
    assert [float(halved(1, jnp.float32(x))) for x in (2, 6)] == [1, 3]
    assert halved.jitted._cache_size() == 1
    halved(2, jnp.float32(2))
    assert halved.jitted._cache_size() == 2


def test_within_another_jit_it_is_the_function_itself():
    halved = halves()
    assert float(jax.jit(lambda x: halved(1, x))(jnp.float32(6))) == 3
    np.testing.assert_array_equal(jax.vmap(lambda x: halved(1, x))(jnp.arange(2.0)), [0, 0.5])


def test_what_runs_once_gives_the_same():
    once = program(once=True)(lambda x: jnp.exp(x).sum())
    assert float(once(jnp.arange(4.0))) == pytest.approx(np.exp(np.arange(4)).sum())


def test_an_xla_without_the_option_is_not_asked_for_it(monkeypatch, fresh_options):
    monkeypatch.setattr(_compiling, "_IN_A_HURRY", {"xla_cpu_no_such_option": False})
    assert _compiling._options() is None
    assert float(program(once=True)(lambda x: x / 2)(jnp.float32(6))) == 3
