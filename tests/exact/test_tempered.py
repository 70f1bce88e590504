"""Tempering leaves the product of exp(β_i f) invariant, by enumeration; a step has the transition matrix that was enumerated."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from grid import mostly

import saltus
from saltus._record import changed, record
from saltus.testing import rugged, stationary, transition_matrix
from saltus.testing.enumeration import widen

LADDERS = {"two-replicas": ([0, 1], 2), "two-replicas-three-sites": ([0, 1], 3), "three-replicas": ([0, 0.35, 1], 2)}


def products(kernel, target):
    """(states of all rungs (N, rungs, d), their exact probabilities, the matrix of `walk`), the cold rung changing fastest."""
    each = np.asarray(saltus.testing.enumerate_states(target))
    num, rungs = len(each), len(kernel.ladder)
    index = np.array(list(itertools.product(range(num), repeat=rungs)))
    law, walk = np.ones(1), np.ones((1, 1))
    parts = kernel.parts if len(kernel.parts) > 1 else kernel.parts * (rungs - 1)
    for i, beta in enumerate(np.asarray(kernel.ladder, np.float64)):
        with jax.enable_x64(getattr(kernel.reference, "dtype", None) == np.float64):
            rung = target.tempered(beta) if kernel.reference is None else kernel.path(target).at(beta)
        p = stationary(rung)
        law = np.kron(law, p)
        walk = np.kron(walk, np.tile(p, (num, 1)) if i == 0 else transition_matrix(parts[i - 1], rung))
    return each[index], law, walk


def swap_matrix(kernel, target, states, time):
    """Of one swap step, from the kernel's own probabilities and its own exchange of replicas."""
    with jax.enable_x64(True):
        kernel, target = widen(kernel), widen(target)
        at = jax.jit(jax.vmap(lambda c: changed(kernel.at_rungs(target, c), time=jnp.int32(time))))(jnp.asarray(states, jnp.int8))
        rates = np.asarray(jax.jit(jax.vmap(lambda x: kernel.swap_rates(target, x)[0]))(at))
        number = {s.tobytes(): i for i, s in enumerate(states.astype(np.int8))}
        matrix = np.zeros((len(states), len(states)))
        for pattern in itertools.product([False, True], repeat=rates.shape[1]):
            weight = np.prod(np.where(pattern, rates, 1 - rates), axis=1)
            ends = jax.jit(jax.vmap(lambda x, r, p=pattern: kernel.exchanged(x, jnp.asarray(p), r).codes))(at, rates)
            np.add.at(matrix, (np.arange(len(states)), [number[e.tobytes()] for e in np.asarray(ends)]), weight)
    return matrix


def invariance(kernel, target, time):
    """max |p K - p| of one step at this parity."""
    states, law, walk = products(kernel, target)
    swap = swap_matrix(kernel, target, states, time)
    np.testing.assert_allclose(swap.sum(axis=1), 1, atol=1e-12)
    return np.max(np.abs(law @ walk @ swap - law))


def one_step(kernel, target, start, time, num=2**14):
    """p-value of `step` from one state of all rungs, against the row of the enumerated matrix."""
    states, _, walk = products(kernel, target)
    row = (walk @ swap_matrix(kernel, target, states, time))[start]

    @jax.jit
    def ends(keys):
        x = changed(kernel.at_rungs(target, jnp.asarray(states[start], jnp.int8)), time=jnp.int32(time))
        return jax.vmap(lambda key: kernel.step(key, target, x)[0].codes)(keys)

    number = {s.tobytes(): i for i, s in enumerate(states.astype(np.int8))}
    counts = np.zeros(len(states))
    np.add.at(counts, [number[e.tobytes()] for e in np.asarray(ends(jax.random.split(jax.random.key(7), num)))], 1)
    often = num * row >= 10
    observed, expected = np.append(counts[often], counts[~often].sum()), np.append(num * row[often], num * row[~often].sum())
    return scipy.stats.chisquare(observed[expected > 0], expected[expected > 0]).pvalue


@pytest.mark.parametrize("name", LADDERS)
@pytest.mark.parametrize("part", mostly({"NCG": saltus.NCG(0.8), "Gibbs": saltus.Gibbs("systematic")}, "NCG"))
def test_the_product_of_all_rungs_is_invariant(name, part):
    ladder, sites = LADDERS[name]
    kernel, target = saltus.Tempered(part, ladder), rugged(saltus.Binary(sites))
    assert max(invariance(kernel, target, time) for time in (0, 1)) < 1e-12


