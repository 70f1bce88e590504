"""Kernels made of kernels: their steps are those of their parts, one after the other or one of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grid import SPACES, mostly

import saltus
from saltus import random
from saltus._record import record
from saltus.testing import check_kernel, rugged

PARTS = {
    "ncg-gibbs": [saltus.NCG(0.5), saltus.Gibbs()],
    "gibbs-ncg-gwg": [saltus.Gibbs(), saltus.NCG(0.5), saltus.GWG()],
    "all-sorts": [saltus.Informed(saltus.NCG(0.5), "exact"), saltus.AVG(0.6), saltus.Gibbs()],
}


def chains(target, num=64):
    codes = jax.jit(jax.vmap(target.space.random))(jax.random.split(jax.random.key(5), num))
    return codes.astype(target.space.code_dtype)


def walked(kernel, target, codes, steps=3):
    """Codes after some steps of many chains."""

    def one(x, t):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(1), t), len(codes))
        return jax.vmap(lambda k, x: kernel.step(k, target, x))(keys, x)

    def walk(codes):
        return jax.lax.scan(one, jax.vmap(lambda c: kernel.init(target, c))(codes), jnp.arange(steps))[0]

    return jax.jit(walk)(codes)


def by_hand(step, codes, steps=3):
    """The same by step(key, codes) -> codes, which begins each part anew from the codes alone."""

    def one(codes, t):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(1), t), len(codes))
        return jax.vmap(step)(keys, codes), None

    return jax.jit(lambda: jax.lax.scan(one, codes, jnp.arange(steps))[0])()


@pytest.mark.parametrize("parts", mostly(PARTS, "all-sorts"))
def test_a_cycle_is_its_parts_in_turn_draw_for_draw(parts):
    target = rugged(SPACES["ordinal"])

    def in_turn(key, codes):
        for part, own in zip(parts, random.split(key, len(parts)), strict=True):
            codes = part.step(own, target, part.init(target, codes))[0].codes
        return codes

    codes = chains(target)
    used = walked(saltus.Cycle(parts), target, codes)
    np.testing.assert_array_equal(used.codes, by_hand(in_turn, codes))
    np.testing.assert_allclose(used.log_prob, jax.vmap(target.value)(used.codes), rtol=1e-5, atol=1e-5)


def test_a_mixture_is_one_of_its_parts_draw_for_draw():
    target, weights, parts = rugged(SPACES["binary"]), jnp.asarray([0.7, 0.3]), PARTS["ncg-gibbs"]

    def one_of(key, codes):
        choice_key, move_key = random.split(key)
        moved = [part.step(move_key, target, part.init(target, codes))[0].codes for part in parts]
        return jnp.stack(moved)[random.categorical(choice_key, weights)]

    codes = chains(target)
    used = walked(saltus.Mixture(parts, weights), target, codes)
    np.testing.assert_array_equal(used.codes, by_hand(one_of, codes))


@pytest.mark.full
def test_parts_that_look_alike_are_compiled_once_and_step_the_same():
    target = rugged(SPACES["binary"])
    alike, other = saltus.Cycle.cyclical(2.0, 0.1, 3), saltus.Cycle.cyclical(2.0, 0.1, 3)
    assert alike._alike()
    object.__setattr__(other, "parts", (*other.parts[:2], saltus.Informed(other.parts[2], "gradient")))  # the same, seen otherwise
    assert not other._alike()
    codes = chains(target)
    np.testing.assert_array_equal(walked(alike, target, codes).codes, walked(other, target, codes).codes)


def test_a_cyclical_schedule_is_the_published_one():
    schedule = saltus.Cycle.cyclical(2.0, 0.2, 4)
    eps = [float(part.step_size) for part in schedule.parts]
    np.testing.assert_allclose(eps, [2.0, 1 + np.cos(np.pi / 4), 1.0, 1 - np.cos(np.pi / 4)], rtol=1e-6)
    weights = [float(part.gradient_weight) for part in schedule.parts]
    np.testing.assert_allclose(weights, [0.95 - 0.45 * (2.0 - e) / 1.8 for e in eps], rtol=1e-6)


def test_nothing_is_evaluated_twice():
    """Of a cycle of two that share the gradient, and of one that must make it anew."""
    target = rugged(SPACES["binary"])
    assert saltus.Cycle([saltus.NCG(0.5), saltus.GWG()]).evaluations(target) == 2
    assert saltus.Cycle([saltus.NCG(0.5), saltus.Gibbs()]).evaluations(target) == 3
    counted = []

    def log_prob(s):
        jax.debug.callback(lambda: counted.append(1))
        return jnp.sum(jnp.sin(s))

    plain = saltus.Target(log_prob, saltus.Binary(3))
    kernel = saltus.Cycle([saltus.NCG(0.5), saltus.GWG()])
    x = jax.jit(kernel.init)(plain, jnp.zeros(3, jnp.int8))
    jax.effects_barrier()
    counted.clear()
    jax.jit(kernel.step)(jax.random.key(0), plain, x)
    jax.effects_barrier()
    assert len(counted) == 2


CERTIFIED = {
    "cycle": lambda: saltus.Cycle([saltus.NCG(0.5), saltus.Gibbs()]),
    "mixture": lambda: saltus.Mixture([saltus.GWG(), saltus.AVG(0.6)], [0.3, 0.7]),
    "nested": lambda: saltus.Mixture([saltus.Cycle([saltus.NCG(0.5), saltus.GWG()]), saltus.Gibbs()]),
    "cyclical": lambda: saltus.Cycle.cyclical(2.0, 0.1, 4),
}


@pytest.mark.full
@pytest.mark.parametrize("kernel", CERTIFIED.values(), ids=CERTIFIED)
def test_compositions_are_certified(kernel):
    check_kernel(kernel(), SPACES["binary"])


@record
class ChosenByTheState(saltus.Mixture):
    """The part that moves depends on where the chain is."""

    def choice(self, key, x):
        return (jnp.sum(x.codes) % 2).astype(jnp.int32)


@pytest.mark.full
def test_a_part_chosen_by_the_state_is_seen_by_the_stationary_start():
    with pytest.raises(saltus.CheckError, match=r"FAILED \(.*stationary start"):
        check_kernel(ChosenByTheState([saltus.NCG(2.0), saltus.Gibbs()]), SPACES["binary"], num_chains=2**14, battery=False)


@pytest.mark.full
def test_parts_that_are_classes_are_tuned():
    target = rugged(SPACES["binary"])
    run = saltus.sample(target, saltus.Cycle([saltus.NCG, saltus.Gibbs()]), num_draws=100, num_chains=2, progress=False)
    kernel = saltus.kernel_of(run)
    assert isinstance(kernel.parts[0], saltus.NCG)
    assert not kernel.unfinished


BAD = {
    "empty": lambda: saltus.Cycle([]),
    "no list": lambda: saltus.Cycle(saltus.NCG(0.5)),
    "no kernel": lambda: saltus.Cycle([saltus.NCG(0.5), 3]),
    "negative weight": lambda: saltus.Mixture([saltus.Gibbs(), saltus.GWG()], [1, -1]),
    "no weight": lambda: saltus.Mixture([saltus.Gibbs(), saltus.GWG()], [0, 0]),
    "too few weights": lambda: saltus.Mixture([saltus.Gibbs(), saltus.GWG()], [1]),
    "schedule upside down": lambda: saltus.Cycle.cyclical(0.1, 2.0),
    "unfinished": lambda: saltus.Cycle([saltus.NCG]).init(rugged(SPACES["binary"]), jnp.zeros(4, jnp.int8)),
    "a race": lambda: saltus.sample(rugged(SPACES["binary"]), [saltus.GWG, saltus.Cycle([saltus.NCG])], progress=False),
    "a part that does not fit": lambda: saltus.sample(
        rugged(SPACES["binary"]), saltus.Cycle([saltus.NCG(0.5), saltus.BlockGibbs()]), progress=False
    ),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_bad_compositions_are_told(bad):
    with pytest.raises(saltus.KernelError):
        bad()
