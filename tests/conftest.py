import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def fresh_caches():
    """Compiled programs of one file are no use to the next, and fill the memory."""
    yield
    jax.clear_caches()
