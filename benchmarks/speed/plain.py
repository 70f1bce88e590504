"""A function that a person types, beside the models of the package and beside thrml."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

import saltus

from ..found import in_rounds, lattice_matrix, plain_matrix
from .lines import Line

_CHAINS, _COUPLING = 100, 0.2


def plain() -> list[Line]:
    """`0.5 s@J@s` of the 10x10 torus by default / `targets.ising` by default / thrml; a dense glass; local terms."""
    by_hand = saltus.Target(plain_matrix(lattice_matrix(10, _COUPLING)), saltus.Spin(100))
    ours = saltus.targets.ising((10, 10), _COUPLING)
    both = saltus.compare({"plain": by_hand, "ours": ours}, ["auto"], num_chains=_CHAINS, progress=False)
    typed, declared = (both.of(name)[0] for name in ("plain", "ours"))
    values = tuple(np.asarray(typed.ess_per_second) / np.asarray(declared.ess_per_second))
    told = f"{typed.kernel!r}: {np.median(typed.ess_per_second):.3g}; {declared.kernel!r}: {np.median(declared.ess_per_second):.3g}"
    lines = [Line("effective draws/s: plain 0.5 s@J@s / targets.ising", values, 0.5, False, told)]
    return [*lines, *_against_thrml(typed), _glass(), _local_terms()]


def _against_thrml(typed: Any) -> list[Line]:
    from .peers import thrml_ising
    from .versus import effective

    target, reference = saltus.targets.ising((10, 10), _COUPLING), np.arange(100) % 2
    made = [thrml_ising((10, 10), _COUPLING) for _ in range(len(typed.ess_per_second))]
    rates = np.array([effective(target, each.states, reference) / each.seconds for each in made])
    return [Line("effective draws/s: plain 0.5 s@J@s / thrml", tuple(np.asarray(typed.ess_per_second) / rates), 2, False)]


def _glass() -> Line:
    J = np.random.default_rng(0).normal(size=(200, 200)).astype(np.float32) / 14
    target = saltus.Target(plain_matrix((J + J.T) / 2), saltus.Spin(200))
    ncg, sweep = (np.array(each) for each in in_rounds((target, saltus.NCG(0.5)), (target, saltus.Gibbs("systematic"))))
    return Line("dense glass of 200: sweep / step of NCG", tuple(sweep / ncg), 5)


def _local_terms() -> Line:
    """A sum of local terms that is not quadratic, 20x20 sites: steps of GWG with exact differences, with and without the terms."""

    def log_prob(s):
        x = s.reshape(20, 20)
        return jnp.sum(jnp.tanh(x * jnp.roll(x, 1, 0))) - 0.3 * jnp.sum(jnp.abs(x - jnp.roll(x, 1, 1)))

    found, brute = (saltus.Target(log_prob, saltus.Spin(400), differences="exact", structure=s) for s in ("auto", None))
    sides = (found, saltus.GWG()), (brute, saltus.GWG())
    few, many = (np.array(each) for each in in_rounds(*sides, num_chains=10, num_steps=10, rounds=3))
    counts = [target.differences.evaluations_on(target) for target in (found, brute)]
    told = f"{counts[0]} evaluations of log_prob a step in place of {counts[1]}"
    return Line("exact differences: brute force / local terms", tuple(many / few), 5, False, told)
