import jax
import pytest


@pytest.fixture(autouse=True)
def strict_promotion():
    """No silent mixing of dtypes in what is certified."""
    with jax.numpy_dtype_promotion("strict"):
        yield
