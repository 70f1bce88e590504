r"""What a target claims about its log_prob, tested at random states where it is built; what is not so is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._compiling import program
from .errors import TargetError
from .local import brute_force
from .structure import BoundQuadratic, Graph, LocalTerms


def verify_structure(target: Any) -> None:
    """Test every claim at random states: TargetError names the first that is false."""
    rng = np.random.default_rng(20220)
    for part in target.structure:
        _verify_part(part, target, rng)


def _verify_part(part: Any, target: Any, rng: np.random.Generator) -> None:
    if isinstance(part, BoundQuadratic):
        _verify_quadratic(part, target, rng)
    elif isinstance(part, LocalTerms):
        _verify_terms(part, target, rng)
    else:
        _verify_graph(part, target, rng)


def failing(target: Any) -> dict[type, str]:
    """{kind of structure: what is wrong with it} for found parts that do not hold; f is evaluated once for all of them."""
    rng, space = np.random.default_rng(20220), target.space
    quadratic, graph = target.find(BoundQuadratic), target.find(Graph)
    states, tried = _random(space, rng, _num_states(space)), None if graph is None else _changed_pairs(graph, space, rng)
    if not target.structure:
        return {}
    terms = target.find(LocalTerms)
    moved = None if terms is None else _moved_sites(target, rng)
    several = [] if tried is None else [tried[1].reshape(-1, space.num_sites)]
    whole = np.concatenate([states, *several, *([] if moved is None else [moved[1]])])
    f = np.asarray(_values(target, jnp.asarray(whole, jnp.int32)), np.float64)
    middle = len(whole) - (0 if moved is None else len(moved[1]))
    wrong: dict[type, str] = {}
    for kind, test in (
        (BoundQuadratic, quadratic and (lambda: _compare_quadratic(target, f[: len(states)], _told(quadratic, space, states)))),
        (Graph, tried and (lambda: _compare_graph(target, tried[0], f[len(states) : middle].reshape(4, -1)))),
        (LocalTerms, moved and (lambda: _compare_terms(target, terms, moved, f[middle:]))),
    ):
        try:
            if test:
                test()
        except TargetError as error:
            wrong[kind] = " ".join(str(error).split())
    return wrong


def _told(part: BoundQuadratic, space: Any, states: np.ndarray) -> np.ndarray:
    """What the quadratic says f is: in numpy, which needs no compiling."""
    s = space.numbers(states)
    on_site = np.take_along_axis(np.asarray(part.potentials, np.float64)[None], states[..., None], axis=2).sum((1, 2))
    return float(part.constant) + on_site + part.coupling.form(s)


def _random(space: Any, rng: np.random.Generator, num: int) -> np.ndarray:
    return rng.integers(space.num_values, size=(num, space.num_sites)) % space.num_values_per_site


@program(once=True)
def _values(target: Any, states: jax.Array) -> jax.Array:
    return jax.vmap(target.value)(states)


@program()
def _claims(target: Any, part: BoundQuadratic, states: jax.Array) -> jax.Array:
    return jax.vmap(lambda c: part.value(target.space, c, part.coupling.matvec(target.space.ravel(target.space.embed(c)))))(states)


def _tolerance(target: Any, *values: np.ndarray) -> float:
    """Rounding of sums of about n terms. float32's in both precisions: a log_prob may hold float32 constants."""
    return float(np.finfo(np.float32).eps) * (8 * sum(_largest(v) for v in values) + 4 * target.space.size)


def _largest(values: np.ndarray) -> float:
    return float(np.abs(values[np.isfinite(values)]).max(initial=0))


def _verify_quadratic(part: BoundQuadratic, target: Any, rng: np.random.Generator) -> None:
    states = jnp.asarray(_random(target.space, rng, _num_states(target.space)), jnp.int32)
    f, told = (np.asarray(v, np.float64) for v in (_values(target, states), _claims(target, part, states)))
    _compare_quadratic(target, f, told)


