"""Where the time of a step goes, part by part, each in a loop of its own whose state changes, so that nothing is hoisted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import saltus
from saltus import Kernel, Target, random
from saltus.extending import metropolis

from ..internals import changed
from .clock import seconds_per_step
from .lines import Line
from .loops import Loop, sampler_loop, start
from .workloads import WORKLOADS, num_chains, samplers

_NEVER = 1e30


def parts(name: str) -> dict[str, float]:
    """Microseconds per step of all chains."""
    target, chains = WORKLOADS[name](), num_chains(name)
    kernel, codes = samplers(name, target)["NCG"], start(target, chains)
    x = jax.jit(jax.vmap(lambda target, c: kernel.init(target, c), (None, 0)))(target, codes)
    u = jax.vmap(lambda key: random.unit(key, _units(target)))(random.split(jax.random.key(2), chains))
    loops = {
        "step": sampler_loop(kernel, target, chains),
        "gradient": _per_chain(_gradient, codes, kernel, target, x, u),
        "random numbers": _random_numbers(target, chains),
        "proposal": _per_chain(_proposal, codes, kernel, target, x, u),
        "ratio": _per_chain(_ratio, codes, kernel, target, x, u),
        "select": _per_chain(_select, codes, kernel, target, x, u),
    }
    seconds = {part: float(np.median(each)) for part, each in seconds_per_step(loops, repeats=5).items()}
    seconds["with a run's records"] = _run_seconds(kernel, target, chains, seconds["step"])
    return {part: 1e6 * each for part, each in seconds.items()}


def _units(target: Target) -> tuple[int, int]:
    return random.num_units(target.space.num_values), target.space.num_sites


def _per_chain(part: Callable, codes: jax.Array, kernel: Kernel, target: Target, x: Any, u: Any) -> Loop:
    def body(constants: Any, t: jax.Array, codes: jax.Array) -> jax.Array:
        kernel, target, x, u = constants
        return jax.vmap(lambda codes, x, u: part(kernel, target, changed(x, codes=codes), u))(codes, x, u)

    return Loop(body, codes + 0, kernel, target, x, u)


def _gradient(kernel: Kernel, target: Target, x: Any, u: jax.Array) -> jax.Array:
    y = kernel.init(target, x.codes)
    total = y.log_prob + sum(jnp.sum(leaf) for leaf in jax.tree.leaves(y.local))
    return jnp.where(total > _NEVER, 0, target.space.num_values - 1 - x.codes)


def _proposal(kernel: Kernel, target: Target, x: Any, u: jax.Array) -> jax.Array:
    return kernel.propose(target, x, None).moves.choose(u)


def _ratio(kernel: Kernel, target: Target, x: Any, u: jax.Array) -> jax.Array:
    y = changed(x, codes=target.space.num_values - 1 - x.codes)
    return jnp.where(kernel.log_ratio(target, x, y, None) > _NEVER, 0, y.codes)


def _select(kernel: Kernel, target: Target, x: Any, u: jax.Array) -> jax.Array:
    """The accept/reject step, given the ratio, and what it tells."""
    y = changed(x, codes=target.space.num_values - 1 - x.codes)
    kept, info = metropolis(jax.random.key(0), target.space, x, y, u[0, 0] - 0.5)
    total = info.jump + sum(jnp.sum(leaf.astype(info.jump.dtype)) for leaf in jax.tree.leaves(kept.local))
    return jnp.where(total > _NEVER, 0, kept.codes)


def _random_numbers(target: Target, chains: int) -> Loop:
    def body(_: Any, t: jax.Array, state: Any) -> Any:
        keys, total = state

        def draw(key: jax.Array) -> jax.Array:
            _, move, accept = random.split(random.fold_in(key, t), 3)
            return random.unit(move, _units(target)) + random.unit(accept)

        return keys, total + jax.vmap(draw)(keys)

    return Loop(body, (random.split(jax.random.key(1), chains), jnp.zeros((chains, *_units(target)))))


def _run_seconds(kernel: Kernel, target: Target, chains: int, step: float) -> float:
    """Per step of a run that keeps every draw."""
    draws = max(int(0.5 / step), 20)
    run = saltus.sample(target, kernel, num_chains=chains, num_draws=draws, num_warmup=10, thin=1, progress=False)
    return run.attrs["sampling_time"] / draws


def sweep_parts(name: str) -> dict[str, float]:
    """The same of a coloured sweep: what is not listed is choosing values, colour by colour."""
    target, chains = WORKLOADS[name](), num_chains(name)
    codes = start(target, chains)
    loops = {
        "sweep": sampler_loop(saltus.Gibbs("coloured"), target, chains),
        "random numbers": _random_numbers(target, chains),
        "exact differences, once": _of_codes(lambda target, codes: target.moves(target.point(codes)).scores, codes, target),
        "value": _of_codes(lambda target, codes: target.value(codes), codes, target),
    }
    return {part: 1e6 * float(np.median(each)) for part, each in seconds_per_step(loops, repeats=5).items()}


def _of_codes(part: Callable, codes: jax.Array, target: Target) -> Loop:
    def body(constants: Any, t: jax.Array, codes: jax.Array) -> jax.Array:
        (target,) = constants
        return jax.vmap(lambda c: jnp.where(part(target, c) > _NEVER, 0, target.space.num_values - 1 - c))(codes)

    return Loop(body, codes + 0, target)


def profile() -> list[Line]:
    """No goals: microseconds per step of all chains."""
    lines = [Line(f"NCG, {name}: {part}, µs", (each,)) for name in WORKLOADS for part, each in parts(name).items()]
    sweeps = [(name, part, each) for name in ("W1", "W2") for part, each in sweep_parts(name).items()]
    return lines + [Line(f"Gibbs, {name}: {part}, µs", (each,)) for name, part, each in sweeps]
