"""A state made for other parameters is refreshed or refused, never stepped: FINDINGS had it step for ever at acceptance 0."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus

SPACE = saltus.Spin(4)
H = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], np.float32)
EDGES = np.argwhere(np.triu(H))
CODES = jnp.array([0, 1, 1, 0], jnp.int8)


def log_prob(params, s):
    return params["coupling"] * 0.5 * s @ jnp.asarray(H) @ s + params["field"] @ s


def structure(params):
    return saltus.Graph.from_edges(EDGES, 4), saltus.Quadratic(params["field"], params["coupling"] * H)


def at(coupling):
    params = {"coupling": jnp.float32(coupling), "field": jnp.linspace(-0.3, 0.3, 4, dtype=jnp.float32)}
    return saltus.Target(log_prob, SPACE, params, structure=structure)


OLD = at(0.3)
NEW = OLD.replace(params={**OLD.params, "coupling": jnp.float32(0.7)})
LATTICE = saltus.targets.ising((4, 4), 0.3)  # in closed form: its sweeps are others
KERNELS = {
    "ncg": saltus.NCG(1.0),
    "gwg": saltus.GWG(),
    "avg": saltus.AVG(1.0),
    "uniform": saltus.UniformMH(1),
    "gibbs-random": saltus.Gibbs("random"),
    "gibbs-systematic": saltus.Gibbs("systematic"),
    "gibbs-coloured": saltus.Gibbs("coloured"),
    "block-gibbs": saltus.BlockGibbs(),
}


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@pytest.fixture(params=KERNELS, scope="module")
def kernel(request):
    return KERNELS[request.param]


@pytest.fixture(scope="module")
def step(kernel):
    """Compiled once for all targets: the target is an argument."""
    return jax.jit(kernel.step)


def test_an_eager_step_from_a_stale_state_is_an_error_that_names_refresh(kernel):
    with pytest.raises(saltus.KernelError, match=r"kernel\.refresh\(target, state\)"):
        kernel.step(jax.random.key(0), NEW, kernel.init(OLD, CODES))


def test_within_jit_it_is_refused_and_counted(kernel, step):
    x = kernel.init(OLD, CODES)
    for seed in range(8):
        y, info = step(jax.random.key(seed), NEW, x)
        assert same(y, x)
        assert int(info.undefined) >= 1
        assert not info.accepted
        assert not info.moved
        assert float(info.acceptance_rate) == 0
        assert float(info.jump) == 0


def test_refresh_mends_it(kernel, step):
    x = kernel.refresh(NEW, kernel.init(OLD, CODES))
    assert same(x, kernel.init(NEW, CODES))
    moved = 0
    for seed in range(8):
        x, info = step(jax.random.key(seed), NEW, x)
        assert int(info.undefined) == 0
        assert float(x.log_prob) == pytest.approx(float(NEW.value(x.codes)), abs=1e-5)
        moved += int(info.moved)
    assert moved


def test_a_state_of_the_same_target_is_stepped_eagerly_and_in_jit(kernel, step):
    x = kernel.init(OLD, CODES)
    for run in (kernel.step, step):
        _, info = run(jax.random.key(1), OLD, x)
        assert int(info.undefined) == 0


def test_of_many_chains_only_the_stale_are_refused(kernel, step):
    fresh, stale = kernel.init(NEW, CODES), kernel.init(OLD, CODES)
    x = jax.tree.map(lambda *leaves: jnp.stack(leaves), fresh, stale, fresh)
    keys = jax.random.split(jax.random.key(3), 3)
    y, info = jax.jit(jax.vmap(kernel.step, in_axes=(0, None, 0)))(keys, NEW, x)
    np.testing.assert_array_equal(np.asarray(info.undefined) > 0, [False, True, False])
    assert same(jax.tree.map(lambda leaf: leaf[1], y), stale)


def test_closed_form_sweeps_refuse_it_too():
    kernel = saltus.Gibbs("coloured")
    other = LATTICE.replace(params={**LATTICE.params, "coupling": LATTICE.params["coupling"] * 2})
    x = kernel.init(LATTICE, jnp.zeros(16, jnp.int8))
    with pytest.raises(saltus.KernelError, match=r"kernel\.refresh"):
        kernel.step(jax.random.key(0), other, x)
    step = jax.jit(kernel.step)
    y, info = step(jax.random.key(0), other, x)
    assert same(y, x)
    assert (int(info.undefined), bool(info.moved), float(info.jump)) == (1, False, 0)
    y, info = step(jax.random.key(0), other, kernel.refresh(other, x))
    assert int(info.undefined) == 0


def test_a_tempered_target_is_another_one():
    kernel = saltus.NCG(1.0)
    with pytest.raises(saltus.KernelError, match=r"kernel\.refresh"):
        kernel.step(jax.random.key(0), OLD.tempered(0.5), kernel.init(OLD, CODES))


def test_what_replaces_no_numbers_keeps_every_state():
    """A jit boundary, a copy or a stack of one target is that target still."""
    kernel = saltus.NCG(1.0)
    x = kernel.init(OLD, CODES)
    through = jax.jit(lambda target: target)(OLD)
    assert int(kernel.step(jax.random.key(0), through, x)[1].undefined) == 0
