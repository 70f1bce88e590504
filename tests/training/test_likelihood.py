"""The log-likelihood of a trained model against enumeration, and a refusal where it cannot be told."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus import training
from saltus.training.models import rbm

SPACES = {"binary": saltus.Binary(5), "spin": saltus.Spin(5), "categories": saltus.Categorical(3, 3)}


def model(space, hidden, scale=1.0):
    target, rng = rbm(space, 3, hidden=hidden), np.random.default_rng(0)
    return target.replace(params=jax.tree.map(lambda p: jnp.asarray(scale * rng.normal(size=p.shape), p.dtype), target.params))


def exact(space, target, data):
    f = np.asarray(jax.vmap(model(space, "summed").replace(params=target.params).value)(space.enumerate()), np.float64)
    return np.mean(f[space.index(space.encode(data))]) - np.logaddexp.reduce(f), f


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "binary" else pytest.mark.full) for name in SPACES])
def test_forward_and_reverse_agree_with_enumeration(name):
    space = SPACES[name]
    target, rng = model(space, "sampled"), np.random.default_rng(1)
    expected, f = exact(space, target, data := space.show(np.asarray(space.enumerate())[::7]))
    samples = space.show(np.asarray(space.enumerate())[rng.choice(len(f), 2000, p=np.exp(f - np.logaddexp.reduce(f)))])
    found = training.log_likelihood(target, data, samples=samples, num_temperatures=100, num_chains=1000)
    assert found.trusted
    assert abs(found.mean - expected) < 4 * found.forward.standard_error
    assert abs(found.apart) < 5 * np.hypot(found.forward.standard_error, found.reverse.standard_error)
    assert "nats a row" in repr(found)
    assert found.forward.bound <= found.forward.log_z <= found.reverse.bound + 4 * found.reverse.bound_error


def test_weights_that_say_nothing_give_no_bare_number():
    """Planted: one temperature, and a model that is far from independent sites."""
    space = saltus.Binary(5)
    target = model(space, "summed", scale=6.0)
    found = training.log_likelihood(target, space.enumerate(), num_temperatures=1, num_chains=1000)
    assert not found.trusted
    assert repr(found).startswith("no number to trust")
    wrong = training.Likelihood(0.0, 0.1, found.forward, found.forward, np.zeros(2))
    assert not wrong.trusted


@pytest.mark.parametrize(
    ("reverse", "told"), [(2.0, "between -3 and -1 nats"), (-11.0, "11 nats lower"), (-0.5, "few of the weights")]
)
def test_what_is_not_trusted_says_what_is_known(reverse, told):
    """A range without width was printed where the way back came out below the way there."""
    space = saltus.Binary(5)
    bad = training.log_likelihood(model(space, "summed", scale=6.0), space.enumerate(), num_temperatures=1, num_chains=1000).forward
    there, back = (dataclasses.replace(bad, log_z=log_z) for log_z in (0.0, reverse))
    found = training.Likelihood(-1.0, 0.1, there, back, np.zeros(2))
    assert not found.trusted
    assert told in repr(found)
