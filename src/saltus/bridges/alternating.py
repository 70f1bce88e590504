r"""One transition of a mixed chain: a step of a discrete kernel given θ, then a step of BlackJAX's NUTS given the codes.

Each leaves its own conditional of p(s, θ) invariant, so that their composition leaves p invariant. f at the new codes is what NUTS
begins with; f at the new θ is what the discrete kernel goes on with; only derivatives are computed anew.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .. import random
from .._compiling import program
from .._record import default_float, record, static
from ..kernels import Info, Kernel
from ..kernels.base import begin
from ..target import Point, Target
from .joint import at
from .needed import needed

_SHRINK, _OFFSET, _DECAY = 0.05, 10.0, 0.75  # of dual averaging, as Hoffman and Gelman have them


@record
class Nuts:
    """BlackJAX's NUTS, frozen. step_size; inverse_mass: (n,) the diagonal of the inverse mass matrix."""

    step_size: jax.Array
    inverse_mass: jax.Array
    max_depth: int = static(default=10)

    def step(self, key: jax.Array, density: Any, theta: jax.Array, log_prob: jax.Array) -> tuple[Any, Any]:
        """(its new state, what it tells) from θ, where the log-density is known already."""
        nuts = needed("blackjax.mcmc.nuts", "saltus.mixed")
        hmc = needed("blackjax.mcmc.hmc", "saltus.mixed")
        state = hmc.HMCState(theta, log_prob, jax.grad(density)(theta))
        return nuts.build_kernel()(key, state, density, self.step_size, self.inverse_mass, self.max_depth)


@record
class Chain:
    """x: the state of the discrete kernel at θ."""

    x: Any
    theta: jax.Array


@record
class Told:
    """What a transition tells: `Info` of the discrete step, and of NUTS the mean acceptance, divergence, energy and length."""

    info: Info
    nuts_acceptance: jax.Array
    diverging: jax.Array
    energy: jax.Array
    num_steps: jax.Array
    depth: jax.Array
    slope: jax.Array  # of the log-density at the new θ


@record
class Search:
    """Dual averaging of log step_size, shared by all chains, and in each the sum of squared slopes in θ."""

    log_step: jax.Array
    smoothed: jax.Array
    error: jax.Array
    count: jax.Array
    centre: jax.Array
    num: jax.Array
    squares: jax.Array


@program(once=True)
def start(kernel: Kernel, target: Target, codes: jax.Array, theta: jax.Array, keys: jax.Array) -> Chain:
    """(chains, ...) at these codes and θ."""
    return jax.vmap(lambda c, t, k: Chain(begin(kernel, at(target, t), c, k), t))(codes, theta, keys)


def transition(key: jax.Array, kernel: Kernel, nuts: Nuts, target: Target, chain: Chain) -> tuple[Chain, Told]:
    """One chain."""
    discrete_key, continuous_key = random.split(key)
    x, info = kernel.step(discrete_key, at(target, chain.theta), chain.x)
    codes = kernel.draw(x)

    def density(theta: jax.Array) -> jax.Array:
        return at(target, theta).value(codes)

    state, told = nuts.step(continuous_key, density, chain.theta, _kept_value(kernel, target, x, chain.theta))
    here = Point(codes, state.logdensity, None, x.stamp if isinstance(x, Point) else None)
    new = Chain(kernel.adopt(at(target, state.position), here, x), state.position)
    return new, Told(
        info,
        told.acceptance_rate,
        told.is_divergent,
        told.energy,
        told.num_integration_steps,
        told.num_trajectory_expansions,
        state.logdensity_grad,
    )


def _kept_value(kernel: Kernel, target: Target, x: Any, theta: jax.Array) -> jax.Array:
    """f at what is kept of a state, computed only where the state has several."""
    return x.log_prob if jnp.ndim(x.log_prob) == 0 else at(target, theta).value(kernel.draw(x))


