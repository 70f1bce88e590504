"""jit, vmap and scan work for every kernel; changing numbers never recompiles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grid import KERNELS, SPACES, indefinite, low_rank, mostly, sparse

import saltus
from saltus.testing import rugged

LATTICE = saltus.targets.ising((2, 3), 0.4, 0.1)
WAYS = {name: (make(SPACES["ordinal"]), rugged(SPACES["ordinal"])) for name, make in KERNELS.items()}
WAYS |= {"BlockGibbs": (saltus.BlockGibbs(), LATTICE), "Gibbs-coloured": (saltus.Gibbs("coloured"), LATTICE)}


QUICK = ["NCG", "PAVG-LowRank", "GWG", "Gibbs-random", "Gibbs-systematic", "UniformMH-2", "BlockGibbs", "Gibbs-coloured"]


@pytest.mark.parametrize("way", mostly(WAYS, *QUICK))
def test_one_chain_is_what_jit_vmap_and_scan_make_of_it(way):
    """The same draws whichever way a step is run."""
    kernel, target = way
    space = target.space
    keys = jax.random.split(jax.random.key(0), 4)
    x = kernel.init(target, space.random(jax.random.key(1)))
    step = jax.jit(lambda key, kernel, target, x: kernel.step(key, target, x)[0])
    by_hand = []
    y = x
    for key in keys:
        y = step(key, kernel, target, y)
        by_hand.append(np.asarray(y.codes))

    def one(x, key):
        x, _ = kernel.step(key, target, x)
        return x, x.codes

    scanned = jax.jit(lambda x: jax.lax.scan(one, x, keys)[1])(x)
    np.testing.assert_array_equal(scanned, by_hand)
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), x)
    batch = jax.jit(jax.vmap(lambda x: jax.lax.scan(one, x, keys)[1]))(stacked)
    np.testing.assert_array_equal(batch, np.stack([by_hand] * 3))


COUNT_SPACE = saltus.Binary(4)


def counted(target):
    """A jitted step and how often it has been traced."""
    traces = []

    @jax.jit
    def step(key, kernel, target, x):
        traces.append(1)
        return kernel.step(key, target, x)

    return step, traces


VARIATIONS = {
    "NCG": [saltus.NCG(0.5), saltus.NCG(1), saltus.NCG(np.float32(2)), saltus.NCG(0.1, gradient_weight=1, penalty=2)],
    "NCG penalty": [saltus.NCG(0.5, penalty=np.ones(4)), saltus.NCG(0.5, penalty=np.arange(1.0, 5.0))],
    "AVG": [saltus.AVG(0.5), saltus.AVG(7)],
    "PAVG": [
        saltus.PAVG(0.5, np.eye(4)),
        saltus.PAVG(2, -np.eye(4), scale=-3),
        saltus.PAVG(1.0, indefinite(COUNT_SPACE), scale=0.5),
    ],
    "PAVG LowRank": [saltus.PAVG(0.5, low_rank(COUNT_SPACE)), saltus.PAVG(1, saltus.LowRank(np.ones(4), np.ones((4, 2))))],
    "PAVG Sparse": [saltus.PAVG(0.5, sparse(COUNT_SPACE), scale=g) for g in (0.5, -2)],
    "PAVG Diagonal": [saltus.PAVG(0.5, saltus.Diagonal(np.ones(4))), saltus.PAVG(1, saltus.Diagonal(-np.ones(4)), scale=2)],
    "GWG": [saltus.GWG(1), saltus.GWG(2)],
    "UniformMH": [saltus.UniformMH(1), saltus.UniformMH(3)],
}


@pytest.mark.parametrize("kernels", VARIATIONS.values(), ids=VARIATIONS)
def test_changing_numbers_does_not_recompile(kernels):
    target = rugged(COUNT_SPACE)
    step, traces = counted(target)
    for kernel in kernels:
        step(jax.random.key(0), kernel, target, kernel.init(target, jnp.zeros(4, jnp.int32)))
    assert len(traces) == 1


def test_changing_params_does_not_recompile_and_follows_them():
    target = saltus.targets.ising((3, 3), 0.2)
    kernel = saltus.BlockGibbs()
    step, traces = counted(target)
    for coupling in (0.2, 0.5, -1.0):
        new = target.replace(params={"coupling": coupling, "field": jnp.float32(0.1)})
        x = kernel.init(new, jnp.ones(9, jnp.int32))
        assert float(x.log_prob) == pytest.approx(18 * coupling + 0.9, rel=1e-5)
        step(jax.random.key(0), kernel, new, x)
    assert len(traces) == 1


def test_changing_the_shift_of_block_gibbs_does_not_recompile():
    target = saltus.targets.ising((3, 3), 0.2)
    step, traces = counted(target)
    for shift in (2.0, 5, 9.5):
        kernel = saltus.BlockGibbs(shift)
        step(jax.random.key(0), kernel, target, kernel.init(target, jnp.ones(9, jnp.int32)))
    assert len(traces) == 1


def test_structure_may_be_built_from_params_inside_jit():
    space, edges = saltus.Binary(3), [(0, 1), (1, 2)]
    target = saltus.Target(
        lambda w, s: w[0] * s[0] * s[1] + w[1] * s[1] * s[2],
        space,
        jnp.ones(2),
        structure=lambda w: (saltus.Quadratic(0.0, saltus.Sparse(edges, w, size=3)), saltus.Graph.from_edges(edges, 3)),
    )
    up = jnp.ones(3, jnp.int32)
    f = jax.jit(lambda w: saltus.BlockGibbs().init(target.replace(params=w), up).log_prob)(jnp.array([0.5, 2.0]))
    assert float(f) == 2.5


def test_vmap_over_params():
    space = saltus.Binary(3)
    target = saltus.Target(lambda w, s: jnp.sum(w * s), space, jnp.zeros(3))
    W = jnp.arange(6.0).reshape(2, 3)
    f = jax.vmap(lambda w: target.replace(params=w).value(jnp.ones(3, jnp.int32)))(W)
    np.testing.assert_allclose(f, W.sum(1))
    kernel = saltus.NCG(0.5)

    def one(w, key):
        new = target.replace(params=w)
        return kernel.step(key, new, kernel.init(new, jnp.zeros(3, jnp.int32)))[0].log_prob

    assert jax.vmap(one)(W, jax.random.split(jax.random.key(0), 2)).shape == (2,)
    ising = saltus.targets.ising((3, 3), 0.2)
    couplings = jnp.array([0.1, 0.7])
    up = jax.vmap(lambda J: ising.replace(params={"coupling": J, "field": 0.0}).value(jnp.ones(9, jnp.int32)))(couplings)
    np.testing.assert_allclose(up, 18 * couplings, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [saltus.NCG, saltus.AVG, lambda e: saltus.PAVG(e, np.eye(4)), lambda r: saltus.GWG(r), lambda r: saltus.UniformMH(r)],
    ids=["NCG", "AVG", "PAVG", "GWG", "UniformMH"],
)
def test_vmap_over_step_sizes_and_radii(make):
    """A grid of kernels in one call gives what each kernel gives alone."""
    target = rugged(COUNT_SPACE)
    settings = jnp.array([1, 2, 3])
    x = saltus.evaluate(target, jnp.zeros(4, jnp.int32))
    keys = jax.random.split(jax.random.key(0), 50)

    def walk(setting):
        kernel = make(setting)
        start = kernel.init(target, x.codes)
        return jax.lax.scan(lambda x, k: (lambda y: (y, y.codes))(kernel.step(k, target, x)[0]), start, keys)[1]

    together = jax.jit(jax.vmap(walk))(settings)
    for row, setting in zip(together, settings, strict=True):
        np.testing.assert_array_equal(row, jax.jit(walk)(setting))


def test_a_stack_of_kernels_is_a_pytree():
    target = rugged(COUNT_SPACE)
    stack = jax.vmap(saltus.NCG)(jnp.array([0.1, 1.0, 10.0]))
    x = saltus.evaluate(target, jnp.zeros(4, jnp.int32))
    info = jax.vmap(lambda k: k.step(jax.random.key(0), target, x)[1])(stack)
    assert info.acceptance_rate.shape == (3,)


def test_records_are_frozen_and_describe_themselves():
    kernel = saltus.NCG(0.5)
    with pytest.raises(AttributeError):
        kernel.step_size = 2.0
    assert repr(kernel) == "NCG(step_size=0.5)"
    assert repr(saltus.PAVG(1.0, np.eye(3), scale=-2)) == "PAVG(step_size=1, preconditioner=Dense(3), scale=-2)"
    assert repr(saltus.Gibbs("systematic")) == "Gibbs(scan='systematic')"
    assert kernel.step_size.dtype == jnp.float32
    assert not kernel.step_size.weak_type


def test_value_only_kernels_never_ask_for_a_gradient():
    """A log_prob whose derivative raises: Gibbs and UniformMH do not notice."""

    @jax.custom_jvp
    def f(s):
        return jnp.sum(s)

    @f.defjvp
    def _(primals, tangents):
        raise RuntimeError("a gradient was asked for")

    target = saltus.Target(f, COUNT_SPACE)
    for kernel in (saltus.Gibbs(), saltus.Gibbs("systematic"), saltus.UniformMH(2)):
        x = kernel.init(target, jnp.zeros(4, jnp.int32))
        kernel.step(jax.random.key(0), target, x)
    with pytest.raises(RuntimeError, match="a gradient was asked for"):
        saltus.NCG(0.5).init(target, jnp.zeros(4, jnp.int32))


def test_block_gibbs_never_evaluates_f():
    calls = []

    def log_prob(s):
        calls.append(1)
        return jnp.sum(s[:-1] * s[1:])

    H = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    target = saltus.Target(log_prob, COUNT_SPACE, structure=saltus.Quadratic(np.zeros(4), H))
    calls.clear()
    kernel = saltus.BlockGibbs()
    x = kernel.init(target, jnp.array([1, 1, 0, 1]))
    kernel.step(jax.random.key(0), target, x)
    assert not calls
    assert float(x.log_prob) == 1.0


def test_one_value_and_gradient_per_step():
    """The forward proposal is built from the cached local model: a step evaluates f once."""
    calls = []

    def log_prob(s):
        calls.append(1)
        return jnp.sum(jnp.sin(s))

    target = saltus.Target(log_prob, COUNT_SPACE)
    for kernel in (saltus.NCG(0.5), saltus.AVG(0.5), saltus.PAVG(0.5, np.eye(4)), saltus.GWG(), saltus.UniformMH(1)):
        x = kernel.init(target, jnp.zeros(4, jnp.int32))
        calls.clear()
        jax.make_jaxpr(lambda k, x, kernel=kernel: kernel.step(k, target, x))(jax.random.key(0), x)
        assert len(calls) == 1


@pytest.mark.parametrize("name", ["NCG", "GWG", "Gibbs-random", "Gibbs-systematic", "UniformMH-2"])
@pytest.mark.parametrize("differences", mostly(["gradient", "exact"], "gradient"))
def test_what_is_cached_is_what_is_recomputed_after_fifty_steps(name, differences):
    space = SPACES["one-hot"]
    target, kernel = rugged(space, differences=differences), KERNELS[name](space)

    @jax.jit
    def run(codes):
        x = jax.vmap(lambda c: kernel.init(target, c))(codes)
        step = lambda x, key: (jax.vmap(lambda k, x: kernel.step(k, target, x)[0])(jax.random.split(key, 32), x), None)  # noqa: E731
        x, _ = jax.lax.scan(step, x, jax.random.split(jax.random.key(1), 50))
        return x, jax.vmap(lambda c: kernel.init(target, c))(x.codes)

    cached, fresh = run(jax.vmap(space.random)(jax.random.split(jax.random.key(0), 32)))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5), cached, fresh)
