"""A momentum, with over-relaxed draws and the step size, by effective draws: a jump does not show whether its direction is kept."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._compiling import program
from .._record import changed
from ..diagnostics.worth import ENERGY, Worth, reference_chains, worth
from ..engine.loop import TUNING, chain_key, seed_words, step_chains
from ..kernels import Kernel
from ..kernels.declarations import Persistence
from ..target import Target
from .trial import Chains, start_states, with_values

SHARES, FACTORS = (0.0, 0.3, 0.5, 0.7, 0.85, 0.95), (0.5, 1.0, 2.0)  # of momentum; of the step size that was tuned without
_BLOCK, _MOST_BLOCKS = 500, 8  # steps of a trial; how many of them
_ENOUGH = 400  # effective draws of the best
_WORTHWHILE = 1.1  # how much better than without: these are the largest of noisy numbers


def tune_momentum(kernel: Any, target: Target, name: str, how: Persistence, chains: Chains) -> tuple[Any, str]:
    """The kernel, with momentum, over-relaxation and another step size where the worst of a few statistics gains; and in words.

    The statistics are those of a race: f, and distances from a few states.
    """
    if time.monotonic() + 2 * _BLOCK * chains.pace > chains.deadline:
        chains.cut = True
        return kernel, "no time to look for a momentum"
    rho, factor = (grid.ravel() for grid in np.meshgrid(SHARES, FACTORS))
    settings = {name: rho, how.step_size: factor * float(getattr(kernel, how.step_size))}
    without = int(np.flatnonzero((rho == 0) & (factor == 1))[0])
    begun = replace(kernel, **{name: 0.0})
    found: dict[tuple[bool, int], Worth] = {}
    for relaxed in (False, True):
        found |= {(relaxed, i): w for i, w in enumerate(_tried(replace(begun, over_relaxed=relaxed), target, settings, chains))}
    base = found[False, without]
    relaxed, i = min(found, key=lambda key: found[key].steps)
    best = found[relaxed, i]
    if not best.steps * _WORTHWHILE < base.steps:
        return kernel, f"no momentum: with the best one an effective draw takes {best.steps:.3g} steps, without {base.steps:.3g}"
    chosen = with_values(replace(begun, over_relaxed=relaxed), **{field: values[i] for field, values in settings.items()})
    told = f"momentum {rho[i]:g}, {'' if relaxed else 'not '}over-relaxed, step size x {factor[i]:g}"
    return chosen, f"{told}: an effective draw takes {best.steps:.3g} steps ({best.worst}), without {base.steps:.3g}"


def _tried(kernel: Any, target: Target, settings: dict[str, np.ndarray], chains: Chains) -> list[Worth]:
    """What every candidate is worth, from the same chains; for so long that the best has enough effective draws."""
    given = {name: jnp.asarray(values, jnp.result_type(getattr(kernel, name))) for name, values in settings.items()}
    references = np.asarray(chains.codes)[reference_chains(len(chains.codes))]
    blocks: list[np.ndarray] = []
    words, states = seed_words(chains.seed), None
    while len(blocks) < _MOST_BLOCKS:
        clock = (words, np.int32(chains.steps))
        states = _started(kernel, target, given, chains.codes, clock) if states is None else states
        states, series = _watched(kernel, target, given, references, states, clock)
        blocks.append(np.asarray(series, np.float64))
        chains.steps += _BLOCK
        chains.evaluations += len(given[next(iter(given))]) * len(chains.codes) * _BLOCK * kernel.evaluations(target)
        told = [worth(_statistics(one)) for one in np.concatenate(blocks, axis=-1)]
        enough = len(chains.codes) * len(blocks) * _BLOCK >= _ENOUGH * min(w.steps for w in told)
        if chains.late() or enough:
            break
    return told


def _statistics(series: np.ndarray) -> dict[str, np.ndarray]:
    """series (statistics, chains, steps), without the first fifth, by name."""
    names = [ENERGY, *(f"distance from state {i}" for i in range(len(series) - 1))]
    return {name: x[:, x.shape[1] // 5 :] for name, x in zip(names, series, strict=True)}


@program()
def _started(kernel: Kernel, target: Target, settings: dict[str, jax.Array], codes: jax.Array, clock: Any) -> Any:
    return jax.vmap(lambda values: start_states(changed(kernel, **values), target, codes, *clock)[0])(settings)


@program()
def _watched(
    kernel: Kernel, target: Target, settings: dict[str, jax.Array], references: jax.Array, states: Any, clock: Any
) -> tuple[Any, jax.Array]:
    """(states, (candidates, statistics, chains, steps)): f and the distances |s - r|_1 after each of so many steps."""
    words, first = clock
    space = target.space
    near = jax.vmap(lambda r: space.ravel(space.embed(r)))(references.astype(space.code_dtype))

    def candidate(values: dict[str, jax.Array], states: Any) -> Any:
        own = changed(kernel, **values)
        keys = jax.vmap(lambda c: chain_key(words, TUNING, c))(jnp.arange(states.codes.shape[0], dtype=jnp.int32))

        def step(states: Any, t: jax.Array) -> Any:
            states, _ = step_chains(own, target, keys, first + t, states)
            s = jax.vmap(lambda c: space.ravel(space.embed(c)))(states.codes)
            return states, jnp.stack([states.log_prob, *(jnp.sum(jnp.abs(s - r), axis=1) for r in near)])

        states, series = jax.lax.scan(step, states, jnp.arange(_BLOCK, dtype=jnp.int32))
        return states, jnp.moveaxis(series, 0, -1)

    return jax.vmap(candidate)(settings, states)