def _all(keys: jax.Array, t: jax.Array, kernel: Kernel, nuts: Nuts, target: Target, chains: Chain) -> tuple[Chain, Told]:
    return jax.vmap(lambda k, c: transition(random.fold_in(k, t), kernel, nuts, target, c))(keys, chains)


@program()
def warm(
    keys: jax.Array, first: Any, stop: Any, aim: Any, kernel: Kernel, nuts: Nuts, target: Target, chains: Chain, search: Search
) -> tuple[Chain, Search]:
    """Steps first..stop, in which the step size is searched for; squared slopes are gathered."""

    def one(t: jax.Array, state: tuple[Chain, Search]) -> tuple[Chain, Search]:
        chains, search = state
        now = Nuts(jnp.exp(search.log_step), nuts.inverse_mass, nuts.max_depth)
        chains, told = _all(keys, t, kernel, now, target, chains)
        accepted = jnp.where(jnp.isfinite(told.nuts_acceptance), told.nuts_acceptance, 0)
        return chains, _gathered(_averaged(search, aim - jnp.mean(accepted)), told.slope)

    return jax.lax.fori_loop(first, stop, one, (chains, search))


def _averaged(search: Search, miss: jax.Array) -> Search:
    """Nesterov's dual averaging of log ε (Hoffman and Gelman 2014, section 3.2)."""
    count = search.count + 1
    weight = 1 / (count + _OFFSET)
    error = (1 - weight) * search.error + weight * miss
    log_step = search.centre - jnp.sqrt(count) / _SHRINK * error
    share = count**-_DECAY
    fields = dict(vars(search), error=error, count=count, log_step=log_step)
    return Search(**{**fields, "smoothed": share * log_step + (1 - share) * search.smoothed})


def _gathered(search: Search, slope: jax.Array) -> Search:
    """Sums of squares, chain by chain: (chains, n)."""
    finite = jnp.where(jnp.isfinite(slope), slope, 0)
    return Search(**{**vars(search), "num": search.num + 1, "squares": search.squares + finite**2})


def new_search(step_size: Any, shape: tuple[int, ...]) -> Search:
    """From this step size, with nothing gathered."""
    zero, dtype = jnp.zeros((), default_float()), default_float()
    log_step = jnp.log(jnp.asarray(step_size, dtype))
    return Search(log_step, zero, zero, zero, log_step + jnp.log(jnp.asarray(10, dtype)), zero, jnp.zeros(shape, dtype))


@program(static_argnums=(0,))
def draw(
    num: int, keys: jax.Array, first: Any, thin: Any, kernel: Kernel, nuts: Nuts, target: Target, chains: Chain
) -> tuple[Chain, dict[str, jax.Array]]:
    """`num` draws, `thin` steps each, from step `first` on: (chains, {variable: (num, chains, ...)})."""

    def one(chains: Chain, i: jax.Array) -> tuple[Chain, dict[str, jax.Array]]:
        begun = first + i * thin
        chains, told = jax.lax.fori_loop(
            begun + 1,
            begun + thin,
            lambda t, state: _all(keys, t, kernel, nuts, target, state[0]),
            _all(keys, begun, kernel, nuts, target, chains),
        )
        return chains, {
            "codes": jax.vmap(kernel.draw)(chains.x),
            "theta": chains.theta,
            "lp": _lp(kernel, target, chains),
            **_stats(told),
        }

    return jax.lax.scan(one, chains, jnp.arange(num, dtype=jnp.int32))


def _lp(kernel: Kernel, target: Target, chains: Chain) -> jax.Array:
    return jax.vmap(lambda c: _kept_value(kernel, target, c.x, c.theta))(chains)


def _stats(told: Told) -> dict[str, jax.Array]:
    return {
        "acceptance_rate": told.info.acceptance_rate,
        "accepted": told.info.accepted,
        "jump": told.info.jump,
        "changed_sites": told.info.changed_sites,
        "undefined": told.info.undefined,
        "nuts_acceptance_rate": told.nuts_acceptance,
        "diverging": told.diverging,
        "energy": told.energy,
        "n_steps": told.num_steps,
        "tree_depth": told.depth,
    }
