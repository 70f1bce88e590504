"""float32, the default, at d = 1000: the log-ratio keeps three digits after the point for every step size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.testing.enumeration import widen

D = 1000
SPACES = {
    "binary": saltus.Binary(D),
    "spin": saltus.Spin(D),
    "ordinal": saltus.Ordinal(D, np.linspace(-1.5, 3, 20)),
    "uneven": saltus.Ordinal(D, np.sort(np.random.default_rng(0).normal(size=7))),
    "one-hot": saltus.Categorical(D, 4),
}


def wavy(space):
    """Chains of neighbours and sines; |f| in the hundreds."""
    rng = np.random.default_rng(3)
    params = {"b": jnp.asarray(rng.normal(size=space.size)), "J": jnp.asarray(rng.normal(size=space.size))}

    def log_prob(params, s):
        r = s.ravel()
        return jnp.sum(params["b"] * r + params["J"] * r * jnp.roll(r, 1) + jnp.sin(2 * r + jnp.roll(r, 3)))

    return saltus.Target(log_prob, space, params)


def kernels(space):
    rng = np.random.default_rng(4)
    low_rank = saltus.LowRank(rng.normal(size=space.size), rng.normal(size=(space.size, 8)) / 30)
    ring = saltus.Sparse([(i, i + 1) for i in range(space.size - 1)], rng.normal(size=space.size - 1) * 0.3, size=space.size)
    return {
        "NCG": saltus.NCG,
        "AVG": saltus.AVG,
        "PAVG-LowRank": lambda eps: saltus.PAVG(eps, low_rank, scale=-0.5),
        "PAVG-Sparse": lambda eps: saltus.PAVG(eps, ring),
    }


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("kind", ["NCG", "AVG", "PAVG-LowRank", "PAVG-Sparse"])
def test_log_ratio_is_accurate_in_float32(space, kind):
    target, make = wavy(space), kernels(space)[kind]
    for eps in (0.01, 0.1, 1.0, 30.0, 1000.0):
        kernel = make(eps)
        keys = jax.random.split(jax.random.key(1), 3)
        x = kernel.init(target, space.random(keys[0]))
        noise = kernel.noise(keys[1], target)
        y = kernel.init(target, kernel.propose(target, x, noise).sample(keys[2]))
        narrow = float(kernel.log_ratio(target, x, y, noise))
        with jax.enable_x64(True):
            wide_kernel, wide_target, wide_x, wide_y, wide_noise = (widen(t) for t in (kernel, target, x, y, noise))
            same_inputs = float(wide_kernel.log_ratio(wide_target, wide_x, wide_y, wide_noise))
            assert abs(narrow - same_inputs) < 1e-3, f"eps {eps}: {narrow} {same_inputs}"
            x64, y64 = (wide_kernel.init(wide_target, p.codes) for p in (x, y))
            end_to_end = float(wide_kernel.log_ratio(wide_target, x64, y64, wide_noise))
            size = abs(x.log_prob) + abs(y.log_prob) + jnp.sum(jnp.abs(wide_target.moves(x64).scores))
            assert abs(narrow - end_to_end) < 1e-3 + 16 * 2**-24 * float(size), f"eps {eps}: {narrow} {end_to_end}"


def test_the_check_can_fail():
    """The textbook form, with z and Gaussian densities, loses the digits that the centred form keeps."""
    space = SPACES["binary"]
    target, eps = wavy(space), 0.01
    kernel = saltus.AVG(eps)
    keys = jax.random.split(jax.random.key(1), 3)
    x, noise = kernel.init(target, space.random(keys[0])), kernel.noise(keys[1], target)
    y = kernel.init(target, space.random(keys[2]))  # a far move, as a large step size would make

    def textbook(x, y, u):
        s, t = space.embed(x.codes), space.embed(y.codes)
        root = jnp.sqrt(jnp.asarray(2 / eps, s.dtype))
        z = root * s + u / root

        def log_q(new, here):
            h = here.local + root * z
            return jnp.sum(h * new - new**2 / eps - jnp.logaddexp(0, h - 1 / eps))

        gaussian = -0.5 * jnp.sum((z - root * t) ** 2) + 0.5 * jnp.sum((z - root * s) ** 2)
        return y.log_prob - x.log_prob + gaussian + log_q(s, y) - log_q(t, x)

    narrow = float(textbook(x, y, noise))
    with jax.enable_x64(True):
        exact = float(textbook(*(widen(t) for t in (x, y, noise))))
    ours = float(kernel.log_ratio(target, x, y, noise))
    assert abs(narrow - exact) > 1e-3
    assert abs(ours - exact) < 1e-3


def test_gwg_is_accurate_in_float32():
    for space in SPACES.values():
        target, kernel = wavy(space), saltus.GWG()
        x = kernel.init(target, space.random(jax.random.key(0)))
        y = kernel.init(target, kernel.propose(target, x).sample(jax.random.key(1)))
        narrow = float(kernel.log_ratio(target, x, y))
        with jax.enable_x64(True):
            wide = float(widen(kernel).log_ratio(widen(target), widen(x), widen(y)))
        assert abs(narrow - wide) < 1e-3
