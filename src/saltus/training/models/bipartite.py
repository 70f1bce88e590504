r"""Exact differences and block Gibbs of f(v, h) = b·v + c·h + vᵀWh: given one side, the sites of the other are independent."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ... import random
from ..._record import default_float
from ...local import ClosedForm
from ...moves import Flips
from ...spaces import Space
from ...structure import fields


def closed_form(space: Space) -> ClosedForm:
    """The local model of such an f, whose visible units are of this space."""
    sides = Sides(space)
    return ClosedForm(sides.table, True, sides.value_and_pulls, lambda params, pulls: pulls, Sweep(sides))


@dataclass(frozen=True)
class Sides:
    """What either side does to the other. Tables are packed, as the form of Moves of each side has them."""

    space: Space  # of v

    def split(self, codes: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Codes of v, and of h."""
        return codes[..., : self.space.num_sites], codes[..., self.space.num_sites :]

    def on_hidden(self, params: dict, visible: jax.Array) -> jax.Array:
        """(m,) c + vᵀW: how much more f has at h_j = 1."""
        v = self.space.ravel(self.space.embed(visible))
        return params["hidden"] + jnp.matmul(v, params["weights"])

    def on_visible(self, params: dict, hidden: jax.Array) -> jax.Array:
        """The packed table of v."""
        return self._packed(self._pull(params, hidden))

    def _pull(self, params: dict, hidden: jax.Array) -> jax.Array:
        """(n,) b + Wh."""
        h = hidden.astype(default_float())
        return jnp.ravel(params["visible"]) + jnp.matmul(params["weights"], h)

    def _packed(self, pull: jax.Array) -> jax.Array:
        none = jnp.zeros((self.space.num_sites, self.space.num_values), pull.dtype)
        return fields.packed(self.space, none, pull)

    def value_and_pulls(self, params: dict, codes: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        visible, hidden = self.split(codes)
        on_visible, on_hidden = self.on_visible(params, hidden), self.on_hidden(params, visible)
        v = self.space.embed(visible)
        return jnp.sum(v * params["visible"]) + jnp.sum(hidden.astype(on_hidden.dtype) * on_hidden), (on_visible, on_hidden)

    def table(self, params: dict, s: dict, codes: jax.Array) -> jax.Array:
        """(d + m, k) of all sites, values that a site does not have being impossible."""
        pulls = self.value_and_pulls(params, codes)[1]
        k, tables = self.space.num_values, []
        for pull in pulls:
            own = jnp.stack([jnp.zeros_like(pull), pull], axis=1) if pull.ndim == 1 else pull.T
            tables.append(jnp.pad(own, ((0, 0), (0, k - own.shape[1])), constant_values=-jnp.inf))
        return jnp.concatenate(tables)

    def draw_visible(self, u: jax.Array, params: dict, codes: jax.Array, temper: Any) -> tuple[jax.Array, jax.Array]:
        """(codes of v drawn given h, b + Wh). codes: of v and h before. u: (uniforms a site, d)."""
        visible, hidden = self.split(codes)
        pull = temper(self._pull(params, hidden))
        return self.chosen(visible, pull, u), pull

    def chosen(self, visible: jax.Array, pull: jax.Array, u: jax.Array) -> jax.Array:
        """Codes of v drawn where b + Wh is `pull`."""
        drawn: jax.Array = self.space.form.chosen(visible, self._packed(pull), u)
        return drawn


@dataclass(frozen=True)
class Sweep:
    """Block Gibbs, as a sweep of `saltus.sweeps`: h given v, then v given h."""

    sides: Sides

    def begin(self, codes: jax.Array) -> None:
        return None

    def sweep(self, key: jax.Array, target: Any, x: Any) -> tuple[jax.Array, jax.Array, Any, Any]:
        sides, params, space = self.sides, target.params, self.sides.space
        visible, hidden = sides.split(x.codes)
        units = random.num_units(space.num_values)
        u = random.unit(key, (len(hidden) + units * len(visible),))
        on_hidden = target.tempering(sides.on_hidden(params, visible))
        h = Flips.chosen(hidden, on_hidden, u[None, : len(hidden)])
        codes = jnp.concatenate([visible, h])
        v, pull = sides.draw_visible(u[len(hidden) :].reshape(units, -1), params, codes, target.tempering)
        f = jnp.sum(target.tempering(params["hidden"]) * h.astype(pull.dtype)) + jnp.sum(space.ravel(space.embed(v)) * pull)
        return jnp.concatenate([v, h]), f.astype(default_float()), None, None


@functools.partial(jax.jit, static_argnums=0)
def draw_side(sides: Sides, params: dict, key: jax.Array, visible: Any, hidden: Any) -> jax.Array:
    """(rows, ...) codes of the side that is None, each row drawn from its exact law given the same row of the other."""

    def of_hidden(key: jax.Array, v: jax.Array) -> jax.Array:
        pull = sides.on_hidden(params, v)
        return Flips.chosen(jnp.zeros(pull.shape, jnp.int32), pull, random.unit(key, (1, len(pull))))

    def of_visible(key: jax.Array, h: jax.Array) -> jax.Array:
        d, units = sides.space.num_sites, random.num_units(sides.space.num_values)
        codes = jnp.concatenate([jnp.zeros(d, h.dtype), h])
        return sides.draw_visible(random.unit(key, (units, d)), params, codes, lambda x: x)[0]

    given = visible if hidden is None else hidden
    return jax.vmap(of_hidden if hidden is None else of_visible)(random.split(key, len(given)), given)
