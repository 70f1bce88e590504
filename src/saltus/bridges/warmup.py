"""The warm-up of a mixed run: where chains begin, how NUTS is tuned in windows, and when the discrete kernel is."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._compiling import program
from .._record import default_float
from ..engine.keys import START, WARMUP, chain_keys, state_keys, wrapped
from ..engine.loop import random_codes
from ..engine.progress import Silent, Status
from ..engine.starts import initial_codes
from ..errors import TargetError
from ..kernels import Kernel
from ..target import Target
from ..tuning import tune
from .alternating import Chain, Nuts, Search, new_search, start, warm
from .joint import at
from .starts import repaired

_ATTEMPTS, _RADIUS = 100, 2.0  # first θ: uniform within this of 0, as Stan and NumPyro have it
_FIRST, _LAST, _WINDOW = 0.075, 0.05, 25  # shares of the warm-up before and after the windows; steps of the first window


@program(once=True, static_argnums=0)
def _uniform(size: int, words: jax.Array) -> jax.Array:
    return jax.vmap(lambda w: jax.random.uniform(wrapped(w), (size,), default_float(), -_RADIUS, _RADIUS))(words)


@program(once=True)
def _value_and_slope(target: Target, theta: jax.Array, codes: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(log p, its gradient in θ) of every chain."""
    return jax.vmap(lambda t, c: jax.value_and_grad(lambda t: at(target, t).value(c))(t))(theta, codes)


