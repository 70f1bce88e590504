"""PAS: exact by summing over all paths, GWG where paths have one site."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grid import PRODUCTS, SPACES

import saltus
from saltus._record import changed, record
from saltus.testing import check_kernel, rugged, stationary, transition_matrix

SMALL = {"binary": saltus.Binary(3), "ordinal": saltus.Ordinal(3, [-1.0, 0.3, 1.0]), "product": PRODUCTS["bits-and-categories"]}


def over_paths(kernel, target, length):
    """The transition matrix of paths of this length: the sum over all ordered lists of sites, and all values."""
    space, states = target.space, target.space.enumerate()
    sizes = space.num_values_per_site
    orders = jnp.asarray(list(itertools.permutations(range(space.num_sites))), jnp.int32)
    values = jnp.asarray(list(itertools.product(*map(range, sizes))), jnp.int32)

    def flow(codes, order, value):
        x = kernel.init(target, codes)
        path = changed(kernel.propose(target, x, jnp.int32(length)), order=order, values=value.astype(codes.dtype))
        y = kernel.init(target, path.end())
        taken = order[:length]
        moves = jnp.all(value[taken] != codes[taken])
        alpha = jnp.exp(jnp.minimum(kernel.log_ratio(target, x, y, jnp.int32(length), forward=path), 0))
        rest = jnp.arange(space.num_sites, dtype=jnp.int32)
        same = jnp.all(jnp.where(jnp.isin(rest, taken), True, value == codes))  # each path once
        tail = jnp.all(jnp.diff(order[length:]) > 0) if length < len(order) - 1 else True
        return y.codes, jnp.where(moves & same & tail, jnp.exp(path.log_prob()) * alpha, 0)

    over = jax.vmap(jax.vmap(jax.vmap(flow, (None, None, 0)), (None, 0, None)), (0, None, None))
    ends, rates = jax.jit(over)(states, orders, values)
    K = np.zeros((len(states), len(states)))
    index = space.index(np.asarray(ends).reshape(-1, space.num_sites))
    np.add.at(K, (np.repeat(np.arange(len(states)), len(index) // len(states)), index), np.asarray(rates).ravel())
    np.fill_diagonal(K, 0)
    np.fill_diagonal(K, 1 - K.sum(1))
    return K


@pytest.mark.parametrize("space", SMALL.values(), ids=SMALL)
def test_paths_of_every_length_keep_detailed_balance(space):
    with jax.enable_x64(True):
        target = rugged(space)
        p = stationary(target)
        for length in range(1, space.num_sites + 1):
            flow = p[:, None] * over_paths(saltus.PAS(2), target, length)
            np.testing.assert_allclose(flow, flow.T, atol=1e-12)


def test_a_path_of_one_site_is_gwg():
    with jax.enable_x64(True):
        target = rugged(SMALL["product"])
        np.testing.assert_allclose(over_paths(saltus.PAS(1), target, 1), transition_matrix(saltus.GWG(), target), atol=1e-12)


@record
class Sorted(saltus.PAS):
    """The way back visits the sites from left to right, in whichever order the way there did."""

    def log_ratio(self, target, x, y, noise, forward=None):
        sites = jnp.arange(len(forward.order), dtype=jnp.int32)
        taken = jnp.zeros(len(sites), bool).at[forward.order].set(sites < noise)
        order = jnp.argsort(jnp.where(taken, sites, sites + len(sites))).astype(jnp.int32)
        back = changed(self.propose(target, y, noise), order=order, values=x.codes)
        return y.log_prob - x.log_prob + back.log_prob() - forward.log_prob()


def test_a_way_back_that_is_not_that_of_the_way_there_is_seen():
    """Two ways there share one way back. The same order both ways would do: like the reversed one it is its own inverse."""
    with jax.enable_x64(True):
        target = rugged(SMALL["binary"])
        flow = stationary(target)[:, None] * over_paths(Sorted(2), target, 2)
        assert np.abs(flow - flow.T).max() > 1e-4


@pytest.mark.full
@pytest.mark.parametrize("space", ["binary", "ordinal", "one-hot"])
def test_it_is_certified(space):
    check_kernel(saltus.PAS(2), SPACES[space], battery=space == "binary")


def test_a_radius_beyond_the_sites_is_refused():
    with pytest.raises(saltus.KernelError, match="at most 3"):
        saltus.PAS(4).init(rugged(SMALL["binary"]), jnp.zeros(3, jnp.int8))
