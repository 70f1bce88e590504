"""An update on several cores or devices: its chains and data in equal shares, whose gradients are added in their order.

How many shares there are depends on what is trained and not on the machine: one core or two, one device or two, give the same bits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

from .._compiling import program
from .._record import default_float
from ..engine.chains import MOST, Crew
from ..race.cost import step_seconds
from ..target import Target
from .update import Part, Recipe, Share, State, closed, history_names, share_of, stepped_share
from .watch import HEALTHY

_FEWEST = 8  # chains of a share: of fewer, products with a network's weights take longer for each
_LEAST = 0.05  # seconds of a share, computed: that is about five times what products of matrices take
_GRADIENT = 3  # steps of the chains that take as long as the gradient at samples and data


def num_shares(recipe: Recipe, target: Target, batch: int) -> int:
    """The largest power of two for which each share has enough to do; 1 where a penalty has to see the whole batch."""
    devices = jax.local_devices()
    alone = jax.process_count() > 1 or (devices[0].platform != "cpu" and len(devices) == 1)
    if alone or not all(penalty.by_chain for penalty in recipe.penalties):
        return 1
    most = 1
    while 2 * most <= MOST and batch % (2 * most) == 0 and batch // (2 * most) >= _FEWEST:
        most *= 2
    seconds = step_seconds(recipe.kernel, target, batch) * (int(recipe.num_steps) + _GRADIENT) if most > 1 else 0.0
    while most > 1 and seconds < _LEAST * most:
        most //= 2
    return most


class Split:
    """In place of `update.advance`: the same updates, each in several shares, of which every core takes one and then the next."""

    def __init__(self, recipe: Recipe, target: Target, num: int):
        devices = jax.local_devices()[:num]
        self.num, self.crew, self.stop = num, Crew(num), bool(recipe.stop)
        self.devices = [devices[n % len(devices)] if len(devices) > 1 else None for n in range(num)]
        self.given = {device: _on(device, (recipe, target)) for device in self.devices}
        self.executables: tuple[Any, dict[Any, Any], Any] | None = None

    def advance(self, data: jax.Array, state: State, visits: Any, first: int, count: int) -> tuple:
        """(state, rows of history, updates made), of `count` updates from number `first` on."""
        data, state = _on(self.devices[0], (data, state))
        self.executables = self.executables or self._compiled(data, state, (visits[0][0], visits[1][0]))
        rows: list[dict[str, Any]] = []
        for n in range(count):
            if self.stop and int(state.watch.verdict) != HEALTHY:
                break
            state, row = self._update(data, state, (visits[0][n], visits[1][n]), np.int32(first + n))
            rows.append(row)
        series = {name: np.array([row[name] for row in rows], default_float()) for name in history_names(state.tuner)}
        return state, series, len(rows)

    def _compiled(self, data: jax.Array, state: State, visit: Any) -> tuple[Any, dict[Any, Any], Any]:
        """The three programs of an update, the second for each device."""
        given, none = self.given[self.devices[0]], np.int32(0)
        begin = _shares.executable(self.num, *given, data, state, visit, none)
        share = begin(*given, data, state, visit, none)[0]
        step = {at: _part.executable(*own, *_on(at, (state.trained, share))) for at, own in self.given.items()}
        parts = [jax.eval_shape(stepped_share, *given, state.trained, share)] * self.num
        return begin, step, _closed.executable(*given, state, visit[1], none, parts)

    def _update(self, data: jax.Array, state: State, visit: Any, update: np.int32) -> tuple:
        assert self.executables
        (begin, step, close), home = self.executables, self.devices[0]

        def stepped(at: Any, share: Share) -> Part:
            found: Part = _on(home, step[at](*self.given[at], *_on(at, (state.trained, share))))
            return found

        shares = begin(*self.given[home], data, state, visit, update)
        self.crew.begin([partial(stepped, at, share) for at, share in zip(self.devices, shares, strict=True)])
        found: tuple = close(*self.given[home], state, visit[1], update, self.crew.wait())
        return found


def _on(device: Any, tree: Any) -> Any:
    """The same numbers on that device; as they are where there is but one."""
    return tree if device is None else jax.device_put(tree, device)


@program(static_argnums=0)
def _shares(num: int, *given: Any) -> list[Share]:
    return share_of(*given).split(num)


_part, _closed = program()(stepped_share), program()(closed)
