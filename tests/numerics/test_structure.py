"""Claims that do not fit their space are refused with what would."""

import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.spaces import Product


def test_a_quadratic_on_a_product_is_refused_in_words():
    space = Product(a=saltus.Binary(2), b=saltus.Spin(1))
    with pytest.raises(saltus.TargetError, match="does not know products") as caught:
        saltus.Target(lambda s: jnp.sum(s["a"]) + jnp.sum(s["b"]), space, structure=saltus.Quadratic(np.ones(3), np.zeros((3, 3))))
    assert "every sampler but BlockGibbs" in str(caught.value)
    assert "Product(a=Binary(2), b=Spin(1))" in str(caught.value)


def test_a_graph_on_a_product_counts_its_sites():
    space = Product(a=saltus.Binary(2), b=saltus.Spin(1))
    graph = saltus.Graph.from_edges([[0, 2]], 3)
    target = saltus.Target(lambda s: s["a"][0] * s["b"][0], space, structure=graph)
    assert target.find(saltus.Graph) is graph
