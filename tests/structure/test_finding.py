"""What is found in a log_prob is right, follows params, is dropped where it fails, and is used by exact closed forms."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.spaces import Product
from saltus.structure import BoundQuadratic, Graph, finding
from saltus.structure.colouring import quick_colours, two_colours
from saltus.structure.reading import MANY, Reading

rng = np.random.default_rng(0)
H = rng.normal(size=(4, 4)).astype(np.float32)


def chain(s):
    return 0.8 * jnp.sum(s[1:] * s[:-1]) + 0.3 * s[0]


def glass(s):
    return 0.5 * s @ H @ s + s @ H[0]


def with_terms(params, s):
    return s @ params @ s + jnp.sum(jnp.where(s > 0.4, 1.5, jnp.abs(s)))


def categories(s):
    return jnp.sum(s[1:] * s[:-1] * np.arange(3.0)) + s[0, 1] * s[0, 2] + 0.5 * s[0, 1]


def clocks(s):
    return jnp.sum(s[1:] * s[:-1]) + s[0, 0] * s[0, 1] + s[1, 0] ** 2


TARGETS = {
    "chain": lambda: saltus.Target(chain, saltus.Spin(5)),
    "glass": lambda: saltus.Target(glass, saltus.Ordinal(4, [-1.0, 0.0, 1.5])),
    "with terms": lambda: saltus.Target(with_terms, saltus.Ordinal(4, [-1.0, 0.0, 1.5]), jnp.asarray(H)),
    "categories": lambda: saltus.Target(categories, saltus.Categorical(3, 3)),
    "clocks": lambda: saltus.Target(clocks, saltus.Clock(3, 4)),
}


@pytest.mark.parametrize("name", TARGETS)
def test_the_quadratic_that_is_found_is_f(name):
    target = TARGETS[name]()
    codes = target.space.enumerate()
    quadratic = target.find(BoundQuadratic)
    told = jax.vmap(lambda c: quadratic.value(target.space, c, saltus.structure.fields.pull(quadratic, target.space, c)))(codes)
    np.testing.assert_allclose(told, jax.vmap(target.value)(codes), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", TARGETS)
def test_exact_differences_of_what_is_found_are_those_of_log_prob(name):
    target = TARGETS[name]().replace(differences="exact")
    plain = target.replace(structure=None)
    for codes in target.space.enumerate()[::7]:
        np.testing.assert_allclose(target.moves(target.point(codes)).scores, plain.moves(plain.point(codes)).scores, atol=2e-5)


def test_what_is_found_follows_params_within_jit_and_outside():
    target = TARGETS["with terms"]()
    other = jnp.asarray(2 * H + 1)
    new = target.replace(params=other)
    within = jax.jit(lambda t, p: t.replace(params=p).structure)(target, other)
    again = saltus.Target(with_terms, target.space, other)
    for structure in (within, again.structure):
        for one, two in zip(jax.tree.leaves(new.structure[0].potentials), jax.tree.leaves(structure[0].potentials), strict=True):
            np.testing.assert_allclose(one, two, atol=1e-4)
        np.testing.assert_allclose(new.structure[0].coupling.array, structure[0].coupling.array, atol=1e-5)
    assert jax.tree.structure(new) == jax.tree.structure(again)  # so nothing recompiles


def test_zeros_of_params_are_not_zeros():
    """They may be other numbers tomorrow."""
    target = saltus.Target(lambda p, s: s @ p @ s, saltus.Spin(4), jnp.zeros((4, 4)))
    assert target.find(Graph) is None
    moved = target.replace(params=jnp.asarray(H))
    np.testing.assert_allclose(moved.find(BoundQuadratic).coupling.array, (H + H.T) * (1 - np.eye(4)), atol=1e-6)


def test_another_log_prob_or_shape_is_read_again():
    target = saltus.Target(chain, saltus.Spin(5))
    assert target.replace(log_prob=lambda s: jnp.abs(s.sum())).structure == ()
    assert target.replace(space=saltus.Spin(6)).find(Graph).incidence.num_edges == 5
    weighted = saltus.Target(lambda p, s: jnp.sum(p * s[: len(p)] * s[1 : len(p) + 1]), saltus.Spin(6), jnp.ones(2))
    assert weighted.find(Graph).incidence.num_edges == 2
    assert weighted.replace(params=jnp.ones(5)).find(Graph).incidence.num_edges == 5


SEEN = jnp.array([3.0, 0.0, 2.0, 5.0])


def ponds(n):
    """At least as many as were seen: the other values of a site are impossible."""
    some = jnp.where(n >= SEEN, n * jnp.log(0.4) - jnp.sqrt(jnp.maximum(n - SEEN, 0)), -jnp.inf)
    return jnp.sum(some) - 0.05 * jnp.sum((n[1:] - n[:-1]) ** 2)


@pytest.mark.parametrize(
    ("log_prob", "space"),
    [
        (ponds, saltus.Ordinal(4, range(8))),
        (lambda s: jnp.where(s[0] > 0, -jnp.inf, 0) + jnp.sum(s[1:] * s[:-1]), saltus.Spin(5)),
        (lambda s: jnp.sum(jnp.log(s)) - s @ jnp.ones((4, 4)) @ s, saltus.Ordinal(4, range(5))),
    ],
    ids=["the first value", "another", "dense"],
)
def test_impossible_values_of_a_site_are_no_quadratic_form_and_no_alarm(log_prob, space):
    """It was three raw RuntimeWarnings and "please report this function"; of a dense form, a KernelError."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        target = saltus.Target(log_prob, space)
    assert target.find(BoundQuadratic) is None
    assert "not finite at some values of a site" in str(target)


