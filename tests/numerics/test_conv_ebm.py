"""The energy-based model of the paper: its network against plain convolutions, its parameters, its gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from benchmarks.speed.references import plain_network
from saltus.errors import TargetError
from saltus.targets import conv_ebm, conv_ebm_params


def states(num=8):
    return (np.random.default_rng(0).random((num, 256)) < 0.3).astype(np.float64)


@pytest.mark.parametrize("width", [1, 4])
def test_it_is_the_convolutional_network(width):
    """Value and gradient, in the state and in the parameters, as lax.conv_general_dilated and autodiff have them."""
    with jax.enable_x64(True):
        ours, plain = conv_ebm(width=width), plain_network(width)
        at = jax.jit(jax.vmap(jax.value_and_grad(lambda t, s: t.log_prob_of(s), argnums=1), (None, 0)))
        for a, b in zip(at(ours, states()), at(plain, states()), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
        slope = jax.jit(jax.grad(lambda params, t: t.log_prob(params, jnp.asarray(states(1)[0]))))
        for a, b in zip(slope(ours.params, ours)["net"], slope(plain.params, plain)["net"], strict=True):
            np.testing.assert_allclose(a["bias"], b["bias"], rtol=1e-9, atol=1e-12)


def test_the_network_has_as_many_parameters_as_the_papers():
    assert sum(leaf.size for leaf in jax.tree.leaves(conv_ebm_params()["net"])) == 284_385


def test_the_quadratic_part_is_that_of_spins():
    """With the network's last layer at zero, f = xᵀGx + b·x."""
    with jax.enable_x64(True):
        params = conv_ebm_params(width=1)
        params["net"][-1] = jax.tree.map(jnp.zeros_like, params["net"][-1])
        params["bias"] = jnp.linspace(-1, 1, 256)
        x = 2 * states(1)[0] - 1
        expected = x @ np.asarray(params["quadratic"]) @ x + np.linspace(-1, 1, 256) @ x
        np.testing.assert_allclose(conv_ebm(params).log_prob_of(jnp.asarray(states(1)[0])), expected, rtol=1e-12)


def test_new_parameters_never_retrace():
    target = conv_ebm(width=1)
    step = jax.jit(lambda target, codes: target.value(codes))
    codes = jnp.zeros(256, jnp.int32)
    step(target, codes)
    step(target.replace(params=conv_ebm_params(width=1, seed=1)), codes)
    assert step._cache_size() == 1


def test_a_sampler_moves_on_it():
    run = saltus.sample(conv_ebm(width=1), saltus.NCG(0.2), num_draws=20, num_warmup=20, num_chains=2, thin=1, progress=False)
    assert float(run["sample_stats"]["jump"].mean()) > 0


@pytest.mark.parametrize("params", [{"net": []}, [1.0]])
def test_other_parameters_are_refused(params):
    with pytest.raises(TargetError, match=r"not those of a conv_ebm[\s\S]*conv_ebm_params"):
        conv_ebm(params)