def first_states(target: Target, seed: int, num_chains: int, initial: Any, theta: np.ndarray | None) -> tuple[Any, Any]:
    """(codes, θ) of every chain: as given, or the first random ones at which the log-density is finite; else repaired ones."""
    numbers, given = np.arange(num_chains), initial_codes(target, initial, num_chains)
    size = target.params["theta"].shape[0]

    def drawn(attempt: int) -> tuple[np.ndarray, np.ndarray]:
        codes = given if given is not None else random_codes(target.space, seed, numbers, attempt)
        words = random.folded(chain_keys(seed, START, numbers), [2**21 + attempt])
        return np.array(codes), np.array(_uniform(size, words) if theta is None else np.broadcast_to(theta, (num_chains, size)))

    def good(codes: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f, slope = (np.asarray(x) for x in _value_and_slope(target, jnp.asarray(first, default_float()), jnp.asarray(codes)))
        return f, np.isfinite(f) & np.isfinite(slope).all(axis=1)

    codes, first = drawn(0)
    f, done = good(codes, first)
    for attempt in range(1, 1 if given is not None and theta is not None else _ATTEMPTS):
        if done.all():
            break
        new_codes, new_first = drawn(attempt)
        new_f, new = good(new_codes, new_first)
        new &= ~done
        codes[new], first[new], f, done = new_codes[new], new_first[new], np.where(done, f, new_f), done | new
    if not done.all() and given is None:
        codes = np.where(done[:, None], codes, repaired(target, codes, jnp.asarray(first, default_float()), seed))
        f, done = good(codes, first)
    if done.all():
        return jnp.asarray(codes, target.space.code_dtype), jnp.asarray(first, default_float())
    raise TargetError(
        "No possible start was found.",
        expected=f"a finite log_prob and gradient within {_ATTEMPTS} random states, or after sweeps that avoid impossible terms",
        found=f"NaN or infinite for {int((~done).sum())} of {num_chains} chains; log_prob = {f[~done][0]} at the last",
        hint="look for log of zero, data that no state allows, or NaN in them; saltus.mixed takes initial=, possible states",
    )


def windows(num_warmup: int) -> list[tuple[int, bool]]:
    """[(stop, whether the mass matrix is set then)]: a first stretch, windows of doubling length, a last stretch."""
    begin, end = int(_FIRST * num_warmup), num_warmup - int(_LAST * num_warmup)
    stops, length, here = [(begin, False)] if begin else [], _WINDOW, begin
    while here < end:
        here = end if here + 3 * length > end else here + length
        stops.append((here, True))
        length *= 2
    return [*stops, (num_warmup, False)] if num_warmup > end else stops


class Warmup:
    """Chains from their start to where draws begin, with kernel and NUTS tuned on the way."""

    def __init__(self, target: Target, kernel: Kernel, nuts: Nuts, seed: int, num_chains: int, progress: Silent):
        self.target, self.kernel, self.nuts, self.seed, self.progress = target, kernel, nuts, seed, progress
        self.keys = wrapped(jnp.asarray(chain_keys(seed, WARMUP, np.arange(num_chains))))
        self.state_keys = wrapped(jnp.asarray(state_keys(seed, np.arange(num_chains))))
        self.done = 0
        self.chains: Any = None
        self.report = "none: the kernel was given"

    def begin(self, initial: Any, theta: np.ndarray | None) -> None:
        codes, thetas = first_states(self.target, self.seed, len(self.keys), initial, theta)
        self.chains = start(self.kernel, self.target, codes, thetas, self.state_keys)

    def run(self, num_warmup: int, aim: float, kind: Any) -> None:
        """kind: the class of the discrete kernel that is to be tuned on the way; None: it is given."""
        search = new_search(self.nuts.step_size, self.chains.theta.shape)
        stops = windows(num_warmup)
        tuned = kind is None
        for stop, sets_mass in stops:
            search = self._advance(stop, num_warmup, aim, search)
            if sets_mass:
                search = self._set_mass(search)
            if not tuned and stop >= num_warmup // 4:
                self._tune(kind)
                tuned = True
        size = float(jnp.exp(search.smoothed)) if float(search.count) else float(self.nuts.step_size)
        self.nuts = Nuts(jnp.asarray(size, default_float()), self.nuts.inverse_mass, self.nuts.max_depth)

    def _advance(self, stop: int, total: int, aim: float, search: Search) -> Search:
        numbers = np.int32(self.done), np.int32(stop), np.asarray(aim, default_float())
        self.chains, search = warm(self.keys, *numbers, self.kernel, self.nuts, self.target, self.chains, search)
        jax.block_until_ready(search.log_step)
        self.done = stop
        figures = [("NUTS step", f"{float(jnp.exp(search.log_step)):.3g}")]
        self.progress.show(Status("warm-up", stop, total, figures, None))
        return search

    def _set_mass(self, search: Search) -> Search:
        """1 / E[slope²] within the window, shrunk towards 1; the search for a step size begins anew.

        Given the discrete variables θ may be far narrower than it is overall. The variance of θ would say how wide it is overall,
        and make steps that are too long; squared slopes say how narrow it is. The median over chains: one on its way counts little.
        """
        n = search.num
        shrunk = jnp.median((n + 5) / (search.squares + 5), axis=0)
        usable = jnp.where(jnp.isfinite(shrunk) & (shrunk > 0), shrunk, 1)
        self.nuts = Nuts(self.nuts.step_size, usable, self.nuts.max_depth)
        return new_search(jnp.exp(search.smoothed), search.squares.shape)

    def _tune(self, kind: Any) -> None:
        """The discrete kernel, at the θ of the chain whose log-density is in the middle."""
        chains: Chain = self.chains
        codes = np.asarray(jax.vmap(self.kernel.draw)(chains.x))
        middle = int(np.argsort(np.asarray(jnp.ravel(chains.x.log_prob)[: len(codes)]))[len(codes) // 2])
        here = at(self.target, chains.theta[middle])
        self.progress.say(f"tuning {kind.__name__} on {here.space}")
        found = tune(here, kind, self.seed, initial=here.space.show(codes))
        self.kernel, self.report = found.kernel, str(found.report)
        self.chains = start(self.kernel, self.target, jnp.asarray(codes), chains.theta, self.state_keys)