STEPPED = {
    "one-kernel": lambda: saltus.NCG(0.8),
    "one-a-rung": lambda: (saltus.NCG(0.4), saltus.NCG(2.0)),
    "two-kinds": lambda: (saltus.Gibbs("systematic"), saltus.NCG(0.8)),
}


@pytest.mark.parametrize("part", mostly(STEPPED, "one-a-rung"))
def test_a_step_has_the_matrix_that_was_enumerated(part):
    kernel, target = saltus.Tempered(part(), [0, 0.35, 1]), rugged(saltus.Binary(2))
    assert min(one_step(kernel, target, start, time) for start, time in ((5, 0), (38, 1))) > 1e-6


def from_marginals(kind, part, ladder, space):
    """(kernel, target) in float64, with a reference far from uniform."""
    with jax.enable_x64(True):
        marginals = np.random.default_rng(3).dirichlet(np.full(space.num_values, 2.0), size=space.num_sites)
        return kind(part, ladder, marginals), rugged(space)


@pytest.mark.parametrize("space", [saltus.Binary(2), saltus.Ordinal(2, [-1.0, 0.3, 2.0])], ids=str)
@pytest.mark.parametrize("part", [saltus.NCG(0.8), saltus.Gibbs("systematic")], ids=repr)
def test_from_given_marginals_the_product_is_invariant(part, space):
    kernel, target = from_marginals(saltus.Tempered, part, [0, 0.35, 1] if space.num_values == 2 else [0, 1], space)
    assert max(invariance(kernel, target, time) for time in (0, 1)) < 1e-12


def test_from_given_marginals_a_step_has_the_matrix_that_was_enumerated():
    kernel = saltus.Tempered(saltus.NCG(0.8), [0, 0.35, 1], [0.2, 0.7])
    assert min(one_step(kernel, rugged(saltus.Binary(2)), start, time) for start, time in ((5, 0), (38, 1))) > 1e-6


@record
class ForgetsTheReference(saltus.Tempered):
    """Swaps by f, as if the reference were uniform."""

    def swap_rates(self, target, x):
        f = x.values + jax.vmap(self.path(target).base)(x.codes)
        return saltus.Tempered.swap_rates(self, target, changed(x, values=f))


def test_a_forgotten_reference_is_seen():
    kernel, target = from_marginals(ForgetsTheReference, saltus.NCG(0.8), [0, 0.35, 1], saltus.Binary(2))
    assert max(invariance(kernel, target, time) for time in (0, 1)) > 1e-4


@record
class TemperedHastings(saltus.NCG):
    """Tempers the proposal's part of the ratio too."""

    def log_ratio(self, target, x, y, noise=None, forward=None):
        f = y.log_prob - x.log_prob
        return f + target.beta * (saltus.NCG.log_ratio(self, target, x, y, noise, forward) - f)


@record
class SwapsByState(saltus.Tempered):
    """Which pairs are tried depends on the states and not on the number of the step."""

    def swap_rates(self, target, x):
        f, pairs = x.values, jnp.arange(len(self.ladder) - 1, dtype=jnp.int32)
        tried = pairs % 2 == jnp.sum(x.codes[-1], dtype=jnp.int32) % 2
        ratio = (self.ladder[1:] - self.ladder[:-1]) * (f[:-1] - f[1:])
        return jnp.where(tried, jnp.exp(jnp.minimum(ratio, 0)), 0), jnp.zeros((), jnp.int32)


@record
class Unscaled(saltus.Tempered):
    """Gives a rung the local model of f, and not of β f."""

    def _walk_rung(self, part, key, target, stamp, beta, codes, f, model, own):
        return super()._walk_rung(part, key, target, stamp, beta, codes, f, jax.tree.map(lambda leaf: leaf / beta, model), own)


@record
class WrongWay(saltus.Tempered):
    """Swaps by the inverse of the ratio."""

    def swap_rates(self, target, x):
        return saltus.Tempered.swap_rates(self, target, changed(x, values=-x.values))


def test_planted_bugs_are_seen_by_enumeration():
    target = rugged(saltus.Binary(2))
    three = [0, 0.35, 1]
    assert invariance(saltus.Tempered(TemperedHastings(0.8), three), target, 0) > 1e-4
    assert invariance(SwapsByState(saltus.NCG(0.8), three), target, 0) > 1e-4
    assert invariance(WrongWay(saltus.NCG(0.8), three), target, 1) > 1e-4


