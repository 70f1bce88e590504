r"""Step size and preconditioner scale that follow the model while it trains.

Every kernel here leaves the current model invariant whatever its numbers are, so they may change between updates. What is
maximised is how far chains get within the K steps of an update, as the training's own chains measure it: no step is made for
tuning alone. The paper's climb maximises the mean L1 jump of single steps.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .. import random
from .._record import as_sequence, changed, default_float, record, shown, static
from ..engine.samplers import tunes_of
from ..errors import TrainingError
from ..kernels import Kernel
from ..kernels.declarations import Decades, Signed
from ..spaces import Space

_APART = 0.2  # of the two halves of a batch, in the coordinate of a setting
_GAIN = 0.3
_MOST = 0.2  # of one update
_FARTHEST = 9.2  # log(10^4): beyond, a step size or scale makes no difference any more, and would drift
_WINDOW = 100  # sampler steps between two moves of the paper's climb


@record
class Told:
    """Means over the chains of each group, (groups,): of single jumps and acceptance rates over K steps, and of the L1 distance
    between where a chain began and where it was K steps later."""

    jump: jax.Array
    rate: jax.Array
    displacement: jax.Array


@record
class Fixed:
    """Nothing is tuned."""

    groups = 1  # of chains that step with settings of their own

    def settings(self, key: jax.Array) -> dict[str, jax.Array]:
        """{name: value} of every setting that is tuned; (groups,) values where there are several groups."""
        return {}

    def learn(self, key: jax.Array, told: Told, steps: jax.Array) -> Any:
        """Go on from what the steps of an update told; `key` is that of `settings`."""
        return self

    def centre(self) -> dict[str, jax.Array]:
        """{name: value} as they are now."""
        return {}


@record
class Halves(Fixed):
    r"""Half of the chains step with settings a little higher, half a little lower; the better half is followed.

    $$ u \leftarrow u + a \, \sigma \, \frac{\bar D_+ - \bar D_-}{(\bar D_+ + \bar D_-) \, \delta} $$

    with D the L1 distance that a chain gets in the K steps of an update (steps there and back again count for nothing),
    u = log(step size) or asinh(scale) in units of the space, |u| at most log(10^4), and signs σ drawn anew each update where
    several settings are tuned at once. Both halves see the same model at the same time, so that a distance that falls because the
    model sharpens is not mistaken for a bad step size. Where no chain moves at all, the step size grows if proposals were accepted
    (they were to stay) and falls if not.
    """

    groups = 2

    at: dict[str, jax.Array]  # u of every setting
    units: dict[str, jax.Array]
    signed: tuple[str, ...] = static(default=())  # the settings that may be of either sign

    def settings(self, key: jax.Array) -> dict[str, jax.Array]:
        up_and_down, signs = jnp.asarray([1, -1], default_float()), self._signs(key)
        return {name: self._value(name, u + _APART / 2 * signs[name] * up_and_down) for name, u in self.at.items()}

    def learn(self, key: jax.Array, told: Told, steps: jax.Array) -> Halves:
        far = told.displacement
        signs, total = self._signs(key), jnp.sum(far)
        slope = (far[0] - far[1]) / jnp.where(total > 0, total, 1) / _APART
        away = jnp.where(jnp.mean(told.rate) > 0.5, _MOST, -_MOST)  # accepted where nothing is proposed: steps are too short
        stuck = {name: 0.0 if name in self.signed else away for name in self.at}
        move = {name: jnp.clip(_GAIN * signs[name] * slope, -_MOST, _MOST) for name in self.at}
        moved = {name: u + jnp.where(total > 0, move[name], stuck[name]) for name, u in self.at.items()}
        return changed(self, at={name: jnp.clip(u, -_FARTHEST, _FARTHEST) for name, u in moved.items()})

    def centre(self) -> dict[str, jax.Array]:
        return {name: self._value(name, u) for name, u in self.at.items()}

    def _value(self, name: str, u: jax.Array) -> jax.Array:
        return self.units[name] * (jnp.sinh(u) if name in self.signed else jnp.exp(u))

    def _signs(self, key: jax.Array) -> dict[str, jax.Array]:
        signs = 1 - 2 * (random.bits(key, (len(self.at),)) >> 31).astype(default_float())
        return dict(zip(self.at, signs, strict=True))


@record
class Climb(Fixed):
    """Algorithm 5 of the paper: every 100 sampler steps, from 200 on, γ goes on in its direction if the jump grew, back otherwise.

    A step is ×(1 + δ) or its inverse where |γ| >= 1 and ± δ below, δ = 0.25 at first, then 1 % less each time. "Up" is up for
    γ <= -1 too. (The print has 1 - δ for the inverse, the authors' code does not.)
    """

    scale: jax.Array  # γ in units of the space
    unit: jax.Array
    size: jax.Array  # δ
    direction: jax.Array
    last: jax.Array  # mean jump of the window before; -1 before the first
    total: jax.Array  # of this window
    steps: jax.Array

    def settings(self, key: jax.Array) -> dict[str, jax.Array]:
        return self.centre()

    def learn(self, key: jax.Array, told: Told, steps: jax.Array) -> Climb:
        total, count = self.total + told.jump[0] * steps, self.steps + steps
        mean = total / count
        first, up = self.last < 0, jnp.where(mean > self.last, self.direction, -self.direction)
        far = self.scale * jnp.where(up * self.scale > 0, 1 + self.size, 1 / (1 + self.size))
        moved = changed(self, size=0.99 * self.size, scale=jnp.where(jnp.abs(self.scale) >= 1, far, self.scale + up * self.size))
        kept = jax.tree.map(lambda a, b: jnp.where(first, a, b), self, moved)  # the first window has none to be compared with
        after = changed(kept, direction=up, last=mean, total=jnp.zeros_like(total), steps=count * 0)
        going_on = changed(self, total=total, steps=count)
        return jax.tree.map(lambda a, b: jnp.where(count >= _WINDOW, a, b), after, going_on)

    def centre(self) -> dict[str, jax.Array]:
        return {"scale": self.unit * self.scale}


def read_retune(retune: Any, kernel: Kernel, space: Space) -> Fixed:
    """None or False: nothing; True: all that this kernel has; names; or "paper"."""
    searches = {name: search for name, search in tunes_of(type(kernel)).items() if isinstance(search, (Decades, Signed))}
    own = list(searches)
    if retune is None or retune is False or (retune is True and not own):
        return Fixed()
    if isinstance(retune, str) and retune == "paper":
        names = ["scale"] if "scale" in own else None
    else:
        names = own if retune is True else [retune] if isinstance(retune, str) else _listed(retune, own)
    if not names or any(not isinstance(name, str) or name not in own for name in names):
        raise TrainingError(
            "`retune` is not usable.",
            expected=f"True, False, or names among {own}" + (' or "paper"' if "scale" in own else ""),
            found=f"{shown(retune)} for {kernel!r}",
        )
    if isinstance(retune, str) and retune == "paper":
        return _climb(kernel, space)
    units = {name: jnp.asarray(searches[name].unit(space), default_float()) for name in names}
    signed = tuple(name for name in names if isinstance(searches[name], Signed))
    read = {name: jnp.arcsinh if name in signed else jnp.log for name in names}
    return Halves({name: read[name](getattr(kernel, name) / units[name]) for name in names}, units, signed)


def _listed(retune: Any, own: list[str]) -> list:
    return as_sequence(retune, "retune", TrainingError, f"True, False, or names among {own}")


def _climb(kernel: Any, space: Space) -> Climb:
    unit, one = jnp.asarray(Signed().unit(space), default_float()), jnp.ones((), default_float())
    return Climb(kernel.scale / unit, unit, 0.25 * one, one, -one, 0 * one, jnp.zeros((), jnp.int32))
