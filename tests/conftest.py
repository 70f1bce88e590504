import contextlib

import jax
import pytest


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