@pytest.mark.full
def test_a_local_model_that_is_not_scaled_is_seen_by_a_step():
    assert one_step(Unscaled(saltus.NCG(0.8), [0, 0.35, 1]), rugged(saltus.Binary(2)), 5, 0) < 1e-6


@pytest.mark.parametrize("differences", mostly(["gradient", "exact"], "gradient"))
def test_numbers_that_move_with_replicas_are_those_at_their_codes(differences):
    target = rugged(saltus.Ordinal(3, [-1.0, -0.5, 0.3, 2.0]), differences=differences)
    kernel = saltus.Tempered(saltus.NCG(0.5), [0, 0.02, 0.3, 1])
    x, step = kernel.init(target, jnp.zeros(3, jnp.int8), jax.random.key(0)), jax.jit(kernel.step)
    for t in range(60):
        x, _ = step(jax.random.key(t), target, x)
    again = kernel.refresh(target, x)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4), x, again)
    assert int(x.time) == 60
    assert x.log_prob == x.values[-1]


def test_what_is_counted():
    """With equal f every swap is accepted, and replicas travel straight: one round trip each 2 (M + 1) steps for each replica."""
    target = saltus.Target(lambda s: 0.0 * jnp.sum(s), saltus.Binary(2))
    kernel = saltus.Tempered(saltus.Gibbs(), [0, 0.3, 0.6, 1])
    x = first = kernel.init(target, jnp.zeros(2, jnp.int8), jax.random.key(0))
    walk = jax.jit(lambda x, first: jax.lax.fori_loop(0, 80, lambda t, x: kernel.step(jax.random.key(t), target, x)[0], x))
    x = walk(x, first)
    told = kernel.swaps(x)
    np.testing.assert_array_equal(told.rejection, [0, 0, 0])
    assert told.steps == 80
    assert 80 / 2 - 8 <= told.round_trips <= 80 / 2
    later = walk(x, x)
    assert kernel.swaps(later, since=x).round_trips == 40
    assert kernel.swaps(later, since=x).steps == 80


BAD = {
    "too short": (lambda: saltus.Tempered(saltus.Gibbs(), [1.0]), "not a ladder"),
    "no zero": (lambda: saltus.Tempered(saltus.Gibbs(), [0.1, 1.0]), "from 0 to 1"),
    "no one": (lambda: saltus.Tempered(saltus.Gibbs(), [0, 0.9]), "from 0 to 1"),
    "falls": (lambda: saltus.Tempered(saltus.Gibbs(), [0, 0.9, 0.5, 1]), "does not increase"),
    "NaN": (lambda: saltus.Tempered(saltus.Gibbs(), [0, np.nan, 1]), "not finite"),
    "no kernel": (lambda: saltus.Tempered(3, [0, 1]), "not a kernel"),
    "too few kernels": (lambda: saltus.Tempered([saltus.Gibbs()], [0, 0.5, 1]), "one kernel for each rung"),
    "weights": (lambda: saltus.Tempered(saltus.JumpProcess(), [0, 1]), "weighs its draws"),
    "no marginals": (lambda: saltus.Tempered(saltus.Gibbs(), [0, 1], [[0.5, 0.6]]), "not made of probabilities"),
    "excludes": (lambda: saltus.Tempered(saltus.Gibbs(), [0, 1], [0.0, 0.4]), "excludes a possible value"),
    "another space": (
        lambda: saltus.find_ladder(rugged(saltus.Binary(3)), saltus.Gibbs(), reference=[0.3, 0.4]),
        "does not fit the space",
    ),
    "lost structure": (
        lambda: saltus.find_ladder(saltus.targets.ising((3, 3), 0.2), saltus.BlockGibbs(), reference=np.full(9, 0.4)),
        "structure|quadratic",
    ),
}


@pytest.mark.parametrize(("make", "text"), BAD.values(), ids=BAD)
def test_bad_input(make, text):
    with pytest.raises(saltus.KernelError, match=text):
        make()


def test_a_class_is_tuned_before_it_steps():
    with pytest.raises(saltus.KernelError, match="not chosen"):
        saltus.Tempered(saltus.NCG, [0, 1]).init(rugged(saltus.Binary(2)), jnp.zeros(2, jnp.int8))
