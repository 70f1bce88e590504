"""A user's convolutions as matrix products: the same numbers and gradients, no convolution left, and it is said."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import saltus
from saltus._convolutions import by_matrix_products, convolves

RNG = np.random.default_rng(0)
CASES = {  # size of the patch, step, padding, dilation, pixels
    "padded": (3, 1, ((1, 1), (1, 1)), 1, 6),
    "steps of two": (4, 2, ((1, 1), (1, 1)), 1, 8),
    "steps of two that leave a pixel": (4, 2, ((0, 0), (1, 1)), 1, 7),
    "odd patches in steps of two": (3, 2, ((1, 1), (1, 1)), 1, 7),
    "dilated, padded on one side": (2, 1, ((0, 1), (2, 0)), 2, 5),
}


def network(layout, case):
    k, step, padding, dilation, pixels = CASES[case]
    first = layout == "NCHW"
    x = RNG.normal(size=(2, 3, pixels, pixels + 1) if first else (2, pixels, pixels + 1, 3)).astype(np.float32)
    w = RNG.normal(size=(4, 3, k, k) if first else (k, k, 3, 4)).astype(np.float32)
    numbers = (layout, "OIHW" if first else "HWIO", layout)

    @jax.jit
    def inner(w, x):
        return lax.conv_general_dilated(x, w, (step, step), padding, rhs_dilation=(dilation, dilation), dimension_numbers=numbers)

    return lambda w, x: jnp.sum(jax.nn.relu(inner(w, x)) ** 2), (w, x)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_values_and_gradients_are_those_of_the_convolution(layout, case):
    f, given = network(layout, case)
    ours = lambda *a: by_matrix_products(f, *a)  # noqa: E731
    assert convolves(jax.make_jaxpr(f)(*given).jaxpr)
    assert "conv_general" not in str(jax.make_jaxpr(ours)(*given))
    both = [jax.jit(jax.value_and_grad(each, argnums=(0, 1)))(*given) for each in (f, ours)]
    for a, b in zip(*map(jax.tree.leaves, both), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)


def test_what_cannot_be_rewritten_stays_as_it_is():
    x, w = np.ones((1, 4, 6, 6), np.float32), np.ones((4, 1, 3, 3), np.float32)
    depthwise = lambda x: jnp.sum(lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=4))  # noqa: E731
    assert not convolves(jax.make_jaxpr(depthwise)(x).jaxpr)


def test_a_target_says_what_it_does():
    w = RNG.normal(size=(2, 1, 3, 3)).astype(np.float32)
    image = lambda s: lax.conv_general_dilated(s.reshape(1, 1, 4, 4), w, (1, 1), "SAME")  # noqa: E731
    target = saltus.Target(lambda s: jnp.sum(jnp.tanh(image(s))), saltus.Spin(16))
    assert "convolutions are computed as matrix products" in str(target)
    assert "conv_general" not in str(jax.make_jaxpr(target.value)(np.zeros(16, np.int32)))
    s = jnp.asarray(RNG.integers(2, size=16) * 2.0 - 1)
    np.testing.assert_allclose(target.log_prob_of(s), target.log_prob(s), rtol=1e-5)
    assert "convolutions" not in str(saltus.Target(lambda s: jnp.sum(s), saltus.Spin(4)))
