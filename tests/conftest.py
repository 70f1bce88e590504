import contextlib
import os
import signal
from pathlib import Path

import jax
import pytest

# What runs in the background ignores Ctrl-C, and so would every process under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def slow_tests():
    """{test: the parameters that `make test` runs all the same} of tests/slow.txt."""
    lines = (Path(__file__).parent / "slow.txt").read_text().splitlines()
    told = [line.partition(" keeps ") for line in lines if line and not line.startswith("#")]
    return {name: set(filter(None, kept.split(" | "))) for name, _, kept in told}


@pytest.hookimpl(tryfirst=True)  # before marks are looked at
def pytest_collection_modifyitems(items):
    slow = slow_tests()
    for item in items:
        name, _, parameters = item.nodeid.partition("[")
        if name in slow and parameters.removesuffix("]") not in slow[name]:
            item.add_marker(pytest.mark.full)


@pytest.fixture(autouse=True, scope="session")
def programs_on_disk(tmp_path_factory, worker_id):
    """What one test has compiled, no other need compile: also not in another worker, or in a process that a test starts."""
    run = tmp_path_factory.getbasetemp()
    settings = {
        "jax_compilation_cache_dir": str((run if worker_id == "master" else run.parent) / "programs"),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # XLA prints what it thinks of programs from a cache
    for name, value in settings.items():
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)


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


# Folders whose tests are of speed, of rounding, of long runs, or of bits that another version wrote: compiled as users do.
OPTIMISED = {"benchmarks", "contract", "numerics", "statistical"}


@pytest.fixture(autouse=True, scope="module")
def quick_compilation(request):
    """`make test` compiles the others without optimising, also in processes they start; `make test-full` runs all as users do."""
    quick = not OPTIMISED & set(request.path.parts) and os.environ.get("SALTUS_QUICK_COMPILATION") == "1"
    jax.config.update("jax_disable_most_optimizations", quick)
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = str(int(quick))
    yield
    jax.config.update("jax_disable_most_optimizations", False)
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "0"
