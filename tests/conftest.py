import contextlib
import os
import signal

import jax
import pytest

# What runs in the background ignores Ctrl-C, and so would every process under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="module")
def fresh_caches():
    """Compiled programs of one file are no use to the next, and fill the memory."""
    yield
    jax.clear_caches()


@pytest.fixture(autouse=True)
def strict_promotion(request):
    """No silent mixing of dtypes in what is certified."""
    certified = {"exact", "numerics"} & set(request.path.parts)
    with jax.numpy_dtype_promotion("strict") if certified else contextlib.nullcontext():
        yield


@pytest.fixture(autouse=True, scope="module")
def quick_compilation(request):
    """`make test` compiles the enumerations of tests/exact without optimising; `make test-full` runs them as users do."""
    quick = "exact" in request.path.parts and os.environ.get("SALTUS_QUICK_COMPILATION") == "1"
    jax.config.update("jax_disable_most_optimizations", quick)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
