"""Exact differences from the terms of a log_prob: right wherever they are found, and refused where they save nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.structure.terms import find_terms

Y = np.random.default_rng(0).normal(size=12).astype(np.float32)
PAIRS = np.array([[0, 3], [3, 7], [1, 2], [5, 11]])


def mixture(p, s):
    z = jnp.round(s).astype(jnp.int32)
    return jnp.sum(jax.nn.log_softmax(p["w"])[z]) - 0.5 * jnp.sum((Y - p["loc"][z]) ** 2) + 3.0


def chain(p, s):
    z = jnp.round(s).astype(jnp.int32)
    return jnp.sum(jax.nn.log_softmax(p["t"])[z[:-1], z[1:]]) + jnp.sum(jax.nn.relu(p["loc"][z] - Y))


def parts(p, s):
    k = jnp.sum(s["k"] * jnp.arange(3.0), -1).astype(jnp.int32)
    same = (k[PAIRS[:, 0]] == k[PAIRS[:, 1]]).astype(jnp.float32)
    return jnp.sum(p["loc"][k] * Y * s["b"]) - jnp.sum(same) / 3 + jnp.sum(s["b"] * p["w"][0])


ORDINAL, PARAMS = saltus.Ordinal(12, [0.0, 1.0, 2.0]), {"w": jnp.array([0.1, -1.0, 0.5]), "loc": jnp.array([-1.0, 0.2, 1.5])}
CASES = {
    "mixture": (mixture, ORDINAL, PARAMS, 1),
    "chain": (chain, ORDINAL, PARAMS | {"t": jnp.arange(9.0).reshape(3, 3) / 4}, 2),
    "parts": (parts, saltus.Product(k=saltus.Categorical(12, 3), b=saltus.Binary(12)), PARAMS, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_the_table_is_that_of_all_single_changes(name):
    log_prob, space, params, colours = CASES[name]
    terms = find_terms(log_prob, space, params)
    assert terms.num_colours == colours
    known = saltus.Target(log_prob, space, params, differences=saltus.Differences(terms, exact=True), structure=None)
    brute = saltus.Target(log_prob, space, params, differences="exact", structure=None)
    for seed in range(3):
        codes = space.random(jax.random.key(seed))
        a, b = (t.moves(saltus.evaluate(t, codes)).table() for t in (known, brute))
        np.testing.assert_allclose(a, b, atol=2e-5)


def test_equal_functions_and_shapes_make_equal_terms():
    terms = [find_terms(mixture, ORDINAL, PARAMS | {"w": jnp.ones(3) * i}) for i in range(2)]
    assert terms[0] == terms[1]
    assert hash(terms[0]) == hash(terms[1])
    assert terms[0] != find_terms(chain, *CASES["chain"][1:3])


@pytest.mark.parametrize(
    "log_prob",
    [lambda p, s: -jnp.abs(s.sum() - 3.0), lambda p, s: jnp.sum(jnp.sort(s) * p["w"][0]), lambda p, s: jax.nn.logsumexp(s)],
)
def test_nothing_is_claimed_where_all_sites_meet_in_a_term(log_prob):
    assert find_terms(log_prob, ORDINAL, PARAMS) is None


def test_a_sum_that_is_rounded_to_half_precision_is_one_term():
    """Rounding lets all that is summed interact."""
    f = lambda p, s: (jnp.sum(s * p)).astype(jnp.bfloat16).astype(jnp.float32)  # noqa: E731
    assert find_terms(f, saltus.Spin(12), jnp.arange(12.0)) is None
    assert find_terms(lambda p, s: jnp.sum(jnp.tanh(s * p)), saltus.Spin(12), jnp.arange(12.0)) is not None
