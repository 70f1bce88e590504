import os

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def quick_processes(quick_compilation):
    """`make test` compiles here, and in every process that is started, without optimising: nothing in this folder is timed."""
    if os.environ.get("SALTUS_QUICK_COMPILATION") != "1":
        yield
        return
    jax.config.update("jax_disable_most_optimizations", True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
        yield
    jax.config.update("jax_disable_most_optimizations", False)
