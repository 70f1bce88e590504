"""Momentum and over-relaxation of AVG and PAVG: without them nothing changes; with them exact, in float32 too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grid import PRODUCTS, SPACES, assert_exact, indefinite, mostly

import saltus
from saltus._record import changed, record
from saltus.kernels.metropolis import metropolis
from saltus.proposals.over_relaxed import overlaps
from saltus.testing import check_kernel, quadratic, rugged

GRID = saltus.Ordinal(2, np.linspace(-2, 2, 21))


def run(kernel, target, steps=5, num=64):
    """Codes and acceptance of a few steps of many chains."""
    codes = jax.vmap(target.space.random)(jax.random.split(jax.random.key(5), num)).astype(target.space.code_dtype)

    def one(x, key):
        x, info = jax.vmap(lambda k, x: kernel.step(k, target, x))(jax.random.split(key, num), x)
        return x, (x.codes, info.acceptance_rate)

    start = jax.vmap(lambda c, k: kernel.init(target, c, key=k))(codes, jax.random.split(jax.random.key(6), num))
    return jax.jit(lambda: jax.lax.scan(one, start, jax.random.split(jax.random.key(7), steps))[1])()


@pytest.mark.parametrize("space", mostly(SPACES, "ordinal"))
def test_no_momentum_is_pavg_draw_for_draw(space):
    target, sigma = rugged(space), indefinite(space)
    expected, rates = run(saltus.PAVG(0.6, sigma), target)
    used, used_rates = run(saltus.PAVG(0.6, sigma, momentum=0.0), target)
    np.testing.assert_array_equal(used, expected)
    np.testing.assert_allclose(used_rates, rates, atol=1e-6)


RELAXED = {
    "AVG": lambda space: saltus.AVG(0.7, over_relaxed=True),
    "PAVG": lambda space: saltus.PAVG(0.7, indefinite(space), scale=-0.6, over_relaxed=True),
}


@pytest.mark.parametrize("space", mostly({**SPACES, **PRODUCTS}, "bits-and-categories"))
@pytest.mark.parametrize("kernel", mostly(RELAXED, "PAVG"))
@pytest.mark.parametrize("differences", mostly(["gradient", "exact"], "gradient"))
def test_over_relaxation_is_exact_at_a_fixed_auxiliary(kernel, space, differences):
    assert_exact(kernel(space), rugged(space, differences=differences))


@pytest.mark.full
def test_every_move_of_a_quadratic_target_is_accepted():
    target = quadratic(SPACES["ordinal"])
    H = np.asarray(target.params["H"])
    for momentum in (None, 0.9):
        _, rates = run(saltus.PAVG(0.5, H, momentum=momentum, over_relaxed=True), target)
        np.testing.assert_allclose(rates, 1, atol=1e-4)


@pytest.mark.parametrize("values", [2, 3, 21])
def test_overlaps_are_those_of_the_intervals_also_in_float32(values):
    rng = np.random.default_rng(values)
    weights = np.exp(rng.normal(size=(50, values)) * 6)
    weights /= weights.max(1, keepdims=True)
    q = weights / weights.sum(1, keepdims=True)
    F = np.concatenate([np.zeros((50, 1)), np.cumsum(q, 1)], 1)
    for j in range(values):
        low, high = np.maximum(F[:, j, None], 1 - F[:, 1:]), np.minimum(F[:, j + 1, None], 1 - F[:, :-1])
        exact = np.maximum(high - low, 0) / q[:, j, None]
        own = jnp.full(50, j, jnp.int32)
        used = np.asarray(overlaps(jnp.asarray(weights, jnp.float32), own), np.float64) / weights[:, j, None]
        big = q[:, j] > 1e-9  # the oracle's own 1 - F has no more digits
        np.testing.assert_allclose(used[big], exact[big], atol=2e-5)


def test_overlaps_are_the_same_both_ways():
    weights = jnp.asarray(np.exp(np.random.default_rng(0).normal(size=(20, 7)) * 8), jnp.float32)
    table = np.stack([np.asarray(overlaps(weights, jnp.full(20, j, jnp.int32))) for j in range(7)], axis=1)
    np.testing.assert_array_equal(table, table.transpose(0, 2, 1))


BOTH = {
    "grid-float32": (GRID, False),
    "grid-float64": (GRID, True),
    "binary-float32": (SPACES["binary"], False),
    "one-hot-float32": (SPACES["one-hot"], False),
}


@pytest.mark.full
@pytest.mark.parametrize(("space", "x64"), BOTH.values(), ids=BOTH)
def test_both_are_certified(space, x64):
    with jax.enable_x64(x64):
        kernel = saltus.PAVG(0.7, indefinite(space), scale=-0.6, momentum=0.8, over_relaxed=True)
        check_kernel(kernel, rugged(space), battery=space is SPACES["binary"])
        check_kernel(saltus.AVG(0.7, momentum=0.8), rugged(space), battery=False)


@record
class Unturned(saltus.AVG):
    """The momentum is negated where a move is accepted, and kept where it is not."""

    def step(self, key, target, x):
        y, info = super().step(key, target, x)
        return changed(y, momentum=jnp.where(info.accepted, y.momentum, -y.momentum)), info


@record
class SameNoise(saltus.AVG):
    """The momentum stays as it is where a move is accepted: w for w - ΣΔ."""

    def step(self, key, target, x):
        noise_key, move_key, accept_key = jax.random.split(key, 3)
        w = self.momentum * x.momentum + jnp.sqrt(1 - self.momentum**2) * self.noise(noise_key, target)
        forward = self.propose(target, x, w)
        y = self.init(target, forward.sample(move_key))
        ratio = self.log_ratio(target, x, y, w, forward)
        return metropolis(accept_key, target.space, changed(x, momentum=-w), changed(y, momentum=-w), ratio)


@pytest.mark.full
@pytest.mark.parametrize("kernel", [Unturned(2.0, momentum=0.9), SameNoise(2.0, momentum=0.9)], ids=repr)
def test_a_momentum_that_is_turned_wrongly_is_seen_by_the_stationary_start(kernel):
    with pytest.raises(saltus.CheckError, match=r"FAILED \(.*stationary start"):
        check_kernel(kernel, SPACES["binary"], battery=False)


@pytest.mark.parametrize("bad", [dict(momentum=1.0), dict(momentum=-0.1), dict(momentum="fast"), dict(over_relaxed=2)], ids=str)
def test_bad_settings_are_told(bad):
    with pytest.raises(saltus.KernelError, match=r"momentum|over_relaxed"):
        saltus.AVG(0.5, **bad)
