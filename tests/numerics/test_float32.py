"""float32, the default, at d = 1000: the log-ratio keeps three digits after the point for every step size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grid import mostly

import saltus
from saltus.testing.enumeration import widen

D = 1000
SPACES = {
    "binary": saltus.Binary(D),
    "spin": saltus.Spin(D),
    "ordinal": saltus.Ordinal(D, np.linspace(-1.5, 3, 20)),
    "uneven": saltus.Ordinal(D, np.sort(np.random.default_rng(0).normal(size=7))),
    "one-hot": saltus.Categorical(D, 4),
    "shifted": saltus.Ordinal(D, 1000 + np.linspace(0, 3, 20)),
}


def wavy(space):
    """Chains of neighbours and sines; |f| in the hundreds."""
    rng = np.random.default_rng(3)
    params = {"b": jnp.asarray(rng.normal(size=space.size)), "J": jnp.asarray(rng.normal(size=space.size))}
    params["origin"] = jnp.asarray(float(space.values.min()))

    def log_prob(params, s):
        r = s.ravel() - params["origin"]
        return jnp.sum(params["b"] * r + params["J"] * r * jnp.roll(r, 1) + jnp.sin(2 * r + jnp.roll(r, 3)))

    return saltus.Target(log_prob, space, params)


def kernels(space):
    rng = np.random.default_rng(4)
    low_rank = saltus.LowRank(rng.normal(size=space.size), rng.normal(size=(space.size, 8)) / 30)
    ring = saltus.Sparse([(i, i + 1) for i in range(space.size - 1)], rng.normal(size=space.size - 1) * 0.3, size=space.size)
    wigner = rng.normal(size=(D, D)) / np.sqrt(D)
    wigner = (wigner + wigner.T) / 2
    return {
        "NCG": saltus.NCG,
        "AVG": saltus.AVG,
        "PAVG-LowRank": lambda eps: saltus.PAVG(eps, low_rank, scale=-0.5),
        "PAVG-Sparse": lambda eps: saltus.PAVG(eps, ring),
        "PAVG-Dense": lambda eps: saltus.PAVG(eps, wigner),
        "PAVG-Diagonal": lambda eps: saltus.PAVG(eps, saltus.Diagonal(rng.normal(size=space.size))),
        "GWG": lambda eps: saltus.GWG(),
    }


@pytest.mark.parametrize("space", mostly(SPACES, "binary", "one-hot", "shifted"))
@pytest.mark.parametrize("kind", ["NCG", "AVG", "PAVG-Diagonal", "PAVG-LowRank", "PAVG-Sparse", "GWG"])
def test_log_ratio_is_accurate_in_float32(space, kind):
    assert_accurate(space, kind)


@pytest.mark.parametrize("name", ["binary", "ordinal"])
def test_log_ratio_is_accurate_in_float32_with_a_dense_preconditioner(name):
    assert_accurate(SPACES[name], "PAVG-Dense")


def assert_accurate(space, kind):
    target, make = wavy(space), kernels(space)[kind]
    with jax.enable_x64(True):
        wide_target = widen(target)

    @jax.jit
    def narrow(kernel, key):
        start_key, noise_key, move_key = jax.random.split(key, 3)
        x = kernel.init(target, space.random(start_key))
        noise = kernel.noise(noise_key, target)
        y = kernel.init(target, kernel.propose(target, x, noise).sample(move_key))
        return x, y, noise, kernel.log_ratio(target, x, y, noise)

    @jax.jit
    def wide(kernel, x, y, noise):
        x64, y64 = (kernel.init(wide_target, p.codes) for p in (x, y))
        size = jnp.abs(x64.log_prob) + jnp.abs(y64.log_prob) + jnp.sum(jnp.abs(wide_target.moves(x64).scores))
        return kernel.log_ratio(wide_target, x, y, noise), kernel.log_ratio(wide_target, x64, y64, noise), size

    for eps in (0.01, 0.1, 1.0, 30.0, 1000.0):
        kernel = make(eps)
        x, y, noise, used = narrow(kernel, jax.random.key(1))
        with jax.enable_x64(True):
            same_inputs, end_to_end, size = map(float, wide(*(widen(t) for t in (kernel, x, y, noise))))
        assert abs(float(used) - same_inputs) < 1e-3, f"eps {eps}: {used} {same_inputs}"
        assert abs(float(used) - end_to_end) < 1e-3 + 16 * 2**-24 * size, f"eps {eps}: {used} {end_to_end}"


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
