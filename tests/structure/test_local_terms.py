"""f as a sum of local terms: exact differences from a few evaluations are those of one evaluation each."""

import types
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from by_hand import CASES
from hypothesis import HealthCheck, given, settings
from programs import D, programs, run

import saltus
from saltus.local import brute_force, evaluated_rows
from saltus.structure import LocalTerms
from saltus.structure import local_terms as terms
from saltus.structure.reading.dependence import Dependence

SPACE = saltus.Spin(D)


def terms_in(f, d=D):
    state = [Dependence((d,), np.arange(d + 1), np.arange(d))]
    return terms.find_terms(f, saltus.Spin(d), None, state, np.arange(d))[0]


def check(f, value):
    """value: f in numpy. True where terms were found."""
    found = terms_in(f)
    if found is None:
        return False
    seen = types.SimpleNamespace(space=SPACE, params=None, tempering=lambda x: x)
    rng = np.random.default_rng(0)
    for _ in range(3):
        codes = rng.integers(2, size=D)
        told = np.asarray(found.all_changes(seen, jnp.asarray(codes), 2), np.float64)[:, 0]
        with np.errstate(all="ignore"):
            here = value(2.0 * codes - 1)
            true = np.array([value(2.0 * np.where(np.arange(D) == i, 1 - codes, codes) - 1) - here for i in range(D)])
        finite = np.isfinite(true)
        np.testing.assert_allclose(told[finite], true[finite], atol=1e-4 * max(np.abs(true[finite]).max(initial=1), abs(here), 1))
    return True


quick = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@settings(quick, max_examples=15)
@given(programs())
def test_terms_of_random_functions_give_their_exact_differences(program):
    check(lambda s: run(program, s, 0), lambda s: run(program, s, 1))


@pytest.mark.full
@settings(quick, max_examples=1000)
@given(programs())
def test_terms_of_1000_random_functions(program):
    check(lambda s: run(program, s, 0), lambda s: run(program, s, 1))


LOCAL = {
    "pairs": lambda s: jnp.sum(jnp.tanh(s[1:] * s[:-1] + 0.3 * s[1:])),
    "two sums": lambda s: jnp.sum(jnp.exp(0.3 * s[::2] * s[1::2])) - 2 * jnp.sum(jnp.abs(s - 0.5)),
    "a dot product": lambda s: s[1:] @ jnp.tanh(s[:-1]),
    "scaled, shifted, divided": lambda s: -(3 + jnp.sum(jnp.maximum(s[1:], s[:-1]) * jnp.arange(5.0)) / 7) * 2,
    "two axes": lambda s: jnp.sum(jnp.sum(jnp.abs(s.reshape(3, 2)[:, :1] - s.reshape(3, 2)[:, 1:]), axis=1)),
    "sums of sums": lambda s: jnp.sum(jnp.tanh(s[1:] - s[:-1]) + jnp.cos(s[1:]) - jnp.concatenate([s[:1], s[3:5], s[:2]]) ** 3),
}


@pytest.mark.parametrize("name", LOCAL)
def test_terms_are_found_where_they_are_local(name):
    f = LOCAL[name]
    assert check(f, lambda s: float(f(jnp.asarray(s, jnp.float32))))


HIDES = [name for name, (expected, _) in CASES.items() if expected == "hides"]


@pytest.mark.parametrize("name", [*HIDES[3::7], "half precision"])
def test_functions_that_hide_something(name):
    f = CASES[name][1]
    check(f, lambda s: float(f(jnp.asarray(s, jnp.float32))))


def lattice(s):
    x = s.reshape(4, 4)
    return jnp.sum(jnp.tanh(x * jnp.roll(x, 1, 0))) - 0.5 * jnp.sum(jnp.abs(x - jnp.roll(x, 1, 1)))


def test_a_target_uses_them_and_says_so():
    target = saltus.Target(lattice, saltus.Ordinal(16, [-1.0, 0.0, 2.0]))
    found = target.find(LocalTerms)
    assert found.num_colours == 2
    assert "sum of 32 local terms" in str(target)
    exact = target.replace(differences="exact")
    assert exact.differences.evaluations_on(exact) == 2 + 2 * 2
    codes = jnp.asarray(np.random.default_rng(1).integers(3, size=16))
    for sites in (jnp.arange(16), *target.find(saltus.Graph).blocks, jnp.asarray([3, 4, 9])):  # the last share terms
        both = [rows(target, codes, target.value(codes), sites)[0] for rows in (evaluated_rows, brute_force)]
        np.testing.assert_allclose(*both, atol=1e-5)


def test_terms_follow_params_and_temperature():
    target = saltus.Target(lambda p, s: jnp.sum(p * jnp.abs(s[1:] - s[:-1])), saltus.Spin(8), jnp.arange(7.0))
    other = target.replace(params=-target.params).tempered(0.5)
    codes = jnp.asarray([0, 1, 1, 0, 1, 0, 0, 0])
    both = [rows(other, codes, other.value(codes), jnp.arange(8))[0] for rows in (evaluated_rows, brute_force)]
    np.testing.assert_allclose(*both, atol=1e-5)
    assert np.ptp(both[1]) > 1


@pytest.mark.parametrize("kernel", [saltus.Gibbs("coloured"), saltus.Informed(saltus.GWG(), "exact")], ids=repr)
def test_samplers_that_use_terms_are_certified(kernel):
    target = saltus.Target(lambda s: 0.8 * jnp.sum(jnp.maximum(s[1:], s[:-1] ** 2) * jnp.arange(1.0, 4.0)), saltus.Spin(4))
    assert target.find(LocalTerms) is not None
    saltus.testing.check_kernel(kernel, target, battery=False)


def test_impossible_and_undefined_values_stay_what_they_are():
    target = saltus.Target(lambda s: jnp.sum(jnp.log(s[1:] + s[:-1] + 0.5)), saltus.Ordinal(6, [-0.25, 0.0, 1.0]), verify=False)
    assert target.find(LocalTerms) is not None
    codes = jnp.asarray([1, 1, 2, 1, 2, 1])
    for sites in (jnp.arange(6), target.find(saltus.Graph).blocks[0]):
        f = target.value(codes)
        (a, lost_a), (b, lost_b) = (rows(target, codes, f, sites) for rows in (evaluated_rows, brute_force))
        np.testing.assert_allclose(a, b, atol=1e-5)
        assert lost_a == lost_b


def test_a_term_that_is_overlooked_is_noticed(monkeypatch):
    """A planted bug: the last term of every site is forgotten. The test at random states drops what was found."""
    right = terms._lists

    def forgetful(owner, site, d, num_terms):
        lists = right(owner, site, d, num_terms)
        return np.where(lists == num_terms - 1, num_terms, lists)

    monkeypatch.setattr(terms, "_lists", forgetful)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        target = saltus.Target(lambda s: jnp.sum(jnp.abs(s[1:] - s[:-1])), saltus.Spin(7))
    assert target.find(LocalTerms) is None
    assert any("not the sum of the terms" in str(each.message) for each in told)