def test_what_does_not_hold_is_dropped_with_a_warning(monkeypatch):
    """A reading that were wrong: that nothing interacts, and that f is linear."""
    nothing = Reading(np.zeros((0, 2), np.int64), 1, False, "")
    monkeypatch.setattr(finding, "read", lambda *_: nothing)
    with pytest.warns(UserWarning, match="does not hold at random states"):
        target = saltus.Target(lambda s: s[0] * s[1] * 3, saltus.Spin(5))
    assert target.structure == ()
    assert "not found" in str(target)
    monkeypatch.undo()
    assert MANY == 3


def test_nothing_is_looked_for_where_that_was_asked():
    assert saltus.Target(chain, saltus.Spin(5), structure=None).structure == ()
    with pytest.raises(saltus.TargetError, match="structure"):
        saltus.Target(chain, saltus.Spin(5), structure="find")


def test_print_says_what_was_found_and_what_it_is_for():
    text = str(saltus.Target(chain, saltus.Spin(5)))
    assert text.startswith("Target(chain, Spin(5))\n")
    assert "4 of 10 pairs" in text
    assert "2 colours" in text
    assert "\n" not in repr(saltus.Target(chain, saltus.Spin(5)))
    assert "abs" in str(saltus.Target(lambda s: jnp.abs(s.sum() - 2), saltus.Spin(5)))


def test_products_have_a_graph():
    space = Product(b=saltus.Binary(2), a=saltus.Categorical(2, 3))
    target = saltus.Target(lambda s: jnp.sum(s["b"][0] * s["a"][1]) + s["b"][1], space)
    assert np.asarray(target.find(Graph).incidence.edges).tolist() == [[0, 3]]


def test_a_target_built_within_jit_looks_for_nothing():
    @jax.jit
    def f(J):
        target = saltus.Target(lambda s: s @ J @ s, saltus.Spin(4))
        assert target.structure == ()
        return target.value(jnp.zeros(4, jnp.int32))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(jnp.asarray(H))


@pytest.mark.parametrize("shape", [(4, 6), (5, 5), (1, 7)])
def test_quick_colours_are_colours(shape):
    index = np.arange(np.prod(shape)).reshape(shape)
    edges = np.concatenate([np.stack([index.ravel(), np.roll(index, -1, a).ravel()], 1) for a in (0, 1) if shape[a] > 2])
    colours = quick_colours(edges, index.size)
    assert (colours[edges[:, 0]] != colours[edges[:, 1]]).all()
    assert (two_colours(edges, index.size) is not None) == all(n % 2 == 0 for n in shape if n > 2)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("chain", saltus.Gibbs("coloured")),
        ("chain", saltus.Gibbs("systematic")),
        pytest.param("with terms", saltus.Gibbs("systematic"), marks=pytest.mark.full),
        pytest.param("categories", saltus.Gibbs("coloured"), marks=pytest.mark.full),
        pytest.param("clocks", saltus.Gibbs("systematic"), marks=pytest.mark.full),
        pytest.param("chain", saltus.BlockGibbs(), marks=pytest.mark.full),
        pytest.param("categories", saltus.GWG(), marks=pytest.mark.full),
    ],
)
def test_kernels_on_what_was_found_are_exact(name, kernel):
    target = TARGETS[name]()
    target = target.replace(differences="exact") if isinstance(kernel, saltus.GWG) else target
    saltus.testing.check_kernel(kernel, target, battery=False)


@pytest.mark.parametrize("name", ["with terms", "categories"])
def test_a_sweep_in_order_draws_each_site_from_its_conditional(name):
    """From 20 sites up blocks follow one another: the codes are those of a sweep by hand, with the same uniforms."""
    from saltus import random

    d = 21
    big = jnp.asarray(rng.normal(size=(d, d)) * 0.3, jnp.float32)
    if name == "categories":
        target = saltus.Target(lambda s: jnp.sum(big[:, :, None] * s[:, None] * s[None]), saltus.Categorical(d, 3))
    else:
        target = saltus.Target(with_terms, saltus.Ordinal(d, [-1.0, 0.0, 1.5]), big)
    kernel, key = saltus.Gibbs("systematic"), jax.random.key(1)
    codes = target.space.random(jax.random.key(0))
    swept, _ = jax.jit(kernel.step)(key, target, kernel.init(target, codes))
    u = random.unit(key, (random.num_units(3), d))
    value = jax.jit(target.value)
    for i in range(d):
        table = jnp.stack([value(codes.at[i].set(v)) for v in range(3)])
        codes = codes.at[i].set(target.space.form.chosen(codes[i : i + 1], (table - table.max())[:, None], u[:, i : i + 1])[0])
    np.testing.assert_array_equal(swept.codes, codes)
    np.testing.assert_allclose(swept.log_prob, value(codes), rtol=1e-4)
