"""Sweeps by halves: the two colours of an even lattice apart, and put together again."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus._record import changed
from saltus.targets.checkerboard import Checkerboard

RNG = np.random.default_rng(0)
SHAPES = [(2,), (6,), (2, 4), (4, 2), (6, 4), (2, 4, 6)]


def ising(shape):
    return saltus.targets.ising(shape, RNG.normal(size=len(shape)), RNG.normal(size=np.prod(shape)))


def potts(shape, num_states=3):
    field = RNG.normal(size=(np.prod(shape), num_states))
    return saltus.targets.potts(shape, num_states, RNG.normal(size=len(shape)), field)


def two_states(shape):
    return potts(shape, 2)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_is_split_is_joined_and_has_the_colours_of_the_graph(shape):
    board, x = Checkerboard(shape), jnp.asarray(RNG.integers(9, size=(3, np.prod(shape))))
    first, second = board.split(x)
    np.testing.assert_array_equal(board.join(first, second), x)
    colours = saltus.targets.ising(shape, 0.1).find(saltus.Graph).colours
    assert [set(np.asarray(half).tolist()) for half in board.split(colours)] == [{0}, {1}]


@pytest.mark.parametrize("make", [ising, potts, two_states])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_halves_say_what_the_whole_lattice_says(make, shape):
    with jax.enable_x64(True):
        target = make(shape)
        space, halves = target.space, target.differences.halves
        codes = jnp.asarray(RNG.integers(space.num_values, size=space.num_sites))
        parts = halves.board.split(codes)
        whole = halves.board.split(target.differences.packed(target, codes))
        for colour in (0, 1):
            pull = halves.pull(target.params, parts[1 - colour], colour)
            np.testing.assert_allclose(halves.packed(pull), whole[colour], atol=1e-12)
        np.testing.assert_allclose(halves._value(target, *parts, pull), target.value(codes), atol=1e-12)


@pytest.mark.parametrize("kernel", [saltus.Gibbs("coloured"), saltus.Gibbs(), saltus.NCG(1.0), saltus.GWG()], ids=repr)
def test_two_states_are_certified(kernel):
    saltus.testing.check_kernel(kernel, two_states((2, 2)), battery=False)


def test_a_target_of_float32_sweeps_in_float64():
    """Built before x64 is enabled, as a long session does it."""
    for target in (ising((2, 4)), potts((2, 4))):
        with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
            for kernel in (saltus.Gibbs("coloured"), saltus.NCG(1.0)):
                x = jax.jit(kernel.init)(target, np.zeros(8, int))
                y, _ = jax.jit(kernel.step)(jax.random.key(0), target, x)
                assert x.log_prob.dtype == y.log_prob.dtype == jnp.float64


def test_only_lattices_of_even_sides_have_halves():
    for target in (ising((3, 4)), ising((4, 1)), saltus.targets.ising([(0, 1), (1, 2)], 0.3)):
        assert target.differences.halves is None


@dataclasses.dataclass(frozen=True)
class WrongRow(Checkerboard):
    """Takes the row before where it should take the one after."""

    def pull(self, coupling, s, colour):
        return super().pull(coupling, s, 1 - colour)


@pytest.mark.full
def test_a_ring_is_certified():
    saltus.testing.check_kernel(saltus.Gibbs("coloured"), saltus.targets.ising((6,), 0.5, 0.1), battery=False)


def test_a_wrong_neighbour_is_noticed():
    """On a target on which the right one is certified."""
    target = saltus.targets.ising((6,), 0.5, 0.1)
    halves = dataclasses.replace(target.differences.halves, board=WrongRow((6,)))
    planted = changed(target, differences=changed(target.differences, halves=halves))
    with pytest.raises(saltus.CheckError):
        saltus.testing.check_kernel(saltus.Gibbs("coloured"), planted)


def test_a_sweep_by_halves_stays_where_a_field_is_undefined():
    """As a whole sweep does; the other sites go on."""
    field = jnp.zeros(8).at[3].set(jnp.nan)
    target = changed(saltus.targets.ising((2, 4), 0.1), params={"coupling": jnp.float32(0.1), "field": field})
    kernel = saltus.Gibbs("coloured")
    step = jax.jit(kernel.step)
    for start in (0, 1):
        x = jax.jit(kernel.init)(target, jnp.full(8, start, jnp.int32))
        moved = []
        for t in range(20):
            x, _ = step(jax.random.key(t), target, x)
            moved.append(np.asarray(x.codes) != start)
        assert not np.any(moved, axis=0)[3]
        assert np.any(moved, axis=0).sum() == 7
