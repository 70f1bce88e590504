"""A kernel of saltus in BlackJAX's own loop."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.bridges.blackjax import as_sampling_algorithm


def test_it_runs_under_run_inference_algorithm():
    target = saltus.Target(lambda s: 0.8 * s[0] - 0.5 * s[1] + s[0] * s[1], saltus.Binary(2))
    algorithm = as_sampling_algorithm(saltus.NCG(1.0), target)
    _, codes = blackjax.util.run_inference_algorithm(
        rng_key=jax.random.key(0),
        inference_algorithm=algorithm,
        num_steps=20000,
        initial_position=jnp.zeros(2, jnp.int32),
        transform=lambda state, info: state.codes,
    )
    p = saltus.testing.stationary(target)
    seen = np.bincount(np.asarray(codes) @ [2, 1], minlength=4) / 20000
    np.testing.assert_allclose(seen, p, atol=0.02)


def test_what_is_no_kernel_is_refused():
    target = saltus.Target(lambda s: s.sum(), saltus.Binary(2))
    with pytest.raises(saltus.KernelError, match="not a kernel"):
        as_sampling_algorithm("ncg", target)
    with pytest.raises(saltus.KernelError, match="not a target"):
        as_sampling_algorithm(saltus.NCG(0.5), 3)
