"""Reading a log_prob is sound: pairs that it does not list do not interact, at any state. Checked by enumeration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from by_hand import CASES, W
from hypothesis import HealthCheck, given, settings
from programs import D, programs, run

from saltus.structure.reading import MANY, read
from saltus.structure.reading.dependence import Dependence

STATES = [np.array(list(itertools.product(values, repeat=D))) for values in ((0.0, 1.0), (-1.0, 1.0))]


def reading_of(f, d=D):
    jaxpr = jax.make_jaxpr(f)(jax.ShapeDtypeStruct((d,), jnp.float32))
    return read(jaxpr.jaxpr, jaxpr.consts, [Dependence((d,), np.arange(d + 1), np.arange(d))], d, np.arange(d))


def pairs_of(reading, d=D):
    everybody = set(itertools.combinations(range(d), 2))
    return everybody if reading.pairs is None else set(map(tuple, reading.pairs.tolist()))


def interacting(values, d=D):
    """Pairs with a mixed difference that is not zero, from f at all 2^d states in order."""
    f = values.reshape((2,) * d)
    found = set()
    for i, j in itertools.combinations(range(d), 2):
        with np.errstate(invalid="ignore"):
            mixed = np.diff(np.diff(f, axis=i), axis=j)
        scale = np.abs(f[np.isfinite(f)]).max(initial=1)
        if (np.abs(mixed[np.isfinite(mixed)]) > 1e-5 * scale).any():
            found.add((i, j))
    return found


def check(program):
    reading = reading_of(lambda s: run(program, s, 0))
    for states in STATES:
        with np.errstate(all="ignore"):
            f = np.array([run(program, s, 1) for s in states])
        assert interacting(f) <= pairs_of(reading), (reading, interacting(f) - pairs_of(reading))
    assert not reading.failures
    if reading.degree == MANY:
        assert reading.why
    elif not reading.potential:  # a polynomial of degree 2 along any line
        rng = np.random.default_rng(0)
        start, along = rng.normal(size=(2, D))
        line = np.array([run(program, start + t * along, 1) for t in range(4)])
        assert abs(np.diff(line, 3)[0]) <= 1e-5 * np.abs(line).max(initial=1), reading
    return reading


quick = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@settings(quick, max_examples=100)
@given(programs())
def test_no_random_function_has_an_interaction_that_is_not_found(program):
    check(program)


@pytest.mark.full
@settings(quick, max_examples=2500)
@given(programs())
def test_2500_random_functions(program):
    check(program)


@pytest.fixture(scope="module")
def truths():
    """The interactions of every case by hand, in one program: on bits, and on spins."""
    functions = [case[1] for case in CASES.values()]
    every = jax.jit(jax.vmap(lambda s: jnp.stack([jnp.asarray(f(s), jnp.float32) for f in functions])))
    values = [np.asarray(every(jnp.asarray(states, jnp.float32)), np.float64) for states in STATES]
    return {name: set.union(*(interacting(v[:, i]) for v in values)) for i, name in enumerate(CASES)}


@pytest.mark.parametrize("name", CASES)
def test_functions_written_by_hand(name, truths):
    expected, f = CASES[name]
    reading = reading_of(f)
    assert truths[name] <= pairs_of(reading), "unsound"
    assert not reading.failures
    if expected == "hides":
        assert truths[name], "this case is meant to hide an interaction"
        assert reading.degree == MANY
        assert reading.why
    else:
        kind, tight = expected
        assert (reading.degree < MANY) == (kind == "quadratic")
        if tight:
            assert pairs_of(reading) == truths[name]


def test_there_are_sixty_by_hand_and_half_of_them_hide_something():
    assert len(CASES) >= 60
    assert sum(expected == "hides" for expected, _ in CASES.values()) >= 30


def test_a_rule_that_forgets_casts_is_caught(monkeypatch, truths):
    """The tests above can fail."""
    from saltus.structure.reading import rules

    monkeypatch.setitem(rules.RULES, "abs", rules.neg)
    f = CASES["abs of a sum"][1]
    assert not truths["abs of a sum"] <= pairs_of(reading_of(f))


def test_what_is_said_where_nothing_is_found():
    assert "abs" in reading_of(lambda s: -jnp.abs(s.sum() - 3)).why
    assert "test_reading.py" in reading_of(lambda s: -jnp.abs(s.sum() - 3)).why
    assert W.shape == (2, 2)
