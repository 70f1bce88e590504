"""The lattice with three-body terms: its formula, its differences, one set of triples, one trace."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.errors import TargetError
from saltus.targets import ising, third_order


def values(target, codes):
    return np.asarray(jax.vmap(target.value)(jnp.asarray(codes, jnp.int32)), np.float64)


def by_loops(target, x, alpha):
    """xᵀJx with J = .2A on the 4 x 4 torus, and every triple as it was drawn, repeats and all."""
    A = np.zeros((16, 16))
    for row, column in itertools.product(range(4), range(4)):
        for there in (((row + 1) % 4, column), (row, (column + 1) % 4)):
            a, b = 4 * row + column, 4 * there[0] + there[1]
            A[a, b] = A[b, a] = 1
    triples = np.asarray(target.params["triples"])
    return np.einsum("ni,ij,nj->n", x, 0.2 * A, x) + alpha * sum(x[:, i] * x[:, j] * x[:, k] for i, j, k in triples)


@pytest.mark.parametrize("alpha", [-0.5, 0.0, 0.3])
def test_f_is_the_sum_over_edges_and_triples(alpha):
    codes = np.random.default_rng(1).integers(0, 2, (200, 16))
    with jax.enable_x64(True):
        target = third_order(alpha)
        np.testing.assert_allclose(values(target, codes), by_loops(target, 2.0 * codes - 1, alpha), atol=1e-12)


def test_without_triples_it_is_the_ising_model():
    codes = np.random.default_rng(1).integers(0, 2, (50, 12))
    found, expected = third_order(0.0, (3, 4), coupling=[0.1, 0.7]), ising((3, 4), [0.1, 0.7])
    np.testing.assert_allclose(values(found, codes), values(expected, codes), atol=1e-5)


def flips(target, codes):
    """Every single-site change of f, one evaluation each."""
    changed = codes[:, None] ^ np.eye(codes.shape[1], dtype=codes.dtype)
    return values(target, changed.reshape(-1, codes.shape[1])).reshape(codes.shape) - values(target, codes)[:, None]


def predicted(target, codes):
    at = jax.vmap(lambda c: target.moves(target.point(c)).scores)(jnp.asarray(codes, jnp.int32))
    return np.asarray(at, np.float64)


def test_differences_are_exact_where_indices_repeat():
    codes = np.random.default_rng(2).integers(0, 2, (40, 6))
    with jax.enable_x64(True):
        target = third_order(0.4, (2, 3))
        triples = np.asarray(target.params["triples"])
        repeats = [len(set(t)) for t in triples.tolist()]
        assert {1, 2, 3} == set(repeats)
        np.testing.assert_allclose(predicted(target, codes), flips(target, codes), atol=1e-12)


def test_the_polynomial_as_written_would_mispredict_repeated_indices():
    """Planted: x_i² x_k differentiated as it stands."""

    def as_written(params, x):
        pairs = params["coupling"] * jnp.prod(x[params["edges"]], axis=1)
        return jnp.sum(pairs) + params["alpha"] * jnp.sum(jnp.prod(x[params["triples"]], axis=1))

    codes = np.random.default_rng(2).integers(0, 2, (40, 6))
    with jax.enable_x64(True):
        target = third_order(0.4, (2, 3))
        planted = saltus.Target(as_written, target.space, target.params)
        np.testing.assert_allclose(values(planted, codes), values(target, codes), atol=1e-12)
        assert np.abs(predicted(planted, codes) - flips(planted, codes)).max() > 0.1


def test_one_set_of_triples_per_seed_whatever_alpha():
    first, other, reseeded = third_order(0.1), third_order(-0.5), third_order(0.1, seed=1)
    assert first.params["triples"].shape == (50, 3)
    np.testing.assert_array_equal(first.params["triples"], other.params["triples"])
    assert (np.asarray(first.params["triples"]) != np.asarray(reseeded.params["triples"])).any()


def test_another_alpha_or_other_triples_never_retrace():
    traces = 0

    @jax.jit
    def value(target, codes):
        nonlocal traces
        traces += 1
        return target.value(codes)

    codes = jnp.zeros(16, jnp.int32)
    target = third_order(0.1)
    moved = target.replace(params={**target.params, "alpha": jnp.asarray(0.2, jnp.float32)})
    found = [
        float(value(t, codes)) for t in (target, moved, third_order(0.2), third_order(1, seed=3), third_order(0.1, coupling=1))
    ]
    assert traces == 1
    assert found[1] == found[2] != found[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"alpha": np.nan}, "`alpha` is not finite"),
        ({"alpha": "strong"}, "`alpha` is not a number"),
        (
            {"alpha": [0.1, 0.2]},
            r"`alpha` is not one number.\n  expected  a number\n  found     shape \(2,\)\n  hint      one target",
        ),
        ({"alpha": 0.1, "shape": (4, 0)}, "`shape` is not usable"),
        ({"alpha": 0.1, "shape": "4x4"}, "The lattice or graph is not understood"),
        ({"alpha": 0.1, "coupling": [1.0, 2.0, 3.0]}, "`coupling` does not fit"),
        ({"alpha": 0.1, "coupling": np.inf}, "`coupling` is not finite"),
        ({"alpha": 0.1, "num_triples": 0}, "`num_triples` is not usable"),
        ({"alpha": 0.1, "seed": -1}, "`seed` is not usable"),
    ],
)
def test_bad_inputs_are_refused(arguments, words):
    with pytest.raises(TargetError, match=words):
        third_order(**arguments)
