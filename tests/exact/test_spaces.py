"""Spaces keep their promises; a new one is a few lines."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grid import SPACES

import saltus
from saltus.testing import check_space

MORE = {
    "even grid": saltus.Ordinal(3, np.linspace(-1.5, 3.0, 7)),
    "two categories": saltus.Categorical(3, 2),
    "two grid points": saltus.Ordinal(4, [0.0, 1.0]),
    "one site": saltus.Binary(1),
    "far from zero": saltus.Ordinal(2, np.linspace(1000, 1001, 11)),
}


@pytest.mark.parametrize("space", [*SPACES.values(), *MORE.values()], ids=[*SPACES, *MORE])
def test_space_is_certified(space):
    check_space(space)


def test_check_space_fails_on_a_space_that_lies():
    class Lying(saltus.Space):
        def hops(self, a, b):
            return (a > b).astype(jnp.int32)  # not symmetric

    with pytest.raises(saltus.CheckError, match="hops"):
        check_space(Lying(2, [0.0, 1.0, 2.0]))

    class Skewed(saltus.Binary):
        def random(self, key):
            return jnp.zeros(self.num_sites, jnp.int32)

    with pytest.raises(saltus.CheckError, match="random"):
        check_space(Skewed(3))


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_embed_show_and_encode_broadcast_over_leading_axes(space):
    codes = jax.vmap(jax.vmap(space.random))(jax.random.split(jax.random.key(0), (2, 3)))
    assert space.embed(codes).shape == (2, 3, *space.shape)
    assert space.ravel(space.embed(codes)).shape == (2, 3, space.size)
    assert space.show(codes).shape == (2, 3, space.num_sites)
    np.testing.assert_array_equal(space.encode(np.asarray(space.embed(codes), np.float64)), codes)
    np.testing.assert_array_equal(space.encode(space.show(codes)), codes)
    np.testing.assert_array_equal(space.unravel(space.ravel(space.embed(codes))), space.embed(codes))


@pytest.mark.parametrize("k", [2, 64, 65, 100, 127, 128, 300])
def test_a_run_keeps_codes_in_the_smallest_signed_type_and_nothing_wraps_round(k):
    for space in (saltus.Ordinal(2, np.arange(k)), saltus.Clock(2, k)) if k > 2 else (saltus.Spin(2),):
        assert space.code_dtype == (np.int8 if k <= 64 else np.int16)
        codes = jnp.array([0, k - 1])
        small = codes.astype(space.code_dtype)
        hops, travel = (lambda c, space=space: space.hops(c, c[::-1])), (lambda c, space=space: space.travel(c, c[::-1]))
        for function in (space.embed, space.show, hops, travel, lambda c, space=space: jnp.asarray(space.values)[c]):
            jax.tree.map(np.testing.assert_array_equal, function(small), function(codes))
        near = [np.asarray(space.within(c, jnp.int32(k // 2 - 1)).scores) for c in (small, codes)]
        np.testing.assert_array_equal(*near)


def test_shown_forms_are_what_a_person_reads():
    assert saltus.Spin(3).show([0, 1, 1]).tolist() == [-1, 1, 1]
    assert saltus.Spin(3).show([0, 1, 1]).dtype == np.int8
    assert saltus.Ordinal(2, [0.5, 2.5]).show([1, 0]).dtype == np.float32
    assert saltus.Categorical(2, 3).show([2, 0]).tolist() == [2, 0]
    np.testing.assert_array_equal(saltus.Categorical(2, 3).embed(jnp.array([2, 0])), [[0, 0, 1], [1, 0, 0]])


def test_encode_takes_floats_to_within_a_ten_thousandth_of_a_step():
    grid = saltus.Ordinal(2, [0.0, 1.0, 3.0])
    assert grid.encode([0.99995, 3.00005]).tolist() == [1, 2]
    with pytest.raises(saltus.SpaceError, match="site 0"):
        grid.encode([0.999, 3.0])


def test_a_nearly_even_grid_is_not_taken_for_an_even_one():
    x = np.linspace(0, 1, 3201)
    grid = saltus.Ordinal(1, x + 4e-3 * x**2)
    np.testing.assert_allclose(grid.embed(np.arange(3201)[:, None])[:, 0], grid.values, rtol=1e-6)


def test_tables_of_neighbours_and_distances():
    clock = saltus.Clock(2, 5)
    assert clock.neighbour_table()[0].tolist() == [False, True, False, False, True]
    assert saltus.Categorical(1, 3).hop_table().tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    np.testing.assert_allclose(saltus.Spin(1).distance_table(), [[0, 4], [4, 0]])
    np.testing.assert_allclose(saltus.Categorical(1, 3).distance_table(), 2 * (1 - np.eye(3)))


def test_spaces_are_equal_by_what_they_are():
    assert saltus.Binary(3) == saltus.Binary(3) != saltus.Spin(3)
    assert hash(saltus.Ordinal(3, [0, 1, 2])) == hash(saltus.Ordinal(3, [0, 1, 2]))
    assert saltus.Ordinal(3, [0, 1, 2]) != saltus.Ordinal(3, [0, 1, 3])


@pytest.mark.parametrize("space", [*SPACES.values(), saltus.Categorical(2, 128), saltus.Categorical(2, 129)], ids=str)
def test_labels_are_what_the_table_says(space):
    """Computed or looked up, up to the last code that a type holds."""
    codes = np.arange(space.num_values, dtype=np.min_scalar_type(space.num_values - 1))
    shown = space.labelled(codes)
    assert shown.dtype == space.labels.dtype
    np.testing.assert_array_equal(shown, space.labels)