def _num_states(space: Any) -> int:
    return max(min(16, 2**22 // space.size), 4)


def _compare_quadratic(target: Any, f: np.ndarray, told: np.ndarray) -> None:
    with np.errstate(invalid="ignore"):
        true, claimed = np.diff(f), np.diff(told)
        error = np.abs(true - claimed)
    if not (error <= _tolerance(target, f, told)).all():  # not <=: a log_prob of -inf or NaN is no quadratic
        i = int(np.argmax(~(error <= _tolerance(target, f, told))))
        raise TargetError(
            "`structure` says quadratic, but log_prob is not this quadratic.",
            expected=f"f(s') - f(s) = {claimed[i]:.6g} between two random states",
            found=f"{true[i]:.6g}",
            hint="saltus.Quadratic(b, H) means b·s + ½ sᵀHs: note the ½, and that H_ij = H_ji both count",
        )


def _verify_graph(part: Graph, target: Any, rng: np.random.Generator) -> None:
    """Sites that are no neighbours do not interact: f(both changed) - f(one) - f(other) + f(neither) = 0."""
    tried = _changed_pairs(part, target.space, rng)
    if tried is not None:
        pairs, states = tried
        f = _values(target, jnp.asarray(states.reshape(-1, target.space.num_sites), jnp.int32))
        _compare_graph(target, pairs, np.asarray(f, np.float64).reshape(4, -1))


def _changed_pairs(part: Graph, space: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray] | None:
    """(p, 2) pairs of sites without an edge, and (4, p, d) states: as they are, either changed, both changed."""
    most = max(min(64, 2**20 // space.size), 4)
    pairs = _strangers(np.asarray(part.incidence.edges), space.num_sites, rng, most)
    if not len(pairs):
        return None
    pairs = np.resize(pairs, (most, 2))  # few pairs are tried several times, each from another state
    rows = np.arange(most)
    states = np.repeat(_random(space, rng, most)[None], 4, axis=0)
    sizes = space.num_values_per_site[pairs]
    new = (states[0][rows[:, None], pairs] + 1 + rng.integers(0, space.num_values - 1, size=(most, 2)) % (sizes - 1)) % sizes
    for change, end in ((1, 0), (2, 1), (3, 0), (3, 1)):
        states[change, rows, pairs[:, end]] = new[:, end]
    return pairs, states


def _compare_graph(target: Any, pairs: np.ndarray, f: np.ndarray) -> None:
    f = np.where(np.isfinite(f).all(axis=0), f, 0)  # a pair of impossible states says nothing
    mixed = f[3] - f[1] - f[2] + f[0]
    wrong = np.abs(mixed) > 2 * _tolerance(target, f)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise TargetError(
            f"`structure` says that sites {pairs[i, 0]} and {pairs[i, 1]} do not interact, but they do.",
            expected="f(both changed) - f(one) - f(other) + f(neither) = 0",
            found=f"{mixed[i]:.6g}",
            hint="list every pair of sites that appears together in a term of log_prob",
        )


def _verify_terms(part: LocalTerms, target: Any, rng: np.random.Generator) -> None:
    moved = _moved_sites(target, rng)
    _compare_terms(target, part, moved, np.asarray(_values(target, jnp.asarray(moved[1], jnp.int32)), np.float64))


def _moved_sites(target: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(p,) sites, and (1 + p, d) states: a random one, and the same with each of the sites changed."""
    space = target.space
    sites = rng.permutation(space.num_sites)[: max(min(16, 2**20 // space.size), 1)]
    base = _random(space, rng, 1) if target.initial is None else np.asarray(target.initial)[None]
    states, rows = np.repeat(base, 1 + len(sites), axis=0), np.arange(len(sites))
    states[1 + rows, sites] = (states[0, sites] + 1) % space.num_values_per_site[sites]
    return sites, states


def _compare_terms(target: Any, part: LocalTerms, moved: tuple[np.ndarray, np.ndarray], f: np.ndarray) -> None:
    """A site changes no term but its own, and f by as much as these."""
    sites, states = moved
    terms = np.asarray(_term_values(target, part, jnp.asarray(states, jnp.int32)), np.float64)
    own = np.zeros((len(sites), part.num_terms + 1), bool)
    own[np.arange(len(sites))[:, None], np.asarray(part.lists)[sites]] = True
    with np.errstate(invalid="ignore"):
        changes, true = np.nan_to_num(terms[1:] - terms[0], posinf=0, neginf=0), f[1:] - f[0]
    seen = np.isfinite(true) & np.isfinite(terms[1:]).all(axis=1) & np.isfinite(terms[0]).all()
    told = np.where(own[:, :-1], changes, 0).sum(axis=1)
    error = np.where(seen, np.maximum(np.abs(told - true), np.abs(np.where(own[:, :-1], 0, changes)).max(axis=1, initial=0)), 0)
    if (error > 2 * _tolerance(target, f, terms)).any():
        i = int(np.argmax(error))
        raise TargetError(
            "log_prob is not the sum of the terms that were found in it.",
            expected=f"f changes by {true[i]:.6g} when site {sites[i]} changes",
            found=f"{told[i]:.6g}",
        )


@program(once=True)
def _term_values(target: Any, part: LocalTerms, states: jax.Array) -> jax.Array:
    return jax.vmap(lambda c: part.at(target, c))(states)


def verify_differences(target: Any) -> None:
    """Test that closed-form differences declared exact are: at a random state, at up to 16 sites."""
    if not target.differences.closed_form:
        return
    space, rng = target.space, np.random.default_rng(20221)
    codes = jnp.asarray(_random(space, rng, 1)[0] if target.initial is None else target.initial, jnp.int32)
    sites = jnp.asarray(rng.permutation(space.num_sites)[:16], jnp.int32)
    told, true = (np.asarray(table, np.float64) for table in _both_rows(target, codes, sites))
    current = np.asarray(codes)[np.asarray(sites)]
    with np.errstate(invalid="ignore"):  # values that a site does not have
        told, change = (table - np.take_along_axis(table, current[:, None], 1) for table in (told, true))
        seen = np.isfinite(change)
        error = np.abs(np.where(seen, told - change, 0))
    if not (error <= 2 * _tolerance(target, true, np.where(seen, told, 0))).all():
        row, value = np.unravel_index(int(np.argmax(np.where(np.isnan(error), np.inf, error))), error.shape)
        raise TargetError(
            "`differences` says exact, but it is not.",
            expected=f"f changes by {change[row, value]:.6g} when site {int(sites[row])} takes value {value}",
            found=f"{told[row, value]:.6g}",
            hint="saltus.Differences(fn) without exact=True may be approximate: every sampler but Gibbs can use it as it is",
        )


@program()
def _both_rows(target: Any, codes: jax.Array, sites: jax.Array) -> tuple[jax.Array, jax.Array]:
    f = target.value(codes)
    return target.differences.rows(target, codes, f, sites)[0], brute_force(target, codes, f, sites)[0]


def _strangers(edges: np.ndarray, d: int, rng: np.random.Generator, most: int) -> np.ndarray:
    """(p, 2) pairs of sites without an edge: all of them where they are few, else a random choice."""
    if d * (d - 1) // 2 <= most:
        pairs = np.stack(np.triu_indices(d, 1), axis=1)
    else:
        pairs = np.sort(rng.integers(d, size=(4 * most, 2)), axis=1)
        pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)
    ordered = np.sort(edges.astype(np.int64), axis=1)
    known = np.isin(pairs[:, 0] * d + pairs[:, 1], ordered[:, 0] * d + ordered[:, 1])
    return rng.permutation(pairs[~known])[:most]
